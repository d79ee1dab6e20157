"""What models write that may not go on: each a counted reason of a run, the answer kept as it came.

And what goes with every answer: its prompt by sha256, its words before anybody parsed them.
"""

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from curation_runs import add_dataset, claimed_job, run_curation
from openai_server import Server
from records_world import list_groups
from sqlalchemy import select, update

from curation.providers.openai_server import OpenAIProvider
from curation.providers.provider import Request
from curation.recipe.drop_reasons import DROP_REASONS, TOO_WEAK, reason_text, what_to_change
from curation.recipe.prompt import FOLDER, read_prompt
from curation.recipe.recipe import load_recipe
from curation.recipe.tasks import tasks_of
from curation.run.engine import curate
from curation.run.starting import start_run
from curation.servers.connection import environment_server
from db.corpus.datasets import text_sha256
from db.errors import ProviderError
from db.question import CHECK
from db.run import group_queue
from db.run.group_detail import get_group
from db.run.group_queue import LEASE_SECONDS, claim_groups, renew_leases
from db.run.runs import get_run
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Call, Group, GroupCall, Pair, Prompt, Run, utc_now

TASKS = tasks_of(INF_IR)

ASKED: dict[str, Any] = {"dataset": "small", "provider": "openai", "settings": ["model=small"]}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setattr("curation.providers.openai_server.BACKOFF_SECONDS", 0.01)
        yield server


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("leak", "personal_data"),
        ("repeat", "unchanged"),
        ("other_language", "language_changed"),
        ("much", "too_long"),
        ("wrong_form", "unparsable"),
        ("chat_tail", "leftover"),
        ("no_choice", "empty"),
        ("refusal", "refused"),
        ("no_agreement", "judge_none"),
        ("undecided", "judge_ambiguous"),
        ("wrong_candidate", "unknown_candidate"),
    ],
)
def test_every_way_to_spoil_an_answer_is_a_counted_reason_of_its_own_groups_only(
    sqlite_store: Store, server: Server, fault: str, reason: str
) -> None:
    add_dataset(sqlite_store, pairs=16)
    server.faults = {fault: 0.1}
    result = run_curation(sqlite_store, **ASKED)
    assert result["status"] == "done" and server.statuses[fault] > 0
    assert set(result["dropped"]) == {reason}
    assert result["kept"] + result["dropped"][reason] == 16 and result["kept"] > 0
    with sqlite_store.read() as session:
        rows = list_groups(session, result["run_id"], reason=reason).rows
        assert len(rows) == result["dropped"][reason]
        assert all(get_group(session, row.id).drop_detail for row in rows)


def test_a_run_of_debris_keeps_no_text_with_any_of_it(sqlite_store: Store, server: Server) -> None:
    """Every fifth text has debris of some kind: what is kept is free of it, to the character."""
    add_dataset(sqlite_store, pairs=60)
    server.faults = {"debris": 0.2}
    result = run_curation(sqlite_store, **ASKED, guard=False)
    assert server.statuses["debris"] > 40 and 0 < result["kept"] < 45
    assert set(result["dropped"]) <= {"leftover", "refused", "unparsable", "cut_off"}
    with sqlite_store.read() as session:
        kept = list_groups(session, result["run_id"], verdict="kept", limit=100).rows
        for row in kept:
            triplets = get_group(session, row.id).triplets
            negative = triplets["instruction_negative"]
            assert re.fullmatch(r"I only want to read about \w+", negative.instruction)
            assert re.fullmatch(r"what is known about \w+", triplets["query_negative"].query)
            for role in ("instruction_negative", "query_negative"):
                assert PASSAGE.fullmatch(triplets[role].passage), triplets[role].passage


PASSAGE = re.compile(
    r"It has been known since long that [\w ]+ matters, and \w+ above all\. "
    r"Nobody who looked into it found anything else\."
)


def test_what_follows_the_first_newline_is_cut_from_the_text_and_kept_in_the_answer(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=6)
    server.faults = {"more_lines": 1.0}
    result = run_curation(sqlite_store, **ASKED)
    assert result["kept"] == 6
    with sqlite_store.read() as session:
        groups = [get_group(session, row.id) for row in list_groups(session, result["run_id"]).rows]
        answers = list(session.scalars(select(Call.answer).where(Call.task.like("%_negative"))))
        answers = [one for one in answers if not one.startswith("Passage")]
    for group in groups:
        for triplet in group.triplets.values():
            assert "\n" not in triplet.instruction + triplet.query
    assert all("\n\nNote: I made it harder." in answer for answer in answers)


def test_the_raw_answer_is_stored_also_where_nothing_can_be_read_out_of_it(
    store: Store, server: Server
) -> None:
    add_dataset(store, pairs=3)
    server.faults = {"wrong_form": 1.0}
    result = run_curation(store, **ASKED)
    assert result["dropped"] == {"unparsable": 3}
    with store.read() as session:
        found = session.execute(
            select(Call.answer, GroupCall.outcome).join(GroupCall, GroupCall.call_id == Call.id)
        ).all()
    words = "Certainly! Here is something that you did not ask for."
    assert [tuple(row) for row in found] == [(words, "unparsable")] * 3


def test_every_output_is_stored_with_the_sha256_of_its_prompt_file(
    store: Store, server: Server
) -> None:
    add_dataset(store, pairs=2)
    run_curation(store, **ASKED)
    stages = load_recipe("msmarco").stages
    with store.read() as session:
        found = {tuple(row) for row in session.execute(select(Call.task, Call.prompt_sha256))}
        texts = {one.sha256: one.text for one in session.scalars(select(Prompt))}
    assert found == {
        (task, text_sha256((FOLDER / stage.prompt.name).read_text("utf-8")))
        for task, stage in stages.items()
    }
    assert all(texts[sha256] == stages[task].prompt.text for task, sha256 in found)


def test_groups_of_code_name_their_language_in_both_instructions(
    store: Store, server: Server
) -> None:
    add_dataset(store, pairs=9)
    languages = {}
    with store.write() as session:
        for number, pair in enumerate(session.scalars(select(Pair).order_by(Pair.id))):
            languages[pair.external_id] = ("C++", "Python", "")[number % 3]
            pair.meta = {"language": languages[pair.external_id]} if number % 3 < 2 else {}
        session.commit()
    result = run_curation(store, **ASKED, recipe="leetcode")
    assert result["kept"] == 6 and result["dropped"] == {"no_language": 3}
    with store.read() as session:
        for row in list_groups(session, result["run_id"], verdict="kept").rows:
            group = get_group(session, row.id)
            start = f"In {languages[group.name]} "
            assert {one.instruction.startswith(start) for one in group.triplets.values()} == {True}
            assert group.triplets["instruction_negative"].instruction != (
                group.triplets["positive"].instruction
            )


def test_an_unknown_model_of_a_server_without_a_list_stops_the_run_and_says_what_to_do(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store)
    with Server(list_models=False, models=("judge",)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with pytest.raises(ProviderError, match=r"does not know the model 'small'.*`set="):
            run_curation(sqlite_store, **ASKED)
    with sqlite_store.read() as session:
        run = session.scalars(select(Run)).one()
        assert get_run(session, run.id).status == "failed"
        assert session.scalars(select(Group.verdict).distinct()).all() == [None]


def test_spent_quota_says_what_to_do(sqlite_store: Store, server: Server) -> None:
    add_dataset(sqlite_store)
    server.quota = 3
    with sqlite_store.write() as session:
        run_id = start_run(session, **ASKED).id
        session.commit()
    with pytest.raises(ProviderError, match=r"quota is spent.*add credit, then resume"):
        curate(claimed_job(sqlite_store, run_id))


def test_calls_go_through_the_transport_of_aiohttp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:9/v1")
    provider = OpenAIProvider.of_server(
        environment_server(), load_recipe("msmarco"), concurrency=1, with_budget=False
    )
    (endpoint,) = provider.endpoints.all
    assert "aiohttp" in type(endpoint.client._client._transport).__module__
    assert endpoint.client.max_retries == 0


def test_a_lease_that_ran_out_is_taken_by_another_worker_and_a_renewed_one_is_not(
    store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(store, pairs=2)
    long_ago = utc_now() - timedelta(seconds=2 * LEASE_SECONDS)
    with store.write() as session:
        run_id = start_run(session, **ASKED).id
        (first, second) = claim_groups(session, run_id, "slow", 5)
        session.execute(update(Group).values(lease_until=long_ago))
        assert renew_leases(session, run_id, "another") == 0
        assert renew_leases(session, run_id, "slow") == 2
        # no lease expires while its server is up for less: alone, this test's was
        monkeypatch.setattr(group_queue, "LEASE_SECONDS", 0.1)
        assert claim_groups(session, run_id, "quick", 5) == [], "it is alive"
        session.execute(update(Group).where(Group.id == second.id).values(lease_until=long_ago))
        (taken,) = claim_groups(session, run_id, "quick", 5)
        session.commit()
    assert (taken.id, taken.attempt) == (second.id, second.attempt + 1)
    assert first.attempt == 1


def test_two_workers_of_one_store_never_claim_the_same_group(store: Store, server: Server) -> None:
    add_dataset(store, pairs=30)
    with store.write() as session:
        run_id = start_run(session, **ASKED).id
        session.commit()
    claimed: list[int] = []
    together = threading.Barrier(4)

    def claim(owner: str) -> None:
        together.wait()
        until = time.monotonic() + 60
        while len(claimed) < 30 and time.monotonic() < until:
            with store.write() as session:
                groups = claim_groups(session, run_id, owner, 3)
                session.commit()
            claimed.extend(group.id for group in groups)

    workers = [threading.Thread(target=claim, args=(f"worker {n}",)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(claimed) == len(set(claimed)) == 30


def test_the_wait_that_a_server_asks_for_is_kept(server: Server) -> None:
    server.faults, server.retry_after = {"429_retry_after": 1.0}, 0.3
    request = Request(
        task="instruction_positive",
        gives="Instruction",
        provider="openai",
        model="small",
        parameters={},
        prompt=read_prompt(
            "instruction_positive", TASKS["instruction_positive"], "instruction_positive.md", FOLDER
        ),
        inputs={"document": "a long word", "query_positive": "what"},
    )

    async def ask() -> tuple[int, float, float]:
        provider = OpenAIProvider.of_server(
            environment_server(), load_recipe("msmarco"), concurrency=4, with_budget=False
        )
        began = time.monotonic()
        try:
            answer = await provider.answer(request)
            return answer.attempts, time.monotonic() - began, provider.state().width
        finally:
            await provider.close()

    attempts, seconds, width = asyncio.run(ask())
    # the backoff of these tests is 0.01 s: what was waited for is what the server said
    assert attempts == 2 and seconds >= 0.3 and width < 4


def test_every_drop_reason_is_shown_in_words_and_an_unknown_one_by_its_name() -> None:
    assert reason_text("judge_none") == "the judge found no passage that fits"
    assert all(reason_text(name) == reason.meaning for name, reason in DROP_REASONS.items())
    assert reason_text("of_a_plugin") == "of a plugin"
    assert reason_text("judge_missed_role_play") == (
        "the judge chose another passage than that of “role play”"
    )
    # the text of this scenario is another one in each shape
    assert reason_text("judge_missed_positive").endswith("than that of “positive”")
    for reason in ("judge_missed_role_play", f"{CHECK}fits"):
        assert "look at dropped groups" in what_to_change(1, {reason: 2})


@pytest.mark.parametrize(
    ("kept", "dropped", "said"),
    [
        (3, {"judge_none": 3}, ""),
        (6, {}, ""),
        (0, {}, ""),
        (1, {"unchanged": 2, "unparsable": 2, "judge_none": 1}, "too weak"),
        (0, {"unchanged": 3, "judge_none": 3}, "look at dropped groups"),
        (0, {"cut_off": 5, "unchanged": 1}, "max_output_tokens"),
        (0, {"check:fits": 6}, ""),
    ],
)
def test_where_most_are_dropped_it_is_told_what_to_change(
    kept: int, dropped: dict[str, int], said: str
) -> None:
    told = what_to_change(kept, dropped)
    assert (said in told) if said else told == ""


def test_what_a_weak_model_does_is_among_the_reasons() -> None:
    assert set(DROP_REASONS) >= TOO_WEAK
