"""Signing in through an OpenID provider in a real browser; the provider runs in this process."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from browser import PATIENCE, settled
from live_server import Server, serving
from openid_provider import CLIENT, SECRET, Provider, openid_provider
from playwright.sync_api import Browser, Page, expect

from app.access.identity import COOKIE
from db.events import list_events
from db.people.accounts import add_account, set_disabled
from db.people.fields import set_field
from db.store.store import Store, open_store

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]
SECRETS = """
[auth]
redirect_uri = "http://127.0.0.1:{{port}}/oauth2callback"
cookie_secret = "{cookie_secret}"
client_id = "{client}"
client_secret = "{secret}"
server_metadata_url = "{url}/.well-known/openid-configuration"
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with openid_provider() as running:
        yield running


@pytest.fixture(scope="module")
def team(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Accounts that only the provider lets in, beside an admin with a password."""
    folder = tmp_path_factory.mktemp("openid")
    shutil.copy(sqlite_template, folder / "inf.db")
    store = open_store(f"sqlite:///{folder / 'inf.db'}")
    with store.write() as session:
        add_account(session, "root", "correct horse battery", role="admin", actor="test")
        for name in ("ann", "bob"):
            add_account(session, name, None, role="annotator", actor="root")
            set_field(session, name, "email", f"{name}@Example.org", actor="root")
        set_disabled(session, "bob", True, actor="root")
        session.commit()
    yield store
    store.close()


@pytest.fixture(scope="module")
def server(team: Store, provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Server:
    folder = tmp_path_factory.mktemp("served")
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "secrets.toml").write_text(
        SECRETS.format(
            cookie_secret="a secret for cookies, long enough",
            client=CLIENT,
            secret=SECRET,
            url=provider.url,
        )
    )
    with serving(folder, INF_HOME=str(folder), INF_DATABASE_URL=team.url) as running:
        yield running


def go_through_provider(browser: Browser, server: Server, wanted: str) -> Page:
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{server.url}{wanted}")
    with page.expect_navigation():  # one, however often it is redirected
        page.get_by_role("link", name="Sign in with OpenID").click()
    return page


def cookies_of(page: Page) -> set[str]:
    return {str(cookie.get("name")) for cookie in page.context.cookies()}


def test_whom_the_provider_vouches_for_gets_in_and_lands_where_they_wanted_to_go(
    browser: Browser, server: Server, provider: Provider, team: Store
) -> None:
    provider.claims = {"email": "Ann@example.org", "email_verified": True}
    page = go_through_provider(browser, server, "/judge")
    page.wait_for_url("**/judge")
    settled(page)
    expect(page.get_by_text("ann · annotator")).to_be_visible()
    assert provider.complaints == []
    assert COOKIE in cookies_of(page)
    with team.read() as session:
        last = list_events(session, names=["sign-in"])[0][0]
    assert (last.actor, last.data["via"]) == ("ann", "openid")
    page.goto(f"{server.url}/sign-out")
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.goto(f"{server.url}/judge")
    expect(page.get_by_role("link", name="Sign in with OpenID")).to_be_visible()
    page.context.close()


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"email": "eve@example.org", "email_verified": True}, "account here has the address"),
        ({"email": "bob@example.org", "email_verified": True}, "account here has the address"),
        ({"email": "ann@example.org", "email_verified": False}, "not verified"),
        ({"email": "ann@example.org"}, "not verified"),
        ({}, "no e-mail address"),
    ],
    ids=["unknown", "disabled", "unverified", "unsaid", "no address"],
)
def test_others_are_refused_in_words_and_can_try_again(
    browser: Browser, server: Server, provider: Provider, claims: dict[str, object], words: str
) -> None:
    provider.claims = claims
    page = go_through_provider(browser, server, "/")
    expect(page.get_by_role("alert")).to_contain_text(words)
    assert COOKIE not in cookies_of(page)
    page.reload()
    expect(page.get_by_role("link", name="Sign in with OpenID")).to_be_visible()
    page.context.close()


def test_a_forged_cookie_an_unknown_provider_and_the_open_page_let_nobody_in(
    server: Server, team: Store
) -> None:
    html = {"accept": "text/html"}
    with httpx.Client(base_url=server.url) as client:
        assert client.get("/sign-in/openid?with=evil").status_code == 404
        client.cookies.set("_streamlit_user", '{"email": "ann@example.org"}')
        assert COOKIE not in client.get("/sign-in").cookies
        assert client.get("/oauth2callback?code=x&state=y").status_code == 403
        assert client.get("/", headers=html).status_code == 303
        assert client.get("/?openid=evil", headers=html).status_code == 303
        assert client.get("/?openid=default", headers=html).status_code == 303
        assert client.get("/_stcore/metrics").status_code == 401
    with httpx.Client(base_url=server.url) as client:
        answer = client.post("/sign-in", data={"name": "ann", "password": ""})
        assert answer.status_code == 401
