"""Signing in with a browser through a provider that others wrote (oidc-provider-mock)."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect, sync_playwright

INF = os.environ["INF_CONFORMANCE_INF"]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECRETS = """
[auth]
redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
cookie_secret = "a secret for cookies, long enough"
client_id = "inf"
client_secret = "secret"
server_metadata_url = "{url}/.well-known/openid-configuration"
"""
MILLISECONDS = 60_000


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def program(words: list[str], url: str, folder: Path, **environment: str) -> Iterator[str]:
    """A server that ends with the block, once it answers."""
    running = subprocess.Popen(
        words, cwd=folder, env=os.environ | environment, stdin=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            assert running.poll() is None, words
            try:
                httpx.get(url, timeout=30)
                break
            except httpx.TransportError:
                time.sleep(0.2)
        yield url
    finally:
        running.terminate()
        running.wait(30)


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
    with program(words, f"http://127.0.0.1:{port}", tmp_path) as url:
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
    with program(words, f"http://127.0.0.1:{port}", tmp_path, **own) as url:
        yield url


@pytest.mark.parametrize(("person", "is_let_in"), [("ann", True), ("eve", False)])
def test_who_has_a_verified_address_gets_in(server: str, person: str, is_let_in: bool) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = browser.new_page()
        page.set_default_timeout(MILLISECONDS)
        page.goto(f"{server}/judge")
        page.get_by_role("link", name="Sign in with OpenID").click()
        page.locator("input[name=sub]").fill(person)
        page.get_by_role("button", name="Authorize").click()
        if is_let_in:
            page.wait_for_url("**/judge")
            expect(page.get_by_text("ann · annotator")).to_be_visible(timeout=MILLISECONDS)
        else:
            expect(page.get_by_role("link", name="Sign in with OpenID")).to_be_visible()
            expect(page.get_by_role("alert")).to_be_visible()
        browser.close()
