"""Batch mode against a server with the Batch API: the same groups, nothing paid twice."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import sha256
from typing import Any

import batch_server
import pytest
from aiohttp import web
from app_pages import open_page
from batch_server import STEPS, TROUBLES
from curation_runs import (
    add_dataset,
    run_curation,
    slots_of,
    start_worker,
    stored_calls,
    texts_of,
    wait_for,
)
from hypothesis import given
from hypothesis import strategies as st
from openai_server import Server
from sqlalchemy import func, select, text
from sqlalchemy.exc import OperationalError

import curation.providers.openai_server as openai_server_module
import curation.run.engine as engine
from app.access.identity import owner
from app.operations.overview import run as run_now
from app.operations.overview.run import StageAnswers
from curation.providers.batch import poll_seconds
from curation.providers.batch_files import key_in, read_answer_line, request_line, split_into_files
from curation.recipe.prices import Price, save_price
from curation.run.starting import start_run
from db.errors import BadInput, ProviderError
from db.run.batches import create_batch, end_batch, is_abandoned, is_to_send, list_batches
from db.run.runs import STAGES, funnel, get_run, stop_run
from db.run.workers import add_worker, end_workers, worker_totals
from db.store.store import Store
from db.tables import Batch, BatchCall, Call

PAIRS = 12
CALLS = PAIRS * 8
ASKED: dict[str, Any] = {
    "dataset": "small",
    "provider": "openai",
    "settings": ["model=small", "validation.model=judge"],
    "batch": True,
}


PROBE = "Reply with OK."


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Whose answers to probes, one of each model in each process, are not among `answered`."""
    monkeypatch.setenv("INF_BATCH_POLL_SECONDS", "0.05")
    with Server() as server:

        async def reply(_: Any, body: Any, prompt: str, __: int) -> web.Response | None:
            answer = server.completion(body, prompt, None)
            return web.json_response(answer) if prompt == PROBE else None

        server.reply = reply
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def probes(server: Server) -> int:
    """How many small requests were sent; no other was outside of a batch."""
    assert set(server.asked) <= {sha256(PROBE.encode()).hexdigest()}
    return server.asked.total()


def new_run(store: Store, **asked: Any) -> int:
    add_dataset(store, pairs=PAIRS)
    with store.write() as session:
        run_id = start_run(session, **(ASKED | asked)).id
        session.commit()
    return run_id


@pytest.mark.long
def test_a_run_in_batches_ends_as_one_that_asks_at_once(store: Store, server: Server) -> None:
    run_id = new_run(store)
    result = run_curation(store, run_id)
    assert result["kept"] == PAIRS and result["calls"] == {"made": CALLS, "reused": 0}
    assert probes(server) == 2, "whether each model answers as itself"
    assert max(server.answered.values()) == 1
    with store.read() as session:
        found = list_batches(session, run_id)
        assert {each.status for each in found} == {"completed"}
        assert sum(each.calls for each in found) == CALLS
        assert {each.model for each in found} == {"small", "judge"}
        assert len(found) < CALLS / 4, "calls wait for each other"
    texts = texts_of(store, run_id)
    with store.write() as session:
        session.execute(Call.__table__.update().values(key=Call.key + "-old"))
        session.commit()
    at_once = run_curation(store, **(ASKED | {"batch": False}))
    assert texts_of(store, at_once["run_id"]) == texts
    again = run_curation(store, **ASKED)
    assert again["calls"] == {"made": 0, "reused": CALLS}, "an answer serves both modes"


@pytest.mark.long
def test_the_page_of_a_run_in_batches_has_its_answers_in_the_lanes_of_their_stages(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "LANE_SECONDS", 0.2)
    monkeypatch.setattr(run_now, "LANE_SECONDS", 1.0)  # the unit of what is stored
    run_id, server.batches.seconds = new_run(sqlite_store), 1.5
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(run_curation, sqlite_store, run_id)
        wait_for(lambda: len(drawn_stages(run_now.answers_over_time(owner("ada"), run_id))) > 1)
        server.batches.held = True
        (lanes,) = open_page("curate", run=str(run_id)).get("plotly_chart")
        server.batches.held = False
        assert work.result(timeout=120)["kept"] == PAIRS
    (drawn,) = json.loads(lanes.proto.spec)["data"]
    shown = {name: sum(counts) for name, counts in zip(drawn["y"], drawn["z"], strict=True)}
    assert shown["Instruction"] == PAIRS and shown["Negatives"] > 0
    after = run_now.answers_over_time(owner("ada"), run_id).counts
    first = [next(n for n, count in enumerate(after[stage]) if count) for stage in STAGES]
    assert first == sorted(first) and sum(map(sum, after.values())) <= CALLS


def drawn_stages(found: StageAnswers) -> list[str]:
    """Which stages have answers, once there are intervals enough for a picture."""
    return [name for name, of in found.counts.items() if any(of)] if len(found.ends) > 2 else []


@pytest.mark.parametrize("answers_at_once", [True, False])
def test_another_models_answers_are_refused_before_the_first_batch_or_kept(
    sqlite_store: Store, server: Server, answers_at_once: bool
) -> None:
    """A small request shows it; a server that answers batches alone shows it by its first one."""
    run_id = new_run(sqlite_store)
    server.other_model = (0, "tiny-chat")

    async def refuse(*_: Any) -> web.Response:
        return web.Response(status=404, text="batches only")

    if not answers_at_once:
        server.reply = refuse
    with pytest.raises(ProviderError, match=r"answered 'small' as 'tiny-chat'") as refused:
        run_curation(sqlite_store, run_id)
    assert refused.value.code == "served_model_changed"
    assert len(server.batches.made) == (0 if answers_at_once else 1)
    paid = 0 if answers_at_once else PAIRS
    with sqlite_store.read() as session:
        calls = session.scalars(select(Call)).all()
        assert [call.request["answered_as"] for call in calls] == ["tiny-chat"] * paid
        assert get_run(session, run_id).models["instruction_positive"].get("answered_as") is None
    settings = [*ASKED["settings"], "answers_as=any"]
    result = run_curation(sqlite_store, **(ASKED | {"settings": settings}))
    assert result["kept"] == PAIRS
    assert result["calls"] == {"made": CALLS - paid, "reused": paid}
    with sqlite_store.read() as session:
        run = get_run(session, result["run_id"])
        assert run.models["instruction_positive"]["answered_as"] == "tiny-chat"


def test_what_is_paid_in_a_batch_and_not_used_is_kept_with_its_cost(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, exhausted = new_run(sqlite_store), "insufficient_system_resource"
    whole, sent = server.completion, []

    def completion(*given: Any) -> dict[str, Any]:
        answer = whole(*given)
        if len(sent) < 3 and "OK" not in given[1]:
            sent.append(answer)
            answer["choices"][0]["finish_reason"] = exhausted
        return answer

    monkeypatch.setattr(server, "completion", completion)
    result = run_curation(sqlite_store, run_id)
    assert result["kept"] == PAIRS and result["calls"]["made"] == CALLS
    with sqlite_store.read() as session:
        kept = session.scalars(select(Call).where(Call.finish_reason == exhausted)).all()
    assert len(kept) == 3


@pytest.mark.parametrize("cut", ["usage", "text", "key"])
def test_a_garbled_line_of_a_batch_is_kept_and_counted(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    """Cut after its usage, in the answer's text, or before its key. Each of the first four is paid
    twice, as the server was: with its usage, else at that of the next answer to its prompt."""
    server.usage, lines = (1000, 100), list[bytes]()
    save_price("small", Price(1.0, 2.0))
    save_price("judge", Price(1.0, 2.0))
    joined = batch_server._joined

    def garbled(good: list[str]) -> bytes:
        content = joined(good).splitlines(keepends=True)
        # a busy machine sends small batches
        for number in range(min(4 - len(lines), len(content))):
            line = content[number]
            at = {"usage": line.rindex(b'"error"'), "text": len(line) // 2, "key": 4}[cut]
            if cut == "usage":
                assert line.index(b"completion_tokens") < at
            lines.append(line[:at])
            content[number] = line[:at] + b"\n"
        return b"".join(content)

    monkeypatch.setattr(batch_server, "_joined", garbled)
    run_id = new_run(sqlite_store)
    result = run_curation(sqlite_store, run_id)
    assert result["kept"] == PAIRS and result["calls"]["made"] == CALLS
    assert server.answered.total() == CALLS + 4
    each = (1000 * 1.0 + 100 * 2.0) / 2e6
    assert result["spent_usd"] == pytest.approx((CALLS + 4 + probes(server)) * each)
    with sqlite_store.read() as session:
        kept = session.scalars(select(Call).where(Call.finish_reason == "unreadable")).all()
    assert sorted(call.answer.encode() for call in kept) == sorted(lines)
    counted = each if cut == "usage" else 0.0
    assert [call.cost_usd for call in kept] == pytest.approx([counted] * 4)


@pytest.mark.long
def test_groups_of_promptrievers_shape_are_the_same_in_batches(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_BATCH_POLL_SECONDS", "0.05")
    with Server(schema="taken") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        asked = {"recipe": "promptriever", "settings": ["model=small"]}
        run_id = new_run(store, **asked)
        result = run_curation(store, run_id)
        assert result["calls"] == {"made": PAIRS * 10, "reused": 0} and probes(server) == 1
        slots = list(slots_of(store, run_id).values())
        assert {reason for group in slots for _, reason in group.values()} >= {None, "check_fits"}
        again = run_curation(store, **(ASKED | asked | {"batch": False}))
        assert again["calls"] == {"made": 0, "reused": PAIRS * 10}
        assert list(slots_of(store, again["run_id"]).values()) == slots
        fresh = run_curation(store, **(ASKED | asked | {"batch": False}), fresh=True)
    assert fresh["calls"]["made"] == PAIRS * 10
    assert list(slots_of(store, fresh["run_id"]).values()) == slots


@pytest.mark.long
@pytest.mark.parametrize("trouble", [each for each in TROUBLES if each not in ("refused", "quota")])
def test_only_what_failed_is_asked_again(sqlite_store: Store, server: Server, trouble: str) -> None:
    run_id = new_run(sqlite_store)
    server.batches.troubles = [trouble, trouble]
    result = run_curation(sqlite_store, run_id)
    assert (result["kept"], result["status"]) == (PAIRS, "done")
    assert result["calls"]["made"] == CALLS
    with sqlite_store.read() as session:
        found = list_batches(session, run_id)
    failed = sum(each.failed for each in found)
    assert sum(each.calls for each in found) == CALLS + failed
    assert (failed == 0) == (trouble == "cut_create")
    assert len(server.batches.made) == len(found), "no batch was made twice"
    paid_twice = sum(server.answered.values()) - CALLS
    assert paid_twice == (failed if trouble == "some_garbled" else 0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("trouble", "words"), [("refused", "the batch is refused"), ("quota", "the quota is spent")]
)
def test_what_asking_again_cannot_mend_stops_the_run_and_a_resume_goes_on(
    sqlite_store: Store, server: Server, trouble: str, words: str
) -> None:
    run_id = new_run(sqlite_store)
    server.batches.troubles = [trouble]
    with pytest.raises(ProviderError, match=words):
        run_curation(sqlite_store, run_id)
    with sqlite_store.read() as session:
        assert get_run(session, run_id).status == "failed"
    assert run_curation(sqlite_store, run_id)["kept"] == PAIRS


def test_calls_that_never_get_an_answer_cost_their_rows_only(
    sqlite_store: Store, server: Server
) -> None:
    run_id = new_run(sqlite_store)
    server.batches.lost_share = 1
    result = run_curation(sqlite_store, run_id)
    assert 0 < result["dropped"]["server_error"] < PAIRS
    assert result["kept"] == PAIRS - result["dropped"]["server_error"]


@pytest.mark.long
@pytest.mark.parametrize(("recipe", "per_pair"), [("msmarco", 8), ("promptriever", 10)])
def test_a_worker_killed_while_its_batch_is_at_the_server_pays_for_nothing_twice(
    store: Store, server: Server, recipe: str, per_pair: int
) -> None:
    run_id = new_run(store, recipe=recipe, settings=["model=small"])
    calls = PAIRS * per_pair
    for rounds in (1, 2, 3):
        server.batches.held = False
        before = len(server.batches.made)
        worker = start_worker(store, run_id, base_url=server.url)
        if rounds > 1:  # until the next round's batch is at the server
            wait_for(lambda before=before: len(server.batches.made) > before)
        server.batches.held = True
        wait_for(lambda: batches_in(store, "submitted") > 0)
        worker.kill()
        worker.join()
        assert worker.exitcode == -9
        with store.read() as session:
            assert funnel(session, run_id).finished < PAIRS
    server.batches.held = False
    result = run_curation(store, run_id)
    assert (result["kept"], result["status"]) == (PAIRS, "done")
    assert max(server.answered.values()) == 1 and sum(server.answered.values()) == calls
    assert stored_calls(store) == calls


def test_a_batch_that_was_written_but_never_sent_is_asked_again(
    sqlite_store: Store, server: Server
) -> None:
    run_id = new_run(sqlite_store)
    with Server() as gone:
        url = gone.url
    worker = start_worker(sqlite_store, run_id, base_url=url)
    worker.join()
    assert worker.exitcode != 0
    server.batches.held = True
    worker = start_worker(sqlite_store, run_id, base_url=server.url)
    wait_for(lambda: batches_in(sqlite_store, "submitted") > 0)
    worker.kill()
    worker.join()
    with sqlite_store.write() as session:  # as if it had died just before it was told the id
        # the first: a machine that does other things may pause long enough for a second one
        submitted = select(Batch).where(Batch.status == "submitted").order_by(Batch.id)
        sent = session.scalars(submitted.limit(1)).one()
        sent.status, sent.remote_id, known = "created", None, sent.remote_id
        never = Batch(run_id=run_id, owner=sent.owner, name="inf-never", model="small")
        session.add(never)
        session.flush()
        (key, *_) = session.scalars(select(BatchCall.key).where(BatchCall.batch_id == sent.id))
        session.get_one(BatchCall, (sent.id, key)).failed = True
        session.add(BatchCall(batch_id=never.id, key=key))
        session.commit()
    server.batches.held = False
    assert run_curation(sqlite_store, run_id)["kept"] == PAIRS
    with sqlite_store.read() as session:
        assert session.get_one(Batch, never.id).status == "lost"
        assert session.get_one(Batch, sent.id).remote_id == known, "found again by its name"


def batches_in(store: Store, status: str) -> int:
    with store.read() as session:
        query = select(func.count()).select_from(Batch).where(Batch.status == status)
        return session.scalar(query) or 0


def test_a_cancelled_run_takes_its_batches_back(sqlite_store: Store, server: Server) -> None:
    run_id = new_run(sqlite_store)
    server.batches.held = True
    worker = start_worker(sqlite_store, run_id, base_url=server.url)
    wait_for(lambda: batches_in(sqlite_store, "submitted") > 0)
    with sqlite_store.write() as session:
        stop_run(session, run_id, cancel=True)
        session.commit()
    worker.join(120)
    assert server.batches.cancelled == list(server.batches.made)


def test_a_budget_counts_half_the_price(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    table = "".join(f"[{name}]\ninput = 10\noutput = 10\n" for name in ("small", "judge"))
    monkeypatch.setenv("INF_HOME", str(tmp_path))
    (tmp_path / "prices.toml").write_text(table)
    run_id = new_run(sqlite_store)
    spent = run_curation(sqlite_store, run_id)["spent_usd"]
    with sqlite_store.read() as session:
        tokens = session.scalar(select(func.sum(Call.input_tokens + Call.output_tokens)))
    assert 0 < spent - tokens * 10 / 1e6 / 2 < 0.0005, "and the two probes"


def test_a_server_without_the_api_is_told(sqlite_store: Store, server: Server) -> None:
    server.batches.there = False
    with pytest.raises(ProviderError, match="has no Batch API: start the run without `batch=`"):
        run_curation(sqlite_store, new_run(sqlite_store))


OUTAGES = {
    "upload": ["503", "cut", "lost", "page", "429"],
    "files": ["503", "cut"],
    "create": ["502", "cut", "page", "lost", "503"],
    "list": ["503", "cut", "page"],
    "show": ["503", "cut", "lost", "page", "429"],
    "fetch": ["503", "lost", "lost", "cut", "page"],
}


@pytest.fixture
def quick_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_server_module, "PROBE_EVERY_SECONDS", (0.02, 0.1))


@pytest.mark.parametrize("step", STEPS)
def test_a_server_that_goes_away_at_a_step_of_a_batch_is_waited_for(
    sqlite_store: Store, server: Server, quick_probes: None, step: str
) -> None:
    """Nothing is sent twice, whichever answer was lost; a file is read on from where it was cut."""
    run_id = new_run(sqlite_store)
    before = {"files": {"upload": ["lost"]}, "list": {"create": ["lost"]}}.get(step, {})
    server.batches.outages = before | {step: list(OUTAGES[step])}
    result = run_curation(sqlite_store, run_id)
    assert (result["kept"], result["status"]) == (PAIRS, "done")
    assert result["calls"]["made"] == CALLS == server.answered.total()
    assert not any(server.batches.outages.values()), "each was met"
    with sqlite_store.read() as session:
        found = list_batches(session, run_id)
    assert len(server.batches.made) == len(found), "no batch was made twice"
    assert {each.status for each in found} == {"completed"}
    assert server.batches.served["upload"] == len(found), "no file was sent twice"


def test_what_a_batch_waits_for_is_shown_and_stopping_does_not_wait(
    sqlite_store: Store, server: Server, quick_probes: None
) -> None:
    run_id = new_run(sqlite_store)
    server.batches.outages = {"show": ["503"] * 1_000_000}
    worker = start_worker(sqlite_store, run_id, base_url=server.url)

    def shown() -> str:
        with sqlite_store.read() as session:
            return worker_totals(session, run_id).trouble.waiting()

    wait_for(lambda: "waiting for the server since" in shown())
    assert "503" in shown()
    with sqlite_store.write() as session:
        stop_run(session, run_id)
        session.commit()
    worker.join(60)
    assert worker.exitcode == 0


@pytest.mark.parametrize(
    ("status", "code"),
    [("401", "server_refuses_key"), ("402", "quota_spent"), ("400", "batch_server_failed")],
)
@pytest.mark.parametrize("step", ["upload", "show"])
def test_what_no_waiting_mends_ends_a_run_in_batches_at_once(
    sqlite_store: Store, server: Server, step: str, status: str, code: str
) -> None:
    server.batches.outages = {step: [status] * 2}
    with pytest.raises(ProviderError) as refused:
        run_curation(sqlite_store, new_run(sqlite_store))
    assert refused.value.code == code
    assert len(server.batches.outages[step]) == 1, "one attempt"


def test_a_batch_of_a_worker_that_lives_is_left_to_it(sqlite_store: Store, server: Server) -> None:
    """However long it waits for its server; that of one that was declared dead is sent anew."""
    run_id = new_run(sqlite_store)
    with sqlite_store.write() as session:
        add_worker(session, run_id, "elsewhere:1:1")
        batch = create_batch(
            session,
            run_id=run_id,
            owner="elsewhere:1:1",
            name="inf-waits",
            model="small",
            keys=["k"],
        )
        batch.created_at -= timedelta(days=1)
        session.flush()
        assert not is_abandoned(session, batch) and is_to_send(session, batch.id)
        end_workers(session, ["elsewhere:1:1"])
        assert is_abandoned(session, batch)
        end_batch(session, batch.id, "lost", failed=["k"], error=None)
        assert not is_to_send(session, batch.id)


def test_what_does_not_go_with_batches_is_refused(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store)
    with sqlite_store.write() as session:
        with pytest.raises(BadInput, match="omit `batch=`"):
            start_run(session, dataset="small", provider="offline", batch=True)
        with pytest.raises(BadInput, match="omit `rpm=` and `tpm=`"):
            start_run(session, **ASKED, requests_per_minute=5)
    for told in ("soon", "0", "-1", "nan"):
        monkeypatch.setenv("INF_BATCH_POLL_SECONDS", told)
        with pytest.raises(BadInput, match="INF_BATCH_POLL_SECONDS"):
            poll_seconds()


def test_the_command_runs_in_batches_and_says_what_they_cost(
    sqlite_store: Store, server: Server, inf: Callable[..., Any]
) -> None:
    add_dataset(sqlite_store, pairs=PAIRS)
    words = ["--dataset", "small", "--provider", "openai"]
    estimates = [
        inf("curate", *words, "--estimate", "--json", *more).json for more in ([], ["--batch"])
    ]
    assert estimates[1]["usd"] == pytest.approx(estimates[0]["usd"] / 2)
    assert estimates[1]["hours"] is None and estimates[1]["batch"]
    models = ["--set", "model=small"]
    done = inf("curate", *words, *models, "--batch", "--json")
    assert done.code == 0, done.out + done.err
    assert done.json["kept"] == PAIRS and len(server.batches.made) > 0
    assert inf("curate", "--resume", 1, "--batch").code == 2


@given(st.lists(st.integers(0, 40), max_size=30))
def test_files_hold_every_line_once_and_are_small_enough(sizes: list[int]) -> None:
    lines = [(str(number), b"x" * size) for number, size in enumerate(sizes)]
    import curation.providers.batch_files as files

    limits = files.MAX_CALLS, files.MAX_BYTES
    files.MAX_CALLS, files.MAX_BYTES = 7, 60  # type: ignore[misc]
    try:
        found = list(split_into_files(lines))
    finally:
        files.MAX_CALLS, files.MAX_BYTES = limits  # type: ignore[misc]
    assert [each for file in found for each in file] == lines
    assert all(len(file) <= 7 and sum(len(line) for _, line in file) <= 60 for file in found)


def test_lines_are_read_and_what_is_none_is_told() -> None:
    line = request_line("k", {"model": "m", "text": "a\u2028b"}, "/v1/chat/completions")
    assert line.count(b"\n") == 1 and json.loads(line)["custom_id"] == "k"
    good = read_answer_line(
        b'{"custom_id": "k", "response": {"status_code": 200, "body": {"id": 1}}, "error": null}'
    )
    assert good is not None and (good.key, good.status, good.body, good.error) == (
        "k",
        200,
        {"id": 1},
        {},
    )
    expired = read_answer_line(b'{"custom_id": "k", "response": null, "error": {"code": "x"}}')
    assert expired is not None and (expired.status, expired.error) == (0, {"code": "x"})
    for bad in (b"", b"[]", b"{}", b'{"custom_id": "k", "resp', b'"k"', b"\xff"):
        assert read_answer_line(bad) is None
        assert key_in(bad) == ("k" if b"custom_id" in bad else None)


def test_nobody_waits_for_ever_where_the_store_takes_no_batch(
    sqlite_store: Store, server: Server
) -> None:
    run_id = new_run(sqlite_store)
    with sqlite_store.write() as session:
        session.execute(text("DROP TABLE batch_call"))
        session.commit()
    with pytest.raises(OperationalError, match="batch_call"):
        run_curation(sqlite_store, run_id)


def test_a_budget_for_a_part_pauses_and_a_larger_one_goes_on(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    table = "".join(f"[{name}]\ninput = 100\noutput = 100\n" for name in ("small", "judge"))
    monkeypatch.setenv("INF_HOME", str(tmp_path))
    (tmp_path / "prices.toml").write_text(table)
    run_id = new_run(sqlite_store, budget_usd=0.5)
    paused = run_curation(sqlite_store, run_id)
    assert paused["paused"] and 0 < paused["spent_usd"] <= 0.5
    assert paused["kept"] < PAIRS
    done = run_curation(sqlite_store, run_id, budget_usd=50.0)
    assert done["kept"] == PAIRS and sum(server.answered.values()) == CALLS
