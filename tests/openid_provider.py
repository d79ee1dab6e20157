"""A small OpenID provider on this machine: discovery, authorization, token and keys.

It checks what a real one checks (client, redirect address, one-time code, PKCE, the client's
secret) and signs its ID tokens with a key of its own. Who "signs in" there is `claims`.
"""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "inf-studio", "the secret of the client"


class Provider:
    """The provider's state: its address, who signs in next and how, and the errors clients made."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.claims: dict[str, Any] = {}
        self.error = ""  # what the person's answer there leads to: "access_denied"
        self.announces_pkce = True
        self.complaints: list[str] = []
        self.codes: dict[str, dict[str, str]] = {}
        self.key = RSAKey.generate_key(2048, parameters={"kid": "one", "use": "sig"})

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            **({"code_challenge_methods_supported": ["S256"]} if self.announces_pkce else {}),
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """The address to which the browser goes back, with a code that works once."""
        if asked.get("client_id") != CLIENT or "openid" not in asked.get("scope", "").split():
            self.complaints.append(f"authorize: {asked}")
        if asked.get("code_challenge_method") != "S256":
            self.complaints.append("authorize: no PKCE")
        if self.error:
            refusal = {"error": self.error, "state": asked["state"]}
            return f"{asked['redirect_uri']}?{urlencode(refusal)}"
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, given: dict[str, str], authorization: str) -> dict[str, Any]:
        """The ID token of a code. Raises ValueError for whatever a provider refuses."""
        basic = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        asked = self.codes.pop(given.get("code", ""), None)
        if basic != f"{CLIENT}:{SECRET}" or asked is None:
            raise ValueError("client or code")
        digest = hashlib.sha256(given["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            raise ValueError("code_verifier")
        if given["redirect_uri"] != asked["redirect_uri"]:
            raise ValueError("redirect_uri")
        now = int(time.time())
        claims = {
            "iss": self.url,
            "sub": "somebody",
            "aud": CLIENT,
            "iat": now,
            "exp": now + 3600,
            "nonce": asked["nonce"],
            **self.claims,
        }
        signed = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)
        return {"access_token": "at", "token_type": "Bearer", "expires_in": 60, "id_token": signed}


@contextmanager
def openid_provider() -> Iterator[Provider]:
    """The provider, listening until the end."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            asked = {name: values[0] for name, values in parse_qs(address.query).items()}
            if address.path == "/.well-known/openid-configuration":
                self.answer(provider.discovery())
            elif address.path == "/jwks":
                self.answer({"keys": [provider.key.as_dict(private=False)]})
            elif address.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", provider.authorize(asked))
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                self.send_error(404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            given = {name: values[0] for name, values in parse_qs(body).items()}
            try:
                self.answer(provider.token(given, self.headers.get("Authorization", "")))
            except (ValueError, KeyError) as error:
                provider.complaints.append(f"token: {error}")
                self.answer({"error": "invalid_grant"}, 400)

        def answer(self, body: dict[str, Any], status: int = 200) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet: what matters is in `complaints`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
