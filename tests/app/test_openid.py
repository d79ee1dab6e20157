"""Sign-in through an OpenID provider, over HTTP: a real server, and the provider of these tests."""

import asyncio
import importlib.metadata
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from live_server import Server, serving
from openid_provider import CLIENT, SECRET, Provider, openid_provider
from packaging.requirements import Requirement
from starlette.requests import Request

from app.access import openid
from app.access.identity import COOKIE
from db.errors import Refused
from db.people.accounts import add_account
from db.people.fields import set_field
from db.store.store import open_store

ROOT = Path(__file__).resolve().parents[2]
HTML = {"accept": "text/html"}
SECRETS = """
[auth]
redirect_uri = "http://127.0.0.1:{{port}}/oauth2callback"
cookie_secret = "a secret for cookies, long enough"
client_id = "{client}"
client_secret = "{secret}"
server_metadata_url = "{url}/.well-known/openid-configuration"
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with openid_provider() as running:
        yield running


@pytest.fixture(scope="module")
def server(
    sqlite_template: Path, provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("openid")
    shutil.copy(sqlite_template, folder / "inf.db")
    store = open_store(f"sqlite:///{folder / 'inf.db'}")
    with store.write() as session:
        add_account(session, "root", "correct horse battery", role="admin", actor="test")
        add_account(session, "ann", None, role="annotator", actor="root")
        set_field(session, "ann", "email", "ann@example.org", actor="root")
        session.commit()
    store.close()
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "secrets.toml").write_text(
        SECRETS.format(client=CLIENT, secret=SECRET, url=provider.url)
    )
    with serving(folder, INF_HOME=str(folder), INF_DATABASE_URL=store.url) as running:
        yield running


def through_provider(server: Server, provider: Provider) -> httpx.Response:
    """The answer to a browser's whole way, up to the first page of ours after the provider."""
    provider.complaints.clear()
    with httpx.Client(headers=HTML, timeout=60) as client:
        answer = client.get(f"{server.url}/sign-in/openid?with=default&next=/judge")
        while answer.is_redirect:
            place = str(answer.next_request.url) if answer.next_request else ""
            if urlsplit(place).path == "/judge":
                break
            answer = client.get(place)
        answer.extensions["cookies"] = dict(client.cookies)
    return answer


def is_signed_in(answer: httpx.Response) -> bool:
    return COOKIE in answer.extensions["cookies"]


@pytest.mark.parametrize("verified", [True, "true"])
@pytest.mark.parametrize("announced", [True, False], ids=["announces PKCE", "does not"])
def test_whom_the_provider_vouches_for_gets_in_with_a_verifier(
    server: Server, provider: Provider, verified: object, announced: bool
) -> None:
    provider.claims = {"email": "Ann@example.org", "email_verified": verified}
    provider.announces_pkce = announced
    answer = through_provider(server, provider)
    assert provider.complaints == []
    assert answer.status_code == 303 and answer.headers["location"] == "/judge"
    assert is_signed_in(answer)


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"email": "eve@example.org", "email_verified": True}, "account here has the address"),
        ({"email": "ann@example.org", "email_verified": False}, "not verified"),
        ({"email": "ann@example.org", "email_verified": "false"}, "not verified"),
        ({"email": "ann@example.org"}, "not verified"),
        ({}, "no e-mail address"),
        ({"email": "ann@example.org", "email_verified": True, "exp": 1}, "failed"),
        ({"email": "ann@example.org", "email_verified": True, "aud": "another"}, "failed"),
        ({"email": "ann@example.org", "email_verified": True, "nonce": "another"}, "failed"),
    ],
)
def test_others_are_refused_with_a_reason(
    server: Server, provider: Provider, claims: dict[str, object], message: str
) -> None:
    provider.claims = claims
    answer = through_provider(server, provider)
    assert answer.status_code == 403 and message in answer.text
    assert 'value="/judge"' in answer.text, "the form goes on to where they wanted to go"
    assert not is_signed_in(answer)


@pytest.mark.parametrize(
    ("error", "message"),
    [("access_denied", "declined at the provider"), ("server_error", "failed (server_error)")],
)
def test_denying_at_the_provider_leads_to_the_form_with_a_message(
    server: Server, provider: Provider, error: str, message: str
) -> None:
    provider.error = error
    try:
        answer = through_provider(server, provider)
    finally:
        provider.error = ""
    assert answer.status_code == 403 and message in answer.text
    assert "Sign in with OpenID" in answer.text and not is_signed_in(answer)


def test_an_answer_that_this_browser_did_not_ask_for_is_refused(
    server: Server, provider: Provider
) -> None:
    """The code of another's sign-in, planted by a link: its state is not of this browser."""
    provider.claims = {"email": "ann@example.org", "email_verified": True}
    with httpx.Client(headers=HTML, timeout=60) as attacker:
        answer = attacker.get(f"{server.url}/sign-in/openid?with=default")
        callback = attacker.get(answer.headers["location"]).headers["location"]
    with httpx.Client(headers=HTML, timeout=60) as victim:
        answer = victim.get(callback)
        assert answer.status_code == 403 and COOKIE not in victim.cookies
        victim.get(f"{server.url}/sign-in/openid?with=default")
        assert victim.get(callback).status_code == 403 and COOKIE not in victim.cookies


def test_streamlit_is_pinned_to_the_minor_version_that_these_tests_run_with() -> None:
    """Internals may move with any minor version: the upper limit is the next one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = next(
        Requirement(line) for line in project["dependencies"] if line.startswith("streamlit")
    )
    installed = importlib.metadata.version("streamlit")
    major, minor = (int(part) for part in installed.split(".")[:2])
    assert declared.specifier.contains(installed)
    assert not declared.specifier.contains(f"{major}.{minor + 1}.0")
    assert not declared.specifier.contains(f"{major}.{minor - 1}.0")


def test_streamlits_internals_are_imported_by_three_modules() -> None:
    internal = re.compile(r"^\s*(?:from|import) streamlit\.(?!delta_generator\b)", re.MULTILINE)
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "app").rglob("*.py")
        if internal.search(path.read_text())
    ]
    assert sorted(found) == [
        "app/access/scope.py",
        "app/server/uploads.py",
        "app/server/warm_up.py",
    ]


def test_a_missing_extra_is_a_sentence_that_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was "the sign-in at the provider failed (ModuleNotFoundError)"."""
    monkeypatch.setitem(sys.modules, "authlib.integrations.starlette_client", None)
    request = Request({"type": "http", "session": {}, "headers": [], "query_string": b""})
    with pytest.raises(Refused, match=r"pip install 'inf-studio\[openid\]'") as caught:
        asyncio.run(openid.to_provider(request, openid.DEFAULT))
    assert "ModuleNotFoundError" not in str(caught.value) and "password" in str(caught.value)
