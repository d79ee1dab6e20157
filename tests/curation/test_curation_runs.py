"""Curation against a language-model server over a socket, and what a run leaves in the store."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import count_rows
from curation_runs import add_dataset, claimed_job, run_curation, texts_of
from openai_server import Server
from records_world import list_groups
from sqlalchemy import select

from analysis.text.near_duplicates import near_duplicate_keys
from curation.judging.candidates import choose, is_near_duplicate
from curation.recipe.settings import Validation
from curation.run.engine import curate
from curation.run.starting import resume_run, start_run
from db.corpus.datasets import text_sha256
from db.errors import BadInput, NotFound, ProviderError
from db.jobs.jobs import list_jobs, metric_series
from db.outcome.position_bias import position_bias
from db.run.group_detail import get_group
from db.run.group_queue import ClaimedGroup, DoneGroup, claim_groups, finish_groups, release_groups
from db.run.progress import list_runs
from db.run.runs import ANSWERS, STAGES, funnel, get_run, latest_run
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Call, Group, Judgment, Pair, Passage, Run

ASKED: dict[str, Any] = {"dataset": "small", "provider": "openai", "settings": ["model=small"]}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server() as server:
        use(server, monkeypatch)
        yield server


def use(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setattr("curation.providers.openai_server.BACKOFF_SECONDS", 0.01)


def test_a_run_grows_three_triplets_from_every_pair_and_keeps_what_the_judge_confirms(
    store: Store, server: Server
) -> None:
    add_dataset(store)
    result = run_curation(store, **ASKED)
    assert (result["pairs"], result["generated"], result["kept"]) == (12, 12, 12)
    assert result["status"] == "done" and not result["paused"] and not result["offline"]
    assert result["calls"] == {"made": 12 * 8, "reused": 0}
    with store.read() as session:
        page = list_groups(session, result["run_id"], verdict="kept")
        assert page.total == 12
        group = get_group(session, page.rows[0].id)
        (job,) = list_jobs(session, kind="curate")
        answers = metric_series(session, [job.id])[job.id]  # a page draws them by stage over time
    assert {name.removeprefix(ANSWERS) for name in answers} == set(STAGES)
    assert sum(series[-1][1] for series in answers.values()) == 12 * 8
    assert set(group.triplets) == {"positive", "instruction_negative", "query_negative"}
    positive = group.triplets["positive"]
    first, second = group.triplets["instruction_negative"], group.triplets["query_negative"]
    assert positive.passage == group.passage and positive.query == group.query
    assert first.query == positive.query and first.instruction != positive.instruction
    assert second.instruction == positive.instruction and second.query != positive.query
    assert len({positive.passage, first.passage, second.passage}) == 3
    assert [judgment.agrees for judgment in group.judgments] == [True] * 3
    assert {len(judgment.candidates) for judgment in group.judgments} == {6}
    assert len(group.calls) == 8 and {call.outcome for call in group.calls} == {"ok"}


def test_candidates_are_the_three_passages_and_random_ones_in_an_order_that_is_recorded(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store)
    result = run_curation(sqlite_store, **ASKED)
    orders = set()
    with sqlite_store.read() as session:
        for row in list_groups(session, result["run_id"]).rows:
            for judgment in get_group(session, row.id).judgments:
                assert sorted(judgment.order_shown) == sorted(judgment.candidates)
                assert len(set(judgment.candidates.values())) == 6
                orders.add(tuple(judgment.order_shown))
    assert len(orders) > 20  # of 36 drawn from 720


def test_a_stored_answer_is_never_asked_for_again_in_this_run_or_another(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store)
    first = run_curation(sqlite_store, **ASKED)
    asked = dict(server.asked)
    second = run_curation(sqlite_store, **ASKED)
    assert second["calls"] == {"made": 0, "reused": 96} and dict(server.asked) == asked
    assert set(asked.values()) == {1}
    assert texts_of(sqlite_store, first["run_id"]) == texts_of(sqlite_store, second["run_id"])


@pytest.mark.long
def test_faults_cost_at_most_their_own_row_and_every_drop_has_its_reason(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    passing = dict.fromkeys(("429", "429_retry_after", "500", "cut_before", "cut_after"), 0.04)
    lasting = dict.fromkeys(("wrong_form", "refusal", "no_choice", "wrong_candidate"), 0.02)
    add_dataset(sqlite_store, pairs=40)
    with Server(faults=passing | {"truncated": 0.04} | lasting, seed=3) as server:
        use(server, monkeypatch)
        result = run_curation(sqlite_store, **ASKED)
    assert result["status"] == "done"
    assert result["kept"] + sum(result["dropped"].values()) == result["pairs"] == 40
    assert set(result["dropped"]) <= {"unparsable", "refused", "empty", "unknown_candidate"}
    assert result["kept"] >= 15 and len(result["dropped"]) >= 3
    assert {"429", "429_retry_after", "500", "cut_before", "cut_after", "truncated"} <= set(
        server.statuses
    )
    with sqlite_store.read() as session:
        counted = funnel(session, result["run_id"])
        dropped = list_groups(session, result["run_id"], verdict="dropped", limit=100).rows
        details = [get_group(session, row.id) for row in dropped]
    assert counted.dropped == result["dropped"] and counted.kept == result["kept"]
    assert all(group.drop_detail for group in details)


def test_an_answer_that_no_store_can_hold_costs_its_own_row(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(store)
    with Server(faults={"no_character": 0.15}, seed=1) as server:
        use(server, monkeypatch)
        result = run_curation(store, **ASKED)
    assert result["status"] == "done" and server.statuses["no_character"] > 0
    assert result["kept"] + result["dropped"]["unparsable"] == 12 and result["kept"] > 0
    with store.read() as session:
        odd = [each for each in session.scalars(select(Call.answer)) if "\ufffd" in each]
    assert len(odd) == server.statuses["no_character"]  # stored, NUL and half a pair replaced


def test_passing_faults_change_nothing_but_the_time(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store)
    with Server() as server:
        use(server, monkeypatch)
        plain = run_curation(sqlite_store, **ASKED)
    with sqlite_store.write() as session:  # the second run must ask for itself
        session.execute(Call.__table__.update().values(key=Call.key + "-old"))
        session.commit()
    faults = dict.fromkeys(("429", "500", "cut_before", "cut_after", "truncated"), 0.1)
    with Server(faults=faults, seed=1) as server:
        use(server, monkeypatch)
        faulty = run_curation(sqlite_store, **ASKED)
    assert len(server.statuses) >= 5
    assert texts_of(sqlite_store, plain["run_id"]) == texts_of(sqlite_store, faulty["run_id"])


def test_a_wrong_key_stops_the_run_at_once_and_says_what_to_do(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store)
    with Server(key="right") as server:
        use(server, monkeypatch)
        monkeypatch.setenv("OPENAI_API_KEY", "wrong")
        with pytest.raises(ProviderError, match="OPENAI_API_KEY"):
            run_curation(sqlite_store, **ASKED)
        with sqlite_store.read() as session:
            run = session.scalars(select(Run)).one()
        assert run.status == "failed" and "key" in (run.error or "")
        monkeypatch.setenv("OPENAI_API_KEY", "right")
        assert run_curation(sqlite_store, run.id)["kept"] == 12


def test_an_unknown_model_is_refused_before_anything_is_asked(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store)
    with pytest.raises(ProviderError, match=r"no model 'gpt-4o-mini'.*judge, small"):
        run_curation(sqlite_store, dataset="small", provider="openai")
    assert not server.asked


def test_spent_quota_stops_the_run_and_it_goes_on_where_it_stopped(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store)
    with Server(quota=30) as server:
        use(server, monkeypatch)
        with pytest.raises(ProviderError, match="quota"):
            run_curation(sqlite_store, **ASKED)
        with sqlite_store.read() as session:
            run_id = session.scalars(select(Run.id)).one()
        server.quota = None
        result = run_curation(sqlite_store, run_id)
    assert result["kept"] == 12 and result["calls"]["reused"] >= 20
    assert max(server.answered.values()) == 1


def test_without_a_key_the_error_says_which_variables_to_set(sqlite_store: Store) -> None:
    add_dataset(sqlite_store)
    with pytest.raises(ProviderError, match=r"OPENAI_API_KEY.*OPENAI_BASE_URL.*offline"):
        run_curation(sqlite_store, **ASKED)


@pytest.mark.parametrize(("recipe", "per_pair"), [("msmarco", 8), ("promptriever", 10)])
def test_the_budget_is_never_exceeded_and_a_raised_one_goes_on(
    sqlite_store: Store,
    monkeypatch: pytest.MonkeyPatch,
    own_home: Any,
    recipe: str,
    per_pair: int,
) -> None:
    add_dataset(sqlite_store)
    (own_home / "prices.toml").write_text('["small"]\ninput = 1.0\noutput = 10.0\n')
    settings = ["model=small", "max_output_tokens=100"]
    with Server(usage=(300, 40), schema="taken") as server:
        use(server, monkeypatch)
        result = run_curation(
            sqlite_store,
            **{**ASKED, "recipe": recipe, "settings": settings},
            budget_usd=0.02,
        )
        assert result["paused"] and result["status"] == "paused" and "budget" in result["reason"]
        assert 0.015 < result["spent_usd"] <= 0.02
        with pytest.raises(BadInput, match="more than that"):
            run_curation(sqlite_store, result["run_id"], budget_usd=0.001)
        result = run_curation(sqlite_store, result["run_id"], budget_usd=1.0)
    assert result["kept"] + sum(result["dropped"].values()) == 12
    assert result["kept"] > 6 and max(server.answered.values()) == 1
    assert result["spent_usd"] == pytest.approx(12 * per_pair * 0.0007)


def test_a_budget_with_an_unknown_price_asks_for_the_price(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store)
    with pytest.raises(BadInput, match="the price of 'small' is unknown"):
        run_curation(sqlite_store, **ASKED, budget_usd=1.0)
    # refused before there is a run, or a job that could fail
    assert (count_rows(sqlite_store, "run"), count_rows(sqlite_store, "job")) == (0, 0)
    with sqlite_store.write() as session:
        run_id = start_run(session, **ASKED).id
        session.commit()
    with (
        sqlite_store.write() as session,
        pytest.raises(BadInput, match="the price of 'small' is unknown"),
    ):
        resume_run(session, run_id, budget_usd=1.0)
    assert not server.answered


def test_a_limit_takes_the_first_pairs_and_a_data_set_without_pairs_is_refused(
    store: Store, server: Server
) -> None:
    add_dataset(store)
    assert run_curation(store, **ASKED, limit=3)["pairs"] == 3
    add_dataset(store, name="empty", pairs=0)
    with store.write() as session, pytest.raises(BadInput, match="no pairs"):
        start_run(session, dataset="empty", provider="offline")
    with store.write() as session, pytest.raises(NotFound, match="small"):
        start_run(session, dataset="nowhere", provider="offline")


def test_a_sample_takes_random_pairs_that_the_seed_fixes(store: Store) -> None:
    add_dataset(store, pairs=40)
    add_dataset(store, name="other", pairs=5)

    def pairs_of(**asked: Any) -> list[str]:
        with store.write() as session:
            run = start_run(session, dataset="small", provider="offline", **asked)
            query = select(Pair.external_id).join(Group, Group.pair_id == Pair.id)
            return list(session.scalars(query.where(Group.run_id == run.id).order_by(Pair.id)))

    everything = pairs_of()
    sampled = pairs_of(sample=10, seed=1)
    assert len(set(sampled)) == 10 and set(sampled) <= set(everything)
    assert sampled != everything[:10]
    assert pairs_of(sample=10, seed=1) == sampled != pairs_of(sample=10, seed=2)
    assert pairs_of(sample=41) == everything
    for asked, message in (({"sample": 0}, "sample of 0"), ({"sample": 2, "limit": 2}, "one of")):
        with pytest.raises(BadInput, match=message):
            pairs_of(**asked)


@pytest.mark.long
@pytest.mark.parametrize("recipe", ["msmarco", "promptriever"])
def test_a_job_asked_to_stop_gives_its_groups_back_and_can_be_resumed(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, recipe: str
) -> None:
    add_dataset(sqlite_store, pairs=30)
    with Server(latency_seconds=0.05, schema="taken") as server:
        use(server, monkeypatch)
        with sqlite_store.write() as session:
            run_id = start_run(session, **ASKED, recipe=recipe, concurrency=4).id
            session.commit()
        handle = claimed_job(sqlite_store, run_id)
        server.latency_seconds = 0.02
        stop_after(server, handle, 120)
        with pytest.raises(Exception, match="stopped"):
            curate(handle)
        with sqlite_store.read() as session:
            counted = funnel(session, run_id)
            assert get_run(session, run_id).status == "paused"
        assert counted.in_work == 0 and 0 < counted.waiting < 30
        result = run_curation(sqlite_store, run_id)
    assert result["status"] == "done" and max(server.answered.values()) == 1
    assert result["kept"] + sum(result["dropped"].values()) == 30 and result["kept"] > 15


def test_runs_are_listed_newest_first_and_the_latest_finished_is_the_default(
    store: Store, server: Server
) -> None:
    dataset_id = add_dataset(store)
    with store.read() as session, pytest.raises(NotFound, match="`runs create small`"):
        latest_run(session, dataset_id)
    first = run_curation(store, **ASKED, limit=2)["run_id"]
    second = run_curation(store, **ASKED, limit=3)["run_id"]
    with store.write() as session:
        unfinished = start_run(session, **ASKED).id
        session.commit()
    with store.read() as session:
        assert latest_run(session, dataset_id).id == second
        assert [run.id for run in list_runs(session)] == [unfinished, second, first]
        assert [(run.kept, run.pairs) for run in list_runs(session, dataset_id)] == [
            (0, 12),
            (3, 3),
            (2, 2),
        ]


def test_groups_are_searched_filtered_and_listed(store: Store, server: Server) -> None:
    add_dataset(store)
    run_id = run_curation(store, **ASKED)["run_id"]
    with store.read() as session:
        (first, *_) = list_groups(session, run_id).rows
        found = list_groups(session, run_id, search=first.query.upper())
        assert [row.name for row in found.rows] == ["q0"]
        assert list_groups(session, run_id, search="100%").total == 0
        assert list_groups(session, run_id, verdict="dropped").total == 0
        assert list_groups(session, run_id, review="none").total == 12
        page = list_groups(session, run_id, offset=10, limit=5)
        assert (page.total, len(page.rows)) == (12, 2)
        rows = list_groups(session, run_id).rows
        assert [row.name for row in rows] == [f"q{n}" for n in range(12)]
        assert all(len(get_group(session, row.id).triplets) == 3 for row in rows)
        with pytest.raises(NotFound):
            get_group(session, 10**6)


def test_a_group_that_was_given_to_another_worker_cannot_be_written_by_the_first(
    store: Store, server: Server
) -> None:
    add_dataset(store)
    with store.write() as session:
        run_id = start_run(session, **ASKED, limit=2).id
        (group, _) = claim_groups(session, run_id, "first", 5)
        assert claim_groups(session, run_id, "second", 5) == []
        release_groups(session, run_id, ["first"])
        (again, _) = claim_groups(session, run_id, "second", 5)
        assert again.id == group.id and again.attempt == group.attempt + 1
        late = DoneGroup(group, "instruction", "dropped", "empty", "late", INF_IR, {}, (), ())
        assert finish_groups(session, run_id, "first", [late]) == []
        session.commit()
    with store.read() as session:
        assert session.get_one(Group, group.id).verdict is None


def test_the_store_holds_one_judgment_per_scenario_by_the_validator(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store)
    run_id = run_curation(sqlite_store, **ASKED)["run_id"]
    with sqlite_store.read() as session:
        judgments = list(session.scalars(select(Judgment)))
    assert len(judgments) == 36 == count_rows(sqlite_store, "item")
    assert {judgment.run_id for judgment in judgments} == {run_id}


def stop_after(server: Server, handle: Any, calls: int) -> None:
    """Ask the job to stop once the server has answered so many, before it answers many more."""
    import threading
    import time

    server.hold_after = calls + 20

    def watch() -> None:
        while sum(server.answered.values()) < calls:
            time.sleep(0.005)
        handle.stop()
        server.hold_after = None

    threading.Thread(target=watch, daemon=True).start()


def test_hard_distractors_are_what_bm25_finds_for_the_query_and_no_answers(
    sqlite_store: Store, server: Server
) -> None:
    dataset_id = add_dataset(sqlite_store, pairs=6)
    with sqlite_store.write() as session:
        (query,) = session.scalars(select(Pair.query).where(Pair.external_id == "q0"))
        for number, words in enumerate(("roof", "door", "garden")):
            text = f"The {query.split()[-1]} of another place, with a {words} of its own."
            session.add(
                Passage(
                    dataset_id=dataset_id,
                    external_id=f"hard{number}",
                    text=text,
                    sha256=text_sha256(text),
                    origin="pool",
                )
            )
        session.commit()
    settings = ["model=small", "validation.hard_distractors=2", "validation.distractors=2"]
    result = run_curation(sqlite_store, **{**ASKED, "settings": settings}, limit=1)
    with sqlite_store.read() as session:
        group = get_group(session, list_groups(session, result["run_id"]).rows[0].id)
    candidates = group.judgments[0].candidates
    assert len(candidates) == 7
    assert all("another place" in candidates[f"distractor_{place}"] for place in (3, 4))


def test_several_votes_are_over_different_orders_and_the_majority_decides(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=4)
    settings = ["model=small", "validation.votes=3"]
    result = run_curation(sqlite_store, **{**ASKED, "settings": settings})
    assert result["kept"] == 4 and result["calls"]["made"] == 4 * (5 + 9)
    with sqlite_store.read() as session:
        details = list(session.scalars(select(Judgment.detail)))
        places = position_bias(session, result["run_id"])
    assert {len(detail["votes"]) for detail in details} == {3}
    assert any(len({tuple(v["order_shown"]) for v in one["votes"]}) == 3 for one in details)
    assert sum(place.expected for place in places) == 36
    assert [place.accuracy for place in places if place.expected] == [
        1.0 for place in places if place.expected
    ]


def test_without_more_than_half_of_the_votes_a_choice_is_ambiguous() -> None:
    for agree in (0, 1, 2):
        decide = Validation(votes=3, agree=agree).decide
        assert decide(["positive", "positive", "none"]) == "positive"
        assert decide(["positive", "none"]) == "ambiguous"
        assert decide(["none", "none", "ambiguous"]) == "none"
    unanimous = Validation(votes=3, agree=3).decide
    assert unanimous(["positive", "positive", "none"]) == "ambiguous"
    assert unanimous(["none"] * 3) == "none"


def test_near_duplicates_of_the_real_passages_are_never_distractors(real_data: Path) -> None:
    rows = (real_data / "google_queries" / "passages.jsonl").read_text().splitlines()
    texts = dict(enumerate(json.loads(row)["text"] for row in rows))
    clusters: dict[int, list[int]] = {}
    for place, key in enumerate(near_duplicate_keys(list(texts.values()))):
        clusters.setdefault(key, []).append(place)
    alike = [places for places in clusters.values() if len(places) > 1]
    plain = [places[0] for places in clusters.values() if len(places) == 1]
    assert len(alike) >= 17  # the real data is full of traps
    for gold, *twins in alike:
        group = ClaimedGroup(1, 1, 1, "q", "what is meant", gold, texts[gold])
        assert choose(group, [*twins, *plain[:9]], texts, count=5) == plain[:5]
    assert not is_near_duplicate(texts[plain[0]], texts[plain[1]])
