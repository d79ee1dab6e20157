"""Signing in with a browser through a provider that others wrote (oidc-provider-mock)."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import programs
import pytest
from browser import chromium_browser
from playwright.sync_api import expect
from programs import INF, free_port

SECRETS = """
[auth]
redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
cookie_secret = "a secret for cookies, long enough"
client_id = "inf"
client_secret = "secret"
server_metadata_url = "{url}/.well-known/openid-configuration"
"""


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[str]:
    port = free_port()
    people = [
        {"sub": name, "email": f"{name}@example.org", "email_verified": is_verified}
        for name, is_verified in (("ann", True), ("eve", False))
    ]
    command = str(Path(sys.executable).with_name("oidc-provider-mock"))
    claims = [f"--user-claims={json.dumps(person)}" for person in people]
    words = [command, "--port", str(port), *claims]
    with programs.server(words, f"http://127.0.0.1:{port}", folder=tmp_path) as url:
        yield url


@pytest.fixture
def server(provider: str, tmp_path: Path) -> Iterator[str]:
    port = free_port()
    home = tmp_path / "home"
    own = {"INF_HOME": str(home)}

    def inf(*words: str, typed: str = "") -> None:
        subprocess.run([INF, *words], env=os.environ | own, input=typed, text=True, check=True)

    inf("store", "upgrade")
    inf("people", "add", "root", "--role", "admin", typed="correct horse battery\n")
    for name in ("ann", "eve"):
        role = ("--role", "annotator", "--no-password")
        inf("people", "add", name, *role, "--email", f"{name}@example.org")
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "secrets.toml").write_text(SECRETS.format(port=port, url=provider))
    words = [INF, "serve", "--port", str(port)]
    with programs.server(words, f"http://127.0.0.1:{port}", folder=tmp_path, **own) as url:
        yield url


@pytest.mark.parametrize(("person", "is_let_in"), [("ann", True), ("eve", False)])
def test_who_has_a_verified_address_gets_in(server: str, person: str, is_let_in: bool) -> None:
    with chromium_browser() as browser:
        page = browser.new_page()
        page.goto(f"{server}/judge")
        page.get_by_role("link", name="Sign in with OpenID").click()
        page.locator("input[name=sub]").fill(person)
        page.get_by_role("button", name="Authorize").click()
        if is_let_in:
            page.wait_for_url("**/judge")
            expect(page.get_by_text("ann · annotator")).to_be_visible()
        else:
            expect(page.get_by_role("link", name="Sign in with OpenID")).to_be_visible()
            expect(page.get_by_role("alert")).to_be_visible()
