"""What routes promise besides rights: bodies, repeats, ETags, limits, streams, cookies, uploads."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_world import API, COMMAND, PASSWORD, ApiWorld, make_api_world, new_token
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.api import limits, server, streams
from app.api.limits import Limits, TooMany
from app.jobs import supervisors
from app.operations.doors import events, repeats, tokens
from db.events import record_event
from db.home import home
from db.people.sign_ins import start_session
from db.store.scope import unscoped
from db.store.settings import owners_process
from db.store.store import Store
from db.tables import (
    Account,
    ApiAnswer,
    Event,
    Job,
    Judge,
    Judgment,
    Run,
    Study,
    StudyItem,
    utc_now,
)


@pytest.fixture
def world(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiWorld]:
    made = make_api_world(sqlite_store)
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)  # no job is to run
    monkeypatch.setattr(streams, "EVERY_SECONDS", 0.05)
    owners_process(False)
    yield made
    owners_process(True)


def count(world: ApiWorld, table: type[Any]) -> int:
    with unscoped(), world.store.read() as session:
        return len(session.scalars(select(table)).all())


def start(world: ApiWorld, person: str = "mina", **headers: str) -> Any:
    body = {"dataset": "mine", "provider": "offline", "limit": 1}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return world.ask(person, "POST", "/runs", json=body, headers=named)


@pytest.mark.long
def test_a_run_is_started_shown_changed_and_stopped(world: ApiWorld) -> None:
    made = start(world)
    assert made.status_code == 202, made.text
    run_id = made.json()["run_id"]
    job = world.ask("mina", "GET", f"/jobs/{made.json()['job_id']}").json()
    assert (job["kind"], job["status"], job["started_by"]) == ("curate", "queued", "mina")
    shown = world.ask("mina", "GET", f"/runs/{run_id}")
    assert shown.json()["id"] == run_id
    changed = world.ask(
        *("mina", "PATCH", f"/runs/{run_id}"),
        json={"concurrency": 3},
        headers={"If-Match": shown.headers["etag"]},
    )
    assert changed.json()["concurrency"] == 3
    with unscoped(), world.store.read() as session:
        launched = session.scalars(select(Event).where(Event.name == "job.launch")).one()
        assert (launched.actor, launched.data["via"]) == ("mina", "token")
    body = {"workers": 2, "joins": False, "only": "leakage"}
    more = world.ask("mina", "POST", f"/runs/{run_id}:join", json=body)
    assert more.status_code == 202, more.text
    with unscoped(), world.store.read() as session:
        joined = session.scalars(select(Job).where(Job.id >= more.json()["job_id"]))
        assert [each.config | {"workers": 0} for each in joined] == [
            {"run_id": run_id, "joins": True, "workers": 0}
        ] * 2
    assert world.ask("mina", "POST", f"/runs/{run_id + 99}:join", json={}).status_code == 404
    assert world.ask("mina", "POST", f"/jobs/{job['id']}:cancel").json()["status"] == "cancelled"
    assert world.ask("mina", "POST", f"/jobs/{job['id']}:cancel").status_code == 409
    assert world.ask("mina", "POST", f"/runs/{run_id}:stop", json={}).status_code == 200
    with unscoped(), world.store.read() as session:
        done = select(Event.name, Event.actor).where(
            Event.noun == "run", Event.noun_id == str(run_id)
        )
        names = ("run.create", "run.concurrency", "run.paused", "run.stop")
        found = tuple(map(tuple, session.execute(done.order_by(Event.id))))
        assert found == tuple((name, "mina") for name in names)


def test_a_change_needs_the_etag_of_what_was_read_and_a_stale_one_is_412(world: ApiWorld) -> None:
    path = f"/studies/{world.mine.study}"
    read = world.ask("mina", "GET", path)
    body = {"status": "paused"}
    assert world.ask("mina", "PATCH", path, json=body).status_code == 428
    stale = world.ask("mina", "PATCH", path, json=body, headers={"If-Match": '"other"'})
    assert stale.status_code == 412 and stale.json()["code"] == "etag_stale"
    with unscoped(), world.store.read() as session:
        assert session.get_one(Study, world.mine.study).status == "open"
    headers = {"If-Match": read.headers["etag"]}
    done = world.ask("mina", "PATCH", path, json=body, headers=headers)
    assert done.json()["status"] == "paused"
    assert world.ask("mina", "PATCH", path, json={"overlap": 3}, headers=headers).status_code == 412
    again = world.ask("mina", "GET", path)
    assert again.headers["etag"] == done.headers["etag"] != read.headers["etag"]


def test_of_many_changes_with_one_etag_one_is_made(world: ApiWorld) -> None:
    path = f"/studies/{world.mine.study}"
    tag = world.ask("mina", "GET", path).headers["etag"]
    statuses: list[int] = []

    def change(overlap: int) -> None:
        answer = world.ask(
            "mina", "PATCH", path, json={"overlap": overlap}, headers={"If-Match": tag}
        )
        statuses.append(answer.status_code)

    with world.client:  # one event loop, as in a server
        threads = [threading.Thread(target=change, args=(3 + n,)) for n in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert sorted(statuses) == [200, 412, 412, 412]


def test_a_launch_names_the_workers_that_the_concurrency_leaves_idle(world: ApiWorld) -> None:
    body = {"dataset": "mine", "provider": "offline", "limit": 1, "concurrency": 2}
    for workers, idle in ((3, "1 of 3 workers idle"), (2, "")):
        made = world.ask("mina", "POST", "/runs", json=body | {"workers": workers})
        assert made.status_code == 202, made.text
        assert made.json()["idle"].startswith(idle) and bool(made.json()["idle"]) == bool(idle)


def test_a_repeated_post_is_answered_again_and_not_done_again(world: ApiWorld) -> None:
    first = start(world, Idempotency_Key="one")
    second = start(world, Idempotency_Key="one")
    assert second.text == first.text and second.status_code == first.status_code == 202
    assert second.headers["idempotency-replayed"] == "true"
    jobs = count(world, Job)
    other = world.ask(
        *("mina", "POST", "/runs"),
        json={"dataset": "mine", "provider": "offline", "limit": 2},
        headers={"Idempotency-Key": "one"},
    )
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    # another person's key of the same name is another key
    assert start(world, "cora", Idempotency_Key="one").json() != first.json()
    assert count(world, Job) == jobs + 1


def test_a_repeated_upload_is_answered_again_and_another_body_is_refused(world: ApiWorld) -> None:
    def send(body: bytes, person: str = "mina", **about: str) -> Any:
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": "one"}
        given = {"name": "once"} | about
        return world.ask(person, "POST", "/datasets", params=given, content=body, headers=headers)

    body = b"".join(lines_of(3))
    first, second = send(body), send(body)
    assert first.status_code == second.status_code == 201 and first.text == second.text
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    for other in (send(body + b"\n"), send(body, source="elsewhere")):
        assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert not list((home() / "uploads").iterdir())


def test_a_failed_post_may_be_sent_again_and_one_under_way_is_409(world: ApiWorld) -> None:
    body = {"dataset": "gone", "provider": "offline"}
    for _ in range(2):
        answer = world.ask("mina", "POST", "/runs", json=body, headers={"Idempotency-Key": "again"})
        assert answer.status_code == 404
    assert count(world, ApiAnswer) == 0
    assert start(world, Idempotency_Key="under way").status_code == 202
    with unscoped(), world.store.write() as session:
        session.scalars(select(ApiAnswer)).one().status = None
        session.commit()
    pending = start(world, Idempotency_Key="under way")
    assert (pending.status_code, pending.json()["code"]) == (409, "idempotency_pending")
    with unscoped(), world.store.write() as session:
        session.scalars(select(ApiAnswer)).one().created_at = utc_now() - 2 * repeats.KEPT
        session.commit()
    assert start(world, Idempotency_Key="under way").status_code == 202


def test_a_cookie_does_nothing_with_a_token_and_nothing_without(world: ApiWorld) -> None:
    with unscoped(), world.store.write() as session:
        boss = session.scalars(select(Account).where(Account.name == "boss")).one()
        cookie = {"Cookie": f"inf_session={start_session(session, boss)}"}
        session.commit()
    assert world.client.get("/health", headers=cookie).status_code == 200
    for method, path in (("GET", "/me"), ("POST", "/runs"), ("DELETE", "/tokens/1")):
        assert world.ask(None, method, path, headers=cookie).status_code == 401
    # an admin's cookie next to ann's token: she is still who asks
    assert world.ask("ann", "GET", "/me", headers=cookie).json()["person"] == "ann"
    assert world.ask("ann", "GET", "/runs", headers=cookie).status_code == 403
    # and a token opens nothing but the routes
    bearer = {"Authorization": f"Bearer {world.tokens['boss']}"}
    assert world.client.get("/account", headers=bearer, follow_redirects=False).status_code in (
        303,
        401,
    )
    assert world.client.get("/download/release/1", headers=bearer).status_code == 401


def test_a_page_of_another_site_posts_nothing(world: ApiWorld) -> None:
    """As a form or a script elsewhere would: with the browser's cookies and its own origin."""
    events_before = count(world, Event)
    for headers in (
        {"Origin": "https://evil.example", "Content-Type": "text/plain"},
        {"Sec-Fetch-Site": "cross-site", "Content-Type": "application/x-www-form-urlencoded"},
    ):
        assert world.ask(None, "POST", "/runs", headers=headers, content="{}").status_code == 403
        with_token = world.ask("cora", "POST", "/runs", headers=headers, content="{}")
        assert with_token.status_code == 403
    typed = world.ask("cora", "POST", "/runs", content="{}", headers={"Content-Type": "text/plain"})
    assert typed.status_code == 415
    assert count(world, Event) == events_before


def test_open_are_the_document_and_its_page_only_and_they_load_nothing_of_others(
    world: ApiWorld,
) -> None:
    for path in ("/openapi.json", "/docs", "/docs/try.js", "/docs/style.css"):
        answer = world.ask(None, "GET", path)
        assert answer.status_code == 200
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        held = answer.text if path != "/openapi.json" else ""
        assert "http://" not in held and "https://" not in held and "innerHTML" not in held
        assert world.ask(None, "POST", path).status_code == 401
    for path in ("/", "", "/docs/../me", "/openapi.json/", "/docs/secret"):
        assert world.ask(None, "GET", path).status_code == 401
    assert world.client.get("/api/v2/me").status_code == 401


def test_bodies_and_uploads_have_limits(world: ApiWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_BODY_BYTES", 1000)
    monkeypatch.setattr(streams, "MAX_UPLOAD_BYTES", 2000)
    long = json.dumps({"dataset": "x" * 2000, "provider": "offline"})
    kind = {"Content-Type": "application/json"}
    answer = world.ask("cora", "POST", "/runs", content=long, headers=kind)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")

    def pieces() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 100

    chunked = world.ask("cora", "POST", "/runs", content=pieces(), headers=kind)
    assert chunked.status_code == 413
    lines = {"Content-Type": "application/x-ndjson"}
    upload = world.ask(
        "cora", "POST", "/datasets", params={"name": "new"}, content=pieces(), headers=lines
    )
    assert upload.status_code == 413
    assert not list((home() / "uploads").iterdir())
    # nobody's body is read
    assert world.ask(None, "POST", "/runs", content=pieces(), headers=kind).status_code == 401


def lines_of(count: int, **more: Any) -> Iterator[bytes]:
    for n in range(count):
        row = {"query_id": f"q{n}", "query": f"what is {n}", "passage_id": f"p{n}"}
        yield json.dumps(row | {"passage": f"The number {n} is described here."} | more).encode()
        yield b"\n"


def test_pairs_are_uploaded_as_a_stream_of_lines(world: ApiWorld) -> None:
    lines = {"Content-Type": "application/x-ndjson"}
    about = {"name": "streamed", "source": "our logs", "licence": "cc-by-4.0"}

    def body() -> Iterator[bytes]:
        yield from lines_of(300)
        yield json.dumps({"passage_id": "extra", "text": "One passage more."}).encode()

    made = world.ask("mina", "POST", "/datasets", params=about, content=body(), headers=lines)
    assert made.status_code == 201, made.text
    assert (made.json()["imported"], made.json()["imported_passages"]) == (300, 301)
    listed = world.ask("mina", "GET", "/datasets").json()["data"]
    (row,) = [one for one in listed if one["name"] == "streamed"]
    assert (row["pairs"], row["licence"]) == (300, "cc-by-4.0")
    assert not list((home() / "uploads").iterdir())
    bad = world.ask(
        *("mina", "POST", "/datasets"),
        params={"name": "bad"},
        content=b'{"query": "q"}\nno json\n',
        headers=lines,
    )
    assert bad.status_code == 422 and "line 2" in bad.json()["detail"]
    limited = world.ask(
        "lim", "POST", "/datasets", params={"name": "new"}, content=b"{}", headers=lines
    )
    assert (limited.status_code, limited.json()["code"]) == (403, "token_limited")
    ann = world.ask("ann", "POST", "/datasets", params={"name": "n"}, content=b"{}", headers=lines)
    assert ann.status_code == 403


def test_a_release_is_written_to_the_servers_folder_and_nowhere_else(world: ApiWorld) -> None:
    for out in ("../up", "/etc/x", "s3://bucket/x", "..", ".hidden", "a/b", "a\\b", "a\0b", ""):
        answer = world.ask("mina", "POST", "/releases", json={"runs": [world.mine.run], "out": out})
        assert answer.status_code == 422, out
    made = world.ask("mina", "POST", "/releases", json={"runs": [world.mine.run], "out": "first"})
    assert made.status_code == 202, made.text
    with unscoped(), world.store.read() as session:
        config = session.get_one(Job, made.json()["job_id"]).config
    assert Path(config["out"]) == home() / "releases" / "first"


def test_a_token_has_its_share_of_requests() -> None:
    now = [0.0]
    counted = Limits(clock=lambda: now[0])
    for _ in range(limits.PER_MINUTE):
        counted.count(1)
    with pytest.raises(TooMany) as caught:
        counted.count(1)
    assert caught.value.seconds == 1
    counted.count(2)
    now[0] += 1
    for _ in range(limits.PER_MINUTE // 60):
        counted.count(1)
    with pytest.raises(TooMany):
        counted.count(1)
    with counted.one_of("streams", 1, 1):
        with pytest.raises(TooMany), counted.one_of("streams", 1, 1):
            pytest.fail("a second place")
        with counted.one_of("streams", 2, 1):
            pass
    with counted.one_of("streams", 1, 1):
        pass


def test_too_many_requests_are_429_with_when_to_ask_again(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PER_MINUTE", 3)
    answers = [world.ask("ann", "GET", "/me") for _ in range(4)]
    assert [one.status_code for one in answers] == [200, 200, 200, 429]
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert world.ask("mina", "GET", "/me").status_code == 200


def test_lists_are_read_part_by_part(world: ApiWorld) -> None:
    seen, cursor = [], 0
    path = f"/runs/{world.mine.run}/groups"
    while cursor is not None:
        part = world.ask("mina", "GET", path, params={"limit": 2, "cursor": cursor}).json()
        seen += [row["id"] for row in part["data"]]
        cursor = part["next"]
    assert seen and len(seen) == part["total"] == len(set(seen))
    for wrong in ({"limit": 0}, {"limit": 10_000}, {"cursor": -1}, {"nonsense": 1}):
        assert world.ask("mina", "GET", path, params=wrong).status_code == 422


def messages(text: str) -> list[dict[str, str]]:
    """The messages of a stream, by field."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if fields:
            found.append(fields)
    return found


def add_event(world: ApiWorld, name: str, of: object, **data: Any) -> int:
    with unscoped(), world.store.write() as session:
        record_event(session, "somebody", name, of, **data)
        session.commit()
        return session.scalars(select(Event.id).order_by(Event.id.desc())).first() or 0


def test_events_are_those_of_what_one_sees_in_order_and_without_their_data(
    world: ApiWorld,
) -> None:
    owners_process(True)
    holder = tokens.presented(world.tokens["mina"])
    first = events.newest(holder)
    add_event(world, "run.finished", world.other.run)
    mine = add_event(world, "run.finished", world.mine.run, secret="s")
    stored = add_event(world, "judgment.stored", ("run", world.mine.run), choice="positive")
    add_event(world, "study.adjudicate", world.mine.study, choice="positive")
    add_event(world, "token.create", 1)
    last = add_event(world, "study.finished", world.mine.study)
    found = events.list_after(holder, first)
    assert [(row.id, row.name) for row in found.data] == [
        (mine, "run.finished"),
        (stored, "judgment.stored"),
        (last, "study.finished"),
    ]
    told = found.model_dump_json()
    assert found.last == last and "secret" not in told and "positive" not in told
    assert events.list_after(holder, last).data == ()


def answered(session: Session, study_id: int) -> int:
    """The id of a judgment on an item of the study."""
    query = select(StudyItem.item_id).where(StudyItem.study_id == study_id)
    item_id = session.scalars(query).first()
    made = Judgment(
        event_id=f"in {study_id}",
        judge_id=session.scalars(select(Judge.id)).first() or 0,
        item_id=item_id or 0,
        choice="none",
        order_shown=[],
    )
    session.add(made)
    session.flush()
    return made.id


def test_an_answer_of_a_study_that_one_does_not_see_is_no_event_for_them(world: ApiWorld) -> None:
    owners_process(True)
    with unscoped(), world.store.write() as session:
        mine, other = (answered(session, place.study) for place in (world.mine, world.other))
        session.commit()
    first = add_event(world, "judgment.stored", other, study=world.other.study)
    last = add_event(world, "judgment.stored", mine, study=world.mine.study)
    seen = {
        name: [row.id for row in events.list_after(tokens.presented(token), first - 1).data]
        for name, token in world.tokens.items()
        if name != "ann"  # who follows no events
    }
    assert seen["mina"] == seen["lim"] == [last] and seen["cora"] == [first, last]


def test_no_event_of_a_transaction_that_ends_late_is_skipped(world: ApiWorld) -> None:
    """On PostgreSQL event 11 can be there before event 10."""
    owners_process(True)
    holder = tokens.presented(world.tokens["mina"])
    first = add_event(world, "run.finished", world.mine.run)

    def add(number: int, at: Any) -> None:
        with unscoped(), world.store.write() as session:
            made = Event(actor="a", name="run.finished", noun="run", noun_id=str(world.mine.run))
            made.id, made.at = number, at
            session.add(made)
            session.commit()

    add(first + 2, utc_now())
    assert events.list_after(holder, first).last == first
    add(first + 1, utc_now())
    assert [row.id for row in events.list_after(holder, first).data] == [first + 1, first + 2]
    add(first + 4, utc_now() - 2 * events.SETTLED)  # the one between was undone
    assert events.list_after(holder, first + 2).last == first + 4


def test_a_stream_goes_on_after_the_last_event_and_ends_with_its_token(world: ApiWorld) -> None:
    owners_process(True)
    made = new_token("mina", name="stream")
    seen = add_event(world, "run.finished", world.mine.run)
    missed = add_event(world, "run.paused", world.mine.run)
    bearer = {"Authorization": f"Bearer {made.token}", "Last-Event-ID": str(seen)}

    def end() -> None:
        time.sleep(1)
        add_event(world, "run.failed", world.mine.run)
        time.sleep(1)
        tokens.revoke(COMMAND, made.id)
        time.sleep(0.5)  # what is read at that moment is sent
        add_event(world, "run.cancelled", world.mine.run)

    thread = threading.Thread(target=end)
    thread.start()
    answer = world.client.get(f"{API}/events", headers=bearer)  # returns once the stream ended
    thread.join()
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = messages(answer.text)
    # a message of an id alone passes over what is not shown, such as the end of the token
    shown = [one for one in found[1:] if "event" in one]
    assert found[0] == {"id": str(seen)}
    assert [(one["event"], one.get("id")) for one in shown] == [
        ("run.paused", str(missed)),
        ("run.failed", str(missed + 1)),
        ("end", None),
    ]
    assert world.client.get(f"{API}/events", headers=bearer).status_code == 401
    for wrong in ("x", "-1", "9" * 30):
        answer = world.ask("mina", "GET", "/events", headers={"Last-Event-ID": wrong})
        assert answer.status_code == 422


def test_a_stream_ends_for_a_right_that_is_withdrawn(world: ApiWorld) -> None:
    from app.operations import people

    owners_process(True)

    def end() -> None:
        time.sleep(0.3)
        people.set_rights(COMMAND, "mina", ["judge"], dataset="mine")

    thread = threading.Thread(target=end)
    thread.start()
    answer = world.ask("mina", "GET", "/events")
    thread.join()
    (last,) = messages(answer.text)[-1:]
    assert last["event"] == "end" and json.loads(last["data"])["code"] == "no_right"


def test_a_job_is_followed_until_it_is_over(world: ApiWorld) -> None:
    job_id = start(world).json()["job_id"]

    def work() -> None:
        for status, done in (("running", 1), ("done", 2)):
            time.sleep(1)
            with unscoped(), world.store.write() as session:
                job = session.get_one(Job, job_id)
                job.status, job.done, job.heartbeat_at = status, done, utc_now()
                session.commit()

    owners_process(True)
    thread = threading.Thread(target=work)
    thread.start()
    answer = world.ask("mina", "GET", f"/jobs/{job_id}/events")
    thread.join()
    found = messages(answer.text)
    assert [one["event"] for one in found] == ["job.queued", "job.running", "job.done", "end"]
    last = {"Last-Event-ID": found[2]["id"]}
    again = world.ask("mina", "GET", f"/jobs/{job_id}/events", headers=last)
    assert [one["event"] for one in messages(again.text)] == ["end"]


def test_methods_and_routes_that_are_not_there(world: ApiWorld) -> None:
    answer = world.ask("cora", "PUT", "/runs", json={})
    assert answer.status_code == 405 and answer.headers["allow"] == "GET, POST"
    for path in ("/nothing", "/runs/x", "/runs/1/", f"/runs/{10**20}", "/runs/-1"):
        assert world.ask("cora", "GET", path).status_code in (404, 422), path


def test_what_fails_inside_is_a_problem_without_its_words(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.operations import runs

    def broken(*_: Any) -> None:
        raise RuntimeError("the secret of /srv/inf")

    monkeypatch.setattr(runs, "show", broken)
    answer = world.ask("cora", "GET", f"/runs/{world.mine.run}")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "internal_error" and "secret" not in answer.text


def test_a_token_is_in_no_log(world: ApiWorld, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    world.ask("mina", "GET", "/me")
    world.ask("mina", "GET", f"/jobs/{10**30}")
    assert world.tokens["mina"] not in caplog.text
    assert PASSWORD not in caplog.text and count(world, Run) == 2
