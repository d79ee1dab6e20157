"""Errors of routes: `application/problem+json` (RFC 9457) with our code and remedy.

A remedy names operations as `` `runs resume 3` ``: an `operationId` of the document with a space.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.exc import NoResultFound
from starlette.responses import Response

from db.errors import BadInput, InfError, NotFound, ProviderError, Refused, StoreBehind
from db.extras import missing_extra
from db.rows import as_text

MEDIA_TYPE = "application/problem+json"
TITLES = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    412: "Precondition failed",
    413: "Content too large",
    415: "Unsupported media type",
    422: "Unprocessable content",
    428: "Precondition required",
    429: "Too many requests",
    500: "Internal error",
    502: "A model server failed",
    503: "The store is away or of another version",
}
# Refusals for want of a right; the others are conflicts with the state of things.
FORBIDDEN = (
    *("no_right", "admin_only", "dataset_right_missing"),
    *("private_network_needs_owner", "token_limited", "token_by_token", "token_of_another"),
    *("token_beyond_person", "token_without_budget", "token_budget_exceeded"),
    *("run_without_budget", "run_of_another", "judge_without_budget", "job_of_another"),
)
UNAUTHORIZED = (
    *("signed_out", "token_missing", "token_unknown", "token_revoked", "token_expired"),
    *("token_without_account", "token_account_disabled"),
)
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="InF Studio"'}


def problem(
    status: int,
    detail: str,
    *,
    code: str,
    remedy: str = "",
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    """A problem document."""
    body = {
        "type": "about:blank",
        "title": TITLES[status],
        "status": status,
        "detail": detail,
        "code": code,
        "remedy": remedy,
        **more,
    }
    given = {**(CHALLENGE if status == 401 else {}), "Cache-Control": "no-store", **(headers or {})}
    return Response(as_text(body), status, given, MEDIA_TYPE)


def of_error(error: InfError | NoResultFound | ImportError) -> Response:
    """The answer to what an operation raises."""
    if isinstance(error, NoResultFound):
        return problem(404, "it does not exist, or you have no right to it", code="not_there")
    if isinstance(error, ImportError):
        if (found := missing_extra(error)) is None:
            raise error
        error = found
    return problem(
        status_of(error),
        error.message,
        code=error.code or type(error).__name__,
        remedy=error.remedy,
        **error.details,
    )


def status_of(error: InfError) -> int:
    """The status of an error."""
    by_kind = ((NotFound, 404), (BadInput, 422), (StoreBehind, 503), (ProviderError, 502))
    if isinstance(error, Refused):
        return 403 if error.code in FORBIDDEN else 401 if error.code in UNAUTHORIZED else 409
    return next((status for kind, status in by_kind if isinstance(error, kind)), 409)
