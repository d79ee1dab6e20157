"""The real server: start, memory, sign-in and sign-out over HTTP, what it refuses."""

import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from api_world import new_token
from conftest import Ran
from live_server import Server, serving
from starlette.routing import Route

from app.access.identity import COOKIE
from app.cli.serve import store_to_serve
from app.server.routes import ROUTES, _local_path
from db.errors import StoreBehind
from db.events import list_events
from db.people.accounts import add_account, get_account
from db.people.invitations import invite
from db.people.passwords import create_password_link
from db.people.sign_ins import list_sessions
from db.store import schema
from db.store.store import Store, open_store

HTML = {"accept": "text/html"}
PUBLIC = "http://studio.example"  # of a proxy that changes Host
PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def team_store(sqlite_template: Path, folder: Path) -> Store:
    """One store for the server that these tests share."""
    shutil.copy(sqlite_template, folder / "inf.db")
    store = open_store(f"sqlite:///{folder / 'inf.db'}")
    with store.write() as session:
        for name, role in (("ann", "annotator"), ("bob", "annotator"), ("root", "admin")):
            add_account(session, name, PASSWORD, role=role, actor="test")
        session.commit()
    return store


@pytest.fixture(scope="module")
def server(team_store: Store, folder: Path) -> Iterator[Server]:
    environment = {"INF_DATABASE_URL": team_store.url, "INF_PUBLIC_URL": PUBLIC}
    with serving(folder, INF_HOME=str(folder), **environment) as running:
        yield running


@contextmanager
def signed_in(server: Server, name: str = "ann") -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url) as client:
        answer = client.post("/sign-in", data={"name": name, "password": PASSWORD})
        assert answer.status_code == 303
        yield client


@pytest.mark.long
def test_an_answer_on_a_kept_connection_waits_for_no_acknowledgement(server: Server) -> None:
    """Nagle's algorithm holds the body of every such answer back for 40 ms, after its head."""
    seconds = []
    with httpx.Client(base_url=server.url) as client:
        for _ in range(25):
            seconds.append(client.get("/favicon.png").elapsed.total_seconds())
    assert min(seconds[5:]) < 0.035


def test_signing_in_sets_a_cookie_that_scripts_cannot_read_and_signing_out_takes_it_back(
    server: Server, team_store: Store
) -> None:
    with httpx.Client(base_url=server.url) as client:
        turned_away = client.get("/jobs?job=3", headers=HTML)
        assert turned_away.status_code == 303
        assert turned_away.headers["location"] == "/sign-in?next=%2Fjobs%3Fjob%3D3"
        assert client.get("/sign-in?next=/jobs").text.count('value="/jobs"') == 1
        wrong = client.post("/sign-in", data={"name": "ann", "password": "wrong horse"})
        assert wrong.status_code == 401 and "Wrong name or password" in wrong.text
        right = client.post("/sign-in", data={"name": "ann", "password": PASSWORD, "next": "/jobs"})
        assert right.status_code == 303 and right.headers["location"] == "/jobs"
        cookie = right.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=lax" in cookie and "max-age" in cookie
        assert client.get("/", headers=HTML).status_code == 200
        assert "<b>ann</b>" in client.get("/sign-out").text
        out = client.post("/sign-out", data={"where": "here"})
        assert out.headers["location"] == "/sign-in"
        assert client.get("/", headers=HTML).status_code == 303
    with team_store.read() as session:
        actions = [row.name for row in list_events(session)[0]]
    assert actions[:3] == ["sign-out", "sign-in", "sign-in.refused"]


def test_signing_out_on_all_devices_ends_the_other_sessions_too(server: Server) -> None:
    with signed_in(server) as here, signed_in(server) as there, signed_in(server, "root") as other:
        here.post("/sign-out", data={"where": "everywhere"})
        assert there.get("/", headers=HTML).status_code == 303
        assert other.get("/", headers=HTML).status_code == 200


def test_a_copied_cookie_is_worthless_after_sign_out(server: Server) -> None:
    with signed_in(server) as client, httpx.Client(base_url=server.url) as thief:
        thief.cookies.set(COOKIE, client.cookies[COOKIE])
        assert thief.get("/", headers=HTML).status_code == 200
        client.post("/sign-out", data={"where": "here"})
        assert thief.get("/", headers=HTML).status_code == 303


def test_a_person_lists_and_ends_their_sessions_and_changes_their_password(
    server: Server, team_store: Store
) -> None:
    with team_store.write() as session:
        gus = add_account(session, "gus", PASSWORD, role="annotator", actor="test")
        session.commit()
        ann = get_account(session, "ann").id
    with signed_in(server, "gus") as here, signed_in(server, "gus") as there:
        with signed_in(server, "ann"), team_store.read() as session:
            (theirs, mine) = (list_sessions(session, ann)[0].id, list_sessions(session, gus.id))
        assert len(mine) == 2
        page = here.get("/account").text
        assert page.count("End session") == 2 and "this one" in page
        assert here.post("/account/session", data={"session": str(theirs)}).status_code == 400
        assert there.get("/", headers=HTML).status_code == 200
        here.post("/account/session", data={"session": str(mine[0].id)})  # `there` came last
        assert there.get("/", headers=HTML).status_code == 303
        wrong = {"current": "wrong horse", "password": "a new long password"}
        assert here.post("/account/password", data=wrong).status_code == 400
        common = {"current": PASSWORD, "password": "passwordpassword"}
        assert "first that are guessed" in here.post("/account/password", data=common).text
        before = here.cookies[COOKIE]
        good = {"current": PASSWORD, "password": "a new long password"}
        assert here.post("/account/password", data=good).status_code == 303
        assert here.get("/", headers=HTML).status_code == 200
        old = {"cookie": f"{COOKIE}={before}", **HTML}
        assert httpx.get(server.url, headers=old).status_code == 303


def test_a_one_time_link_sets_a_password_and_signs_in(server: Server, team_store: Store) -> None:
    with team_store.write() as session:
        hal = add_account(session, "hal", PASSWORD, role="annotator", actor="test")
        path = f"/password/{create_password_link(session, hal, actor='root')}"
        session.commit()
    with httpx.Client(base_url=server.url) as client:
        assert "<b>hal</b>" in client.get(path).text
        assert client.post(path, data={"password": "short"}).status_code == 400
        assert client.post(path, data={"password": "a new long password"}).status_code == 303
        assert "<b>hal</b>" in client.get("/account").text
        assert client.get(path).status_code == 410


def test_nothing_from_this_machine_is_believed_about_another_address(server: Server) -> None:
    """X-Forwarded-For gives no fresh attempts, unless INF_TRUSTED_PROXIES names who sends it."""
    with httpx.Client(base_url=server.url) as client:
        codes = [
            client.post(
                "/sign-in",
                data={"name": "nobody", "password": f"guess {number}"},
                headers={"x-forwarded-for": f"10.0.0.{number}", "forwarded": "for=10.0.0.1"},
            ).status_code
            for number in range(7)
        ]
    assert codes == [401] * 5 + [429] * 2


def test_a_page_of_another_port_can_neither_post_nor_read(server: Server) -> None:
    foreign = {"origin": "http://127.0.0.1:3000"}
    form = {"name": "ann", "password": PASSWORD}
    with signed_in(server) as client:
        assert client.get("/", headers={**HTML, **foreign}).status_code == 403
        assert client.post("/sign-out", headers=foreign).status_code == 403
        assert client.post("/sign-in", data=form, headers=foreign).status_code == 403
        own = {"origin": server.url}
        assert client.post("/sign-in", data=form, headers=own).status_code == 303


def first_line(server: Server, request: str, headers: dict[str, str]) -> str:
    """The status line that the server answers to these bytes; httpx would not send them."""
    lines = [f"{request} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        wire.sendall("\r\n".join([*lines, "", ""]).encode())
        with wire.makefile("rb") as answer:
            return answer.readline().decode()


def test_a_page_under_the_public_address_gets_its_websocket_and_no_other_does(
    server: Server,
) -> None:
    with signed_in(server) as client:
        upgrade = {
            "Host": "10.0.0.7:8501",
            "Cookie": f"{COOKIE}={client.cookies[COOKIE]}",
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        }
        for origin, status in ((PUBLIC, " 101 "), ("http://evil.example", " 403 ")):
            answer = first_line(server, "GET /_stcore/stream", {**upgrade, "Origin": origin})
            assert status in answer, origin


def test_a_stated_length_does_not_let_chunks_in(server: Server) -> None:
    headers = {"Host": "localhost", "Content-Length": "5", "Transfer-Encoding": "chunked"}
    assert " 411 " in first_line(server, "POST /sign-in", headers)


@pytest.mark.parametrize("path", ["/", "/sign-in", "/health", "/static/none.js", "/media/none"])
def test_every_answer_of_the_server_forbids_frames_and_foreign_content(
    server: Server, path: str
) -> None:
    answer = httpx.get(f"{server.url}{path}", headers=HTML)
    assert answer.headers["x-frame-options"] == "DENY"
    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy and "default-src" in policy


def test_a_disabled_account_is_out_at_once_and_stays_out(
    server: Server, team_store: Store, inf_process: Callable[..., Ran]
) -> None:
    with signed_in(server, "bob") as client:
        assert inf_process("users", "disable", "bob", INF_DATABASE_URL=team_store.url).code == 0
        assert client.get("/", headers=HTML).status_code == 303
        again = client.post("/sign-in", data={"name": "bob", "password": PASSWORD})
        assert again.status_code == 401


def test_an_invitation_makes_one_account_and_signs_it_in(server: Server, team_store: Store) -> None:
    with team_store.write() as session:
        path = f"/invitation/{invite(session, role='curator', days=7, actor='root')}"
        session.commit()
    with httpx.Client(base_url=server.url) as client:
        assert "invited as curator" in client.get(path).text
        short = client.post(path, data={"name": "eve", "password": "short"})
        assert short.status_code == 400 and "12 to 1024 characters" in short.text
        made = client.post(path, data={"name": "eve", "password": PASSWORD})
        assert made.status_code == 303
        assert client.get("/", headers=HTML).status_code == 200
        assert client.get(path).status_code == 410
        assert client.post(path, data={"name": "eva", "password": PASSWORD}).status_code == 400
    with team_store.read() as session:
        assert get_account(session, "eve").role == "curator"


def test_guessing_a_password_is_stopped_after_a_few_wrong_ones(
    server: Server, team_store: Store
) -> None:
    with team_store.write() as session:
        add_account(session, "fay", PASSWORD, role="annotator", actor="test")
        session.commit()
    with httpx.Client(base_url=server.url) as client:
        said = [
            client.post("/sign-in", data={"name": "fay", "password": f"guess {n}"}).status_code
            for n in range(6)
        ]
        right = client.post("/sign-in", data={"name": "fay", "password": PASSWORD})
    assert said == [401] * 5 + [429]
    assert right.status_code == 429 and "quarter of an hour" in right.text


@pytest.mark.parametrize("value", ["", "x", "WzEsMF0", "WzEsMF0.aR.forged", "é", "a" * 5000])
def test_a_forged_cookie_is_nobodys(server: Server, value: str) -> None:
    header = {"cookie": f"{COOKIE}={value}".encode(), **HTML}
    assert httpx.get(server.url, headers=header).status_code == 303


def test_without_a_cookie_only_the_form_and_health_answer(server: Server) -> None:
    assert httpx.get(f"{server.url}/health").json()["status"] == "ok"
    assert httpx.get(f"{server.url}/media/x.png").status_code == 401
    assert httpx.post(f"{server.url}/_stcore/upload_file/a/b").status_code == 401


@pytest.mark.parametrize(
    ("asked", "goes_to"),
    [
        ("/jobs?job=1", "/jobs?job=1"),
        ("https://elsewhere.example", "/"),
        ("//elsewhere.example", "/"),
        ("/\\elsewhere.example", "/"),
        ("/a\nb", "/"),
        ("", "/"),
    ],
)
def test_signing_in_leads_only_to_a_page_of_this_server(asked: str, goes_to: str) -> None:
    assert _local_path(asked) == goes_to


def test_what_was_typed_into_the_form_is_never_markup(server: Server) -> None:
    answer = httpx.post(
        f"{server.url}/sign-in", data={"name": '"><script>x</script>', "password": "p"}
    )
    assert "<script>" not in answer.text and "&lt;script&gt;" in answer.text


@pytest.mark.long
def test_a_name_that_points_here_from_elsewhere_does_not_reach_the_local_admin(
    sqlite_store: Store, tmp_path: Path
) -> None:
    with serving(tmp_path / "served") as server:
        assert httpx.get(server.url, headers=HTML).status_code == 200
        rebound = httpx.get(server.url, headers={"host": "evil.example", **HTML})
        assert rebound.status_code == 403


@pytest.mark.long
def test_it_listens_elsewhere_only_when_there_are_accounts(
    sqlite_store: Store, inf_process: Callable[..., Ran]
) -> None:
    ran = inf_process("serve", "--host", "0.0.0.0", "--json", timeout=180)
    assert ran.code == 1
    assert "inf people add" in ran.json["error"]


@pytest.mark.long
def test_it_refuses_a_store_that_is_behind_with_the_command_to_run(
    inf_process: Callable[..., Ran], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'old.db'}"
    schema.upgrade(open_store(url), "0015")
    ran = inf_process("serve", timeout=180, INF_DATABASE_URL=url)
    assert ran.code == 1
    assert "inf store upgrade" in ran.err


def test_a_new_home_gets_its_sqlite_store_and_an_empty_postgresql_database_only_on_consent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("INF_DATABASE_URL", f"sqlite:///{tmp_path / 'home' / 'inf.db'}")
    assert not store_to_serve()
    assert schema.current(open_store()) == schema.head()
    monkeypatch.setenv("INF_DATABASE_URL", f"sqlite:///{tmp_path / 'other.db'}")
    monkeypatch.setattr(Store, "is_sqlite", False)
    with pytest.raises(StoreBehind, match="`store upgrade`"):
        store_to_serve()  # no terminal to ask on


def test_agents_reach_their_tools_at_the_real_server(
    server: Server, team_store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streamlit's start put `app/cli`, which has an `mcp.py`, first on the search path."""
    monkeypatch.setenv("INF_DATABASE_URL", team_store.url)
    monkeypatch.setenv("INF_HOME", str(folder))
    token = new_token("root", rights=["curate"]).token
    accepted = "application/json, text/event-stream"
    answer = httpx.post(
        f"{server.url}/mcp",
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        headers={
            "Authorization": f"Bearer {token}",
            "Accept": accepted,
            "MCP-Protocol-Version": "2025-06-18",
        },
        timeout=60,
    )
    assert answer.status_code == 200, server.log.read_text()
    assert "find_datasets" in answer.text


@pytest.mark.long
def test_every_route_of_ours_is_open_on_purpose() -> None:
    assert {route.path for route in ROUTES if isinstance(route, Route)} == {
        "/account",
        "/account/password",
        "/account/session",
        "/download/release/{release_id:int}",  # asks for the right and for all its datasets
        "/goto",  # asks for the rights of each kind of row
        "/health",
        "/invitation/{token}",
        "/language/{code}",
        "/oauth2callback",  # a state of this browser's own, then the provider's signed answer
        "/password/{token}",
        "/recruited/{study_id:int}/end",  # the code of who is signed in, if they earned one
        "/recruited/{study_id:int}/{token}",  # a link's token, then the ids
        "/review",  # leads to Groups, as addresses of before did
        "/sign-in",
        "/sign-in/openid",
        "/sign-out",
    }
