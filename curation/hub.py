"""The Hugging Face Hub: who we are there, and its errors in our words.

The token comes from the environment (HF_TOKEN) and from nowhere else; it is never stored, logged or
put into a job. `HF_ENDPOINT` names another server that speaks the Hub's protocol.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from db.errors import BadInput, InfError, NotFound, Refused

TOKEN = "HF_TOKEN"


class HubError(InfError):
    """The Hub refused, or cannot be reached."""


def connect(*, writing: bool) -> tuple[Any, str]:
    """The Hub's API under the environment's token, and the name of its owner.

    Asks the Hub who that is and what the token may do, before any work begins. Raises Refused
    without a token, HubError for one that is not valid or may not write.
    """
    from huggingface_hub import HfApi

    token = os.environ.get(TOKEN, "").strip()
    if not token:
        raise Refused(
            f"no token for the Hub: set {TOKEN} to one with the right to write "
            "(huggingface.co/settings/tokens)"
        )
    api = HfApi(token=token)
    with in_our_words("signing in"):
        told = api.whoami()
    if writing and not _may_write(told):
        raise HubError(
            f"the token of {told.get('name')!r} may only read: make one with the right to write "
            f"(huggingface.co/settings/tokens) and set {TOKEN}"
        )
    return api, str(told["name"])


def reading_api() -> Any:
    """The Hub's API for reading: with the environment's token where there is one."""
    from huggingface_hub import HfApi

    return HfApi(token=os.environ.get(TOKEN, "").strip() or False)


@contextmanager
def in_our_words(doing: str) -> Iterator[None]:
    """Translate what `huggingface_hub` raises; `doing` says at what."""
    import httpx2
    from huggingface_hub import errors

    try:
        yield
    except errors.OfflineModeIsEnabled as error:
        raise HubError(f"{doing}: HF_HUB_OFFLINE is set, so the Hub is not asked") from error
    except errors.HFValidationError as error:
        raise BadInput(f"{doing}: {error}. A repository is named USER/NAME") from error
    except errors.RevisionNotFoundError as error:
        raise NotFound(f"{doing}: no such revision on the Hub") from error
    except errors.RepositoryNotFoundError as error:
        status = error.response.status_code
        if status == 401:
            raise HubError(f"{doing}: {_words(401)}") from error
        raise NotFound(
            f"{doing}: no such repository on the Hub, or a private one that the token does not see"
        ) from error
    except errors.HfHubHTTPError as error:
        raise HubError(f"{doing}: {_words(error.response.status_code)}{_said(error)}") from error
    except RuntimeError as error:  # huggingface_hub wraps what went wrong with one file
        if not isinstance(error.__cause__, Exception):
            raise
        with in_our_words(f"{doing}: {error}"):
            raise error.__cause__ from None
    except (httpx2.HTTPError, OSError) as error:
        raise HubError(
            f"{doing}: the Hub cannot be reached ({error or type(error).__name__}). What was "
            "uploaded is not uploaded again: run it again, or resume the job"
        ) from error


def _words(status: int) -> str:
    words = {
        401: f"the token is not valid: set {TOKEN} to one that is",
        402: "the account's plan does not allow it",
        403: "the token may not do this here (its scope, or the repository is another's)",
        404: "not found",
        409: "the Hub says that it is taken or changed meanwhile: look at the difference again "
        "with --dry-run",
        412: "somebody pushed to the repository meanwhile: look at the difference again with "
        "--dry-run",
        413: "too large for the Hub",
        429: "too many requests: wait a few minutes, then run it again or resume the job",
        507: "the account's storage is full: free some, or push to another account",
    }
    if status >= 500 and status not in words:
        return f"the Hub has trouble of its own (status {status}): run it again later"
    return words.get(status, f"the Hub answered with status {status}")


def _said(error: Any) -> str:
    told = getattr(error, "server_message", None)
    return f". It says: {told}" if told else ""


def _may_write(told: dict[str, Any]) -> bool:
    token = told.get("auth", {}).get("accessToken", {})
    if token.get("role") == "fineGrained":
        scopes = token.get("fineGrained", {}).get("scoped", [])
        return any("repo.write" in scope.get("permissions", []) for scope in scopes)
    return bool(token.get("role") != "read")
