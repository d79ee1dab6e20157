"""Sign-in through an OpenID provider, if `.streamlit/secrets.toml` configures one.

Authlib talks to the provider (authorization code with PKCE, S256); the address, state and verifier
of a sign-in that is under way are in a signed cookie until the browser is back. The account with
the verified e-mail address then gets our session cookie: roles, disabled accounts and sign-out on
all devices work the same for every account.
"""

import logging
import os
from collections.abc import Mapping
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import Response

from db.errors import Refused
from db.extras import missing_extra

log = logging.getLogger("inf.app")
DEFAULT = "default"
TRUST = "INF_OPENID_TRUST_EMAIL"
MAX_REASON = 60


def providers() -> list[str]:
    """The configured providers: "default" for keys in [auth] itself, names for [auth.NAME]."""
    found = _settings()
    named = [name for name, value in found.items() if isinstance(value, Mapping)]
    named = [name for name in named if "client_id" in found[name]]
    return ([DEFAULT] if "client_id" in found else []) + named


async def to_provider(request: Request, provider: str) -> Response:
    """Redirect to the provider. Raises Refused where it cannot be reached, or the extra `openid` is
    missing."""
    try:
        answer: Response = await _client(provider).authorize_redirect(request, _redirect_uri())
    except ModuleNotFoundError as error:
        log.error("OpenID is configured, but %s", missing_extra(error))
        raise _failed("this server needs: pip install 'inf-studio[openid]'") from error
    except Exception as error:  # of HTTP, JSON or Authlib: the provider is not what is configured
        log.warning("the OpenID provider %s cannot be used: %r", provider, error)
        raise _failed(type(error).__name__) from error
    return answer


async def return_from_provider(request: Request) -> str:
    """The verified e-mail address of the person who returns.

    Raises Refused: the person declined, the provider failed or vouches for no address, or this
    browser has no such sign-in under way.
    """
    state = request.query_params.get("state", "")
    under_way = [name for name in providers() if f"_state_{name}_{state}" in request.session]
    if reason := request.query_params.get("error"):
        if reason == "access_denied":
            raise Refused(
                "the sign-in was declined at the provider",
                "sign in again, or with a password",
                code="openid_denied",
            )
        raise _failed(reason)
    if not under_way:
        raise Refused(
            "this sign-in is not under way in this browser", "sign in again", code="openid_expired"
        )
    try:
        token = await _client(under_way[0]).authorize_access_token(request)
    except Exception as error:  # as above
        log.warning("the OpenID sign-in at %s failed: %r", under_way[0], error)
        raise _failed(type(error).__name__) from error
    return email_of(token.get("userinfo") or {})


def email_of(claims: Mapping[str, Any]) -> str:
    """The verified e-mail address in the claims.

    Some providers send `email_verified` as a text. Raises Refused if there is no address, or if it
    is not verified (INF_OPENID_TRUST_EMAIL=1 accepts claims without `email_verified`).
    """
    email = str(claims.get("email") or "")
    if not email:
        raise Refused(
            "the provider sent no e-mail address", "sign in with a password", code="openid_no_email"
        )
    is_trusted = "email_verified" not in claims and os.environ.get(TRUST) == "1"
    if claims.get("email_verified") not in (True, "true", "True") and not is_trusted:
        raise Refused(
            f"the provider has not verified the address {email}",
            "verify it there, or sign in with a password",
            code="openid_unverified",
            email=email,
        )
    return email


def _settings() -> Mapping[str, Any]:
    if not st.secrets.load_if_toml_exists():
        return {}
    found: Mapping[str, Any] = st.secrets.get("auth", {})
    return found


def _redirect_uri() -> str:
    """The address to which the provider sends the browser back; `{port}` is the server's."""
    return str(_settings()["redirect_uri"]).replace("{port}", str(st.get_option("server.port")))


def _client(provider: str) -> Any:
    from authlib.integrations.starlette_client import OAuth  # of the extra `openid`

    settings = _settings() if provider == DEFAULT else _settings()[provider]
    given = dict(settings.get("client_kwargs", {}))
    more = {"scope": "openid email profile", "prompt": "select_account"} | given
    oauth = OAuth()
    oauth.register(
        provider,
        client_id=settings["client_id"],
        client_secret=settings.get("client_secret"),
        server_metadata_url=settings["server_metadata_url"],
        # also where a provider does not announce it: one that does not know it ignores it
        client_kwargs={**more, "code_challenge_method": "S256"},
    )
    return oauth.create_client(provider)


def _failed(reason: str) -> Refused:
    return Refused(
        f"the sign-in at the provider failed ({reason[:MAX_REASON]})",
        "try again, or sign in with a password",
        code="openid_failed",
        reason=reason[:MAX_REASON],
    )
