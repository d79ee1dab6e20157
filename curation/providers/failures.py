"""What a server's failure means: for the whole run, for one row, or for one attempt.

What stops the whole run at once: a wrong key, an unknown model, spent quota, a parameter that the
server refuses. What costs one row: a refusal, an input that is too long. Everything else may
succeed at the next attempt.
"""

import math
import os
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp
import httpx2
import openai

from curation.providers.provider import Request, RowFailed
from curation.providers.trouble import causes_of
from curation.recipe.completion import NotACompletion, Page, Unusable
from db.errors import BadInput, ProviderError
from db.tables import utc_now

MAX_RETRY_AFTER_SECONDS: Final = 600.0  # some servers request a day
# what a server or the way to it may cause; the SDK passes on aiohttp's error for what is no HTTP
WIRE_ERRORS: Final = (
    *(openai.APIError, aiohttp.ClientError, httpx2.HTTPError),
    *(ValueError, TimeoutError, OSError),
)
LIMIT_NAMES: Final = ("max_tokens", "max_completion_tokens")
QUOTA, TOO_LONG = "insufficient_quota", "context_length_exceeded"
# of one prompt that alone exceeds a limit of tokens per minute (status 429): no pause helps
TOO_LARGE: Final = "request too large"
# a proxy waited in vain for an answer that may be written, or lost it
GATEWAY_TIMEOUTS: Final = (408, 504, 520, 524)
QUOTA_CODES: Final = {QUOTA, "budget_exceeded", "ExceededBudget"}
KEY_CODES: Final = {"auth_error", "authentication_error", "invalid_api_key", "expired_key"}


def raise_if_final(error: Exception, request: Request, server: str) -> None:
    """Raise for what further attempts cannot fix; return for the rest."""
    if isinstance(error, openai.APIStatusError):
        raise_if_quota_is_spent(error)
    raise_if_sign_in(error, server)
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError) or (
        isinstance(error, openai.BadRequestError) and _is_about_key(error)
    ):
        raise wrong_key(error) from error
    if isinstance(error, openai.NotFoundError):
        raise ProviderError(
            f"{server} does not know the model {request.model!r} ({error.message})",
            "choose another with `set=STAGE.model=NAME`",
            code="model_unknown_to_server",
        ) from error
    if isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
        code = error_code(error)
        if code in ("content_filter", "content_policy_violation"):
            raise RowFailed("refused", error.message) from error
        if code == "context_length_exceeded" or "context length" in error.message.lower():
            raise RowFailed("too_long_for_model", error.message) from error
        if error.param and error.param != "None":
            raise ProviderError(
                f"the server refuses the parameter {error.param!r} for {request.model!r} "
                f"({error.message})",
                f"change the recipe with `set={request.task}.KEY=VALUE`",
                code="server_refuses_parameter",
            ) from error
        raise RowFailed("request_refused", error.message) from error
    if isinstance(error, openai.APIStatusError) and 300 <= error.status_code < 400:
        raise ProviderError(
            f"{server} sends requests on to another address",
            "give that address, if it is the server's",
            code="server_redirects",
        ) from error
    if isinstance(error, openai.APIStatusError) and (
        error.status_code == 413
        or (error.status_code == 429 and TOO_LARGE in error.message.lower())
    ):
        raise RowFailed("too_long_for_model", error.message) from error
    if isinstance(error, WIRE_ERRORS):
        return
    raise error


def _is_about_key(error: openai.APIStatusError) -> bool:
    """Whether a proxy refuses its own key, for which some answer 400 (LiteLLM: `auth_error`)."""
    is_named = not KEY_CODES.isdisjoint({error_code(error), _type_of(error)})
    return is_named or error.message.lower().startswith("authentication error")


def _type_of(error: openai.APIError) -> str:
    """The type in an error's body; proxies have a status for its code."""
    return str(error.body.get("type") or "") if isinstance(error.body, dict) else ""


def refuses_all(server: str, why: str) -> ProviderError:
    """The error that stops a run whose server refuses a small request, too."""
    return ProviderError(
        f"{server} refuses every request ({why})",
        "check the key, the model's name and the limits of the server or its proxy, then resume",
        code="server_refuses_all",
    )


def is_lost(error: Exception) -> bool:
    """Whether an answer may have been written, and is paid, that did not arrive.

    So where a connection ended after the request was sent, here or behind a proxy, and of a body
    that cannot be read; not where none was opened, nor for a status that says no, nor for a page of
    a proxy, nor where its usage was read.
    """
    if isinstance(error, openai.APIStatusError):
        return error.status_code in GATEWAY_TIMEOUTS
    causes = list(causes_of(error))
    if any(isinstance(each, aiohttp.ClientConnectorError) for each in causes):
        return False
    return isinstance(error, openai.APIConnectionError | TimeoutError) or (
        isinstance(error, ValueError) and not isinstance(error, NotACompletion | Unusable)
    )


def may_be_about_one_request(error: Exception, *, task_works: bool) -> bool:
    """Whether what `raise_if_final` takes for the whole run may concern this request alone.

    A router or a moderating proxy answers 403 or 404 to one prompt; a refused parameter concerns
    all requests of a task, unless some with the same parameters were answered (`task_works`).
    """
    if isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
        return task_works
    if not isinstance(error, openai.PermissionDeniedError | openai.NotFoundError):
        return False
    return error_code(error) != QUOTA


def may_be_about_form(error: Exception) -> bool:
    """Whether a refusal may concern the response format: servers word that in many ways.

    A request in a simpler form decides: that form is kept where it is answered. Excluded is what
    has a cause of its own: key, quota, time, rate, content filter, context length. A router may
    answer 404 where no server of a model takes a schema, a proxy 403 or 413.
    """
    return (
        isinstance(error, openai.APIStatusError)
        and 400 <= error.status_code < 500
        and error.status_code not in (401, 402, 408, 429)
        and error_code(error) not in ("content_filter", "content_policy_violation", QUOTA, TOO_LONG)
    )


def raise_if_quota_is_spent(error: openai.APIStatusError) -> None:
    """Raise ProviderError for 402 and the code `insufficient_quota`, whatever its status."""
    kinds = {error_code(error), _type_of(error)}
    if error.status_code == 402 or not QUOTA_CODES.isdisjoint(kinds):
        raise ProviderError(
            f"the server reports that the quota is spent: {error.message}",
            "add credit, then resume",
            code="quota_spent",
        ) from error


def raise_if_sign_in(error: Exception, server: str) -> None:
    """Raise ProviderError for a page on which a person is to sign in."""
    if isinstance(error, Page) and error.asks_to_sign_in:
        raise ProviderError(
            f"{server} answers with a page to sign in ({error.title!r})",
            "sign in to the network or proxy that sent it, or give the address and the key of an "
            "API behind it, then resume",
            code="server_wants_sign_in",
        ) from error


def only_pages(error: Page, servers: str) -> ProviderError:
    """The error that stops work whose server has sent nothing but pages."""
    return ProviderError(
        f"{servers} answers with a page ({error.title!r}) and has given no other answer",
        "check the address: that of an API often ends with /v1; then resume",
        code="server_sends_pages",
    )


def wrong_key(error: openai.APIStatusError) -> ProviderError:
    """The error that stops a run for 401 and 403."""
    return ProviderError(
        f"the server refuses the key ({error.status_code})",
        "check OPENAI_API_KEY, or the key of the connection, then resume",
        code="server_refuses_key",
    )


def error_code(error: openai.APIError) -> str:
    """The code of an error's body, or its type; empty without either."""
    body = error.body if isinstance(error.body, dict) else {}
    return str(error.code or body.get("type") or "")


def refuses_limit_name(error: Exception) -> bool:
    """Whether a server refuses the name under which it is sent the limit of output tokens."""
    if not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
        return False
    named = error.param or error.message
    return any(name in named for name in LIMIT_NAMES)


def max_retry_after() -> float:
    """The longest wait that a server may request: INF_MAX_RETRY_AFTER_SECONDS or ten minutes.

    Raises BadInput for a value that is no number of seconds.
    """
    given = os.environ.get("INF_MAX_RETRY_AFTER_SECONDS") or str(MAX_RETRY_AFTER_SECONDS)
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not (math.isfinite(seconds) and seconds >= 0):
        raise BadInput(
            f"INF_MAX_RETRY_AFTER_SECONDS is {given!r}",
            "give a number of seconds",
            code="environment_value_invalid",
        )
    return seconds


def retry_after_seconds(error: openai.APIStatusError, ceiling: float | None = None) -> float | None:
    """Seconds to wait as the server requests, as a number or a date; None without a request.

    At most `ceiling`, by default `max_retry_after()`.
    """
    headers = error.response.headers
    if ceiling is None:
        ceiling = max_retry_after()
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        requested = headers.get(name)
        if requested is None:
            continue
        try:
            seconds = float(requested) * factor
        except ValueError:
            try:
                seconds = (parsedate_to_datetime(requested) - utc_now()).total_seconds()
            except (ValueError, TypeError):
                continue
        if math.isfinite(seconds):
            return min(max(0.0, seconds), ceiling)
    return None
