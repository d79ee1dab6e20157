"""The Hugging Face Hub: the token's owner, and its errors translated.

The token comes from the environment (HF_TOKEN) only; it is never stored, logged or put into a job.
`HF_ENDPOINT` names another server with the Hub's protocol.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from db.errors import BadInput, InfError, NotFound, Refused

TOKEN = "HF_TOKEN"
NOTHING_IMPORTED = "Nothing was imported: run it again"
UPLOAD_RESUMES = "What was uploaded is not uploaded again: run it again, or resume the job"


class HubError(InfError):
    """The Hub refused, or cannot be reached."""


def connect() -> tuple[Any, dict[str, Any]]:
    """The Hub's API with the environment's token, and the Hub's whoami of its owner.

    Called before any work begins. Raises Refused without a token, HubError for one that is invalid
    or may not write.
    """
    from huggingface_hub import HfApi

    _bars_only_on_a_terminal()
    token = os.environ.get(TOKEN, "").strip()
    if not token:
        raise Refused(
            "no token for the Hub",
            f"set {TOKEN} to one with the right to write (huggingface.co/settings/tokens)",
            code="hub_token_missing",
        )
    api = HfApi(token=token)
    with translated_errors("signing in"):
        whoami = api.whoami()
    if not _may_write(whoami):
        raise HubError(
            f"the token of {whoami.get('name')!r} may only read",
            f"make one with the right to write (huggingface.co/settings/tokens) and set {TOKEN}",
            code="token_without_write_right",
        )
    return api, whoami


def require_may_write(whoami: dict[str, Any], repo_type: str, repo: str) -> None:
    """Raise Refused if the token's owner, or its scope, may not write to the repository.

    `whoami` is the Hub's answer. A fine-grained token is judged by its scopes alone: it need not
    include the organisations of its owner.
    """
    owner = repo.split("/")[0]
    scopes = _write_scopes(whoami)
    if scopes is not None:
        entities = [scope.get("entity", {}) for scope in scopes]
        if not any(_covers(entity, repo_type, repo) for entity in entities):
            names = sorted(str(entity.get("name")) for entity in entities)
            raise Refused(
                f"the token may not write to {repo}: its scope is {', '.join(names)}",
                f"Name one of them, or give the token the right to write to {owner}",
                code="token_without_write_right",
            )
        return
    ours = [str(whoami.get("name")), *(str(org.get("name")) for org in whoami.get("orgs", []))]
    if owner.casefold() not in {name.casefold() for name in ours}:
        raise Refused(
            f"{repo} belongs to another account: the token of {ours[0]!r} may only write to "
            f"{', '.join(ours)}",
            "Name a repository there, or push to an existing one with `pull_request=`",
            code="repository_of_another_account",
        )


def has_token() -> bool:
    """Whether the environment has a token."""
    return bool(os.environ.get(TOKEN, "").strip())


def reading_api() -> Any:
    """The Hub's API for reading: with the environment's token if there is one."""
    from huggingface_hub import HfApi

    _bars_only_on_a_terminal()
    return HfApi(token=os.environ.get(TOKEN, "").strip() or False)


def _bars_only_on_a_terminal() -> None:
    """Disable huggingface_hub's progress bars in logs and pipes, unless set by the environment."""
    from huggingface_hub import constants
    from huggingface_hub.utils.tqdm import disable_progress_bars

    if constants.HF_HUB_DISABLE_PROGRESS_BARS is None and not sys.stderr.isatty():
        disable_progress_bars()


@contextmanager
def translated_errors(doing: str, *, pulling: bool = False) -> Iterator[None]:
    """Translate errors of `huggingface_hub`; `doing` names the action, `pulling` the direction."""
    import httpx2
    from huggingface_hub import errors

    try:
        yield
    except errors.OfflineModeIsEnabled as error:
        raise HubError(
            f"{doing}: HF_HUB_OFFLINE is set, so the Hub is not used",
            "unset it, then run it again",
            code="hub_offline",
        ) from error
    except errors.HFValidationError as error:
        raise BadInput(
            f"{doing}: {error}", "A repository is named USER/NAME", code="repository_name_invalid"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise NotFound(
            f"{doing}: no such revision on the Hub",
            "Give a branch, a tag or a commit of it by `revision=`",
            code="hub_revision_unknown",
        ) from error
    except errors.RepositoryNotFoundError as error:
        status = error.response.status_code
        if status == 401:
            raise HubError(*_reason(doing, 401, pulling), code="hub_refused") from error
        raise NotFound(
            f"{doing}: no such repository on the Hub, or a private one that the token cannot see",
            "Check its name; for a private one set HF_TOKEN to a token that sees it",
            code="hub_repository_unknown",
        ) from error
    except errors.HfHubHTTPError as error:
        raise HubError(
            *_reason(doing, error.response.status_code, pulling, _server_message(error)),
            code="hub_refused",
        ) from error
    except ValueError as error:
        # of a card that the Hub does not accept, before anything is uploaded
        if "README.md" not in str(error):
            raise
        raise HubError(
            f"{doing}: the Hub refuses the card. {error}",
            "correct what it names, then run it again",
            code="hub_card_refused",
        ) from error
    except RuntimeError as error:  # huggingface_hub wraps the error of a single file
        if not isinstance(error.__cause__, Exception):
            raise
        with translated_errors(f"{doing}: {error}", pulling=pulling):
            raise error.__cause__ from None
    except (httpx2.HTTPError, OSError) as error:
        raise HubError(
            f"{doing}: the Hub cannot be reached ({error or type(error).__name__})",
            NOTHING_IMPORTED if pulling else UPLOAD_RESUMES,
            code="hub_unreachable",
        ) from error


def _reason(doing: str, status: int, pulling: bool, answer: str = "") -> tuple[str, str]:
    """The message, the Hub's own `answer` with it, and the remedy."""
    message, remedy = {**ANSWERS, **(WHILE_PULLING if pulling else WHILE_PUSHING)}.get(status) or (
        SERVER_ERROR if status >= 500 else UNKNOWN
    )
    return f"{doing}: {message.format(status)}{answer}", remedy


SERVER_ERROR = ("the Hub has an internal error (status {})", "run it again later")
UNKNOWN = ("the Hub answered with status {}", "look at its message, then run it again")
ANSWERS = {
    401: ("the token is not valid", f"set {TOKEN} to a valid one"),
    404: ("not found", "look at the name of the repository"),
}
WHILE_PULLING = {
    403: ("it may not be read", f"set {TOKEN} to a token that may"),
    429: ("too many requests", "wait a few minutes, then run it again"),
}
WHILE_PUSHING = {
    402: ("the account's plan does not allow it", "change the plan, or push to another account"),
    403: (
        "the token may not do this here (its scope, or the repository is another account's)",
        f"set {TOKEN} to a token that may, or name another repository",
    ),
    409: ("the Hub reports a conflicting change", "check the difference again with `dry_run=`"),
    412: (
        "another user has pushed to the repository",
        "check the difference again with `dry_run=`",
    ),
    413: ("too large for the Hub", "push a smaller release or model"),
    429: ("too many requests", "wait a few minutes, then run it again or resume the job"),
    507: ("the account's storage is full", "free some, or push to another account"),
}


def _server_message(error: Any) -> str:
    message = getattr(error, "server_message", None)
    return f". The Hub's message: {message}" if message else ""


def _write_scopes(whoami: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The scopes in which a fine-grained token may write, None for any other token."""
    token = whoami.get("auth", {}).get("accessToken", {})
    if token.get("role") != "fineGrained":
        return None
    scopes = token.get("fineGrained", {}).get("scoped", [])
    return [scope for scope in scopes if "repo.write" in scope.get("permissions", [])]


def _may_write(whoami: dict[str, Any]) -> bool:
    scopes = _write_scopes(whoami)
    if scopes is not None:
        return bool(scopes)
    return bool(whoami.get("auth", {}).get("accessToken", {}).get("role") != "read")


def _covers(entity: dict[str, Any], repo_type: str, repo: str) -> bool:
    """Whether a scope's entity is the repository, or the user or organisation that owns it."""
    name = str(entity.get("name", "")).casefold()
    if entity.get("type") in ("user", "org"):
        return name == repo.split("/")[0].casefold()
    return entity.get("type") == repo_type and name == repo.casefold()
