"""Sign-in through an OpenID provider (`st.login`), if `.streamlit/secrets.toml` configures one.

Streamlit talks to the provider and stores its claims in a signed cookie of its own. That cookie is
read once, at `/sign-in`, for the e-mail address; the account with that address gets our session
cookie, and Streamlit's is deleted. Roles, disabled accounts and sign-out on all devices therefore
work the same for every account.
"""

import json
import os
import time
from collections.abc import Mapping
from typing import Any

import streamlit as st
from starlette.responses import Response
from streamlit.auth_util import get_cookie_with_chunks
from streamlit.web.server.server_util import get_cookie_secret
from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
from streamlit.web.server.starlette.starlette_server_config import (
    TOKENS_COOKIE_NAME,
    USER_COOKIE_NAME,
)

from db.errors import Refused

PARAMETER = "openid"
DEFAULT = "default"
TRUST = "INF_OPENID_TRUST_EMAIL"


def providers() -> list[str]:
    """The configured providers: "default" for keys in [auth] itself, names for [auth.NAME]."""
    if not st.secrets.load_if_toml_exists():
        return []
    found: Mapping[str, Any] = st.secrets.get("auth", {})
    named = [name for name, value in found.items() if isinstance(value, Mapping)]
    named = [name for name in named if "client_id" in found[name]]
    return ([DEFAULT] if "client_id" in found else []) + named


def claims_of(cookies: Mapping[str, str]) -> dict[str, Any] | None:
    """The claims of the user who just returned from the provider; None without a valid cookie."""
    if USER_COOKIE_NAME not in cookies or not providers():
        return None
    secret = get_cookie_secret()

    def decoded(name: str) -> bytes | None:
        value = cookies.get(name)
        if value is None:
            return None
        plain: bytes | None = decode_signed_value(secret, name, value.encode("latin-1", "replace"))
        return plain

    found = get_cookie_with_chunks(decoded, USER_COOKIE_NAME)
    if found is None:
        return None
    claims: dict[str, Any] = json.loads(found)
    return claims


def email_of(claims: Mapping[str, Any]) -> str:
    """The verified e-mail address in the claims.

    Raises Refused if there is none, if it is not verified (INF_OPENID_TRUST_EMAIL=1 accepts claims
    without `email_verified`), and if the claims have expired.
    """
    if float(claims.get("exp", 0)) < time.time():
        raise Refused(
            "the sign-in at the provider has expired: sign in again", code="openid_expired"
        )
    email = str(claims.get("email") or "")
    if not email:
        raise Refused(
            "the provider sent no e-mail address: sign in with a password", code="openid_no_email"
        )
    is_trusted = "email_verified" not in claims and os.environ.get(TRUST) == "1"
    if claims.get("email_verified") is not True and not is_trusted:
        raise Refused(
            f"the provider has not verified the address {email}",
            code="openid_unverified",
            email=email,
        )
    return email


def forget(answer: Response, cookies: Mapping[str, str]) -> None:
    """Delete Streamlit's cookies with the claims and tokens, chunks included."""
    for name in cookies:
        if name.startswith((USER_COOKIE_NAME, TOKENS_COOKIE_NAME)):
            answer.delete_cookie(name, httponly=True, samesite="lax")


def go_to_provider() -> None:
    """Send the browser to the provider that the URL names, if any (called in the page script)."""
    wanted = st.query_params.get(PARAMETER)
    if wanted in providers():
        st.login(None if wanted == DEFAULT else wanted)
