"""Evaluations: the same rows for command, page and job; refused without the right."""

from collections.abc import Callable
from typing import Any

import pytest
from app_pages import open_page
from conftest import Ran
from evaluation_rows import RECORD

from app.access.identity import Actor, owner
from app.operations import evaluations, models
from app.operations.acting import queued
from db.errors import BadInput, Refused
from db.jobs import jobs
from db.outcome.checkpoints import record_checkpoint
from db.outcome.evaluations import record_evaluation
from db.people.rights import Rights
from db.store.store import Store
from trainer.evaluate.request import EvaluationStart

OLD_PAGE = {  # the config of a job that the page queued before the request was typed
    "models": ["bm25"],
    "release": None,
    "benchmark": "dataset:books",
    "subset": None,
    "template": None,
    "query_prefix": "",
    "passage_prefix": "",
    "with_base": True,
    "ordinary": None,
    "pin": None,
    "bm25_language": "de",
    "trec": None,
}


def fill(store: Store, *, count: int = 20) -> list[int]:
    with store.write() as session:
        made = [
            record_evaluation(
                session,
                model=model,
                benchmark="F",
                metrics={"ndcg@10": 0.3 + at / 10},
                per_query={f"q{n}": {"ndcg@10": 0.3 + at * (0.01 + n / 100)} for n in range(count)},
                questions={f"q{n}": {"cluster": f"q{n}", "scored": True} for n in range(count)},
                record=RECORD,
            )
            for at, model in enumerate(("base", "models/better"))
        ]
        record_checkpoint(session, path="/m/one", base_model="base", config={}, summary={})
        session.commit()
        return [each.id for each in made]


def test_differences_are_the_same_rows_for_page_command_and_operation(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    base, better = fill(sqlite_store)
    ran = inf("evaluations", "compare", base, better, "--json")
    assert ran.code == 0 and ran.err == ""
    rows = ran.json["data"]
    assert (ran.json["next"], ran.json["total"]) == (None, len(rows))
    assert inf("evaluations", "compare", base, better, "--offset", 1, "--json").json["data"] == []
    assert rows == evaluations.compare(owner("ada"), base, [better]).as_json()["data"]
    (row,) = rows
    assert (row["id"], row["name"], row["model"]) == (better, "models/better", "models/better")
    assert row["verdict"] == "higher" and row["p_holm"] <= 0.05 and row["low"] > 0
    at = open_page("evaluations")
    at.selectbox("evaluations.base").set_value("base").run()
    (shown,) = [each.value for each in at.dataframe if "p_holm" in each.value]
    assert shown[list(row)].to_dict("records") == rows and list(shown)[len(row) :] == ["part"]
    # the former name and the former keys of a row, for one release
    old = inf("evaluate", "compare", base, better, "--json")
    assert "`inf evaluations compare`" in old.err and old.json == ran.json
    (former,) = old.json["differences"]
    assert (former["p (Holm)"], former["from"]) == (row["p_holm"], row["low"])


def test_lists_and_one_evaluation_have_ids_names_and_a_total(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    base, better = fill(sqlite_store)
    found = inf("evaluations", "list", "--json").json
    assert [row["id"] for row in found["data"]] == [better, base]
    assert (found["total"], found["next"]) == (2, None)
    assert found["data"] == evaluations.list_some(owner("ada")).as_json()["data"]
    part = evaluations.list_some(owner("ada"), "F", limit=1)
    assert (len(part.data), part.next, part.total) == (1, 1, 2)
    one = inf("evaluations", "show", base, "--json").json
    assert one["queries"] == 20 and one["record"] == RECORD
    assert {key: one[key] for key in found["data"][1]} == found["data"][1]
    assert "next: inf evaluations compare" in inf("evaluations", "list").err
    old = inf("evaluate", "list", "--json")
    assert [row["evaluation_id"] for row in old.json["evaluations"]] == [better, base]


STARTED = EvaluationStart(models=("bm25",), benchmark="dataset:books")
CALLS: dict[str, Callable[[Actor], Any]] = {
    "create": lambda actor: evaluations.create(actor, STARTED, queued),
    "options": evaluations.options,
    "list": evaluations.list_some,
    "show": lambda actor: evaluations.show(actor, 1),
    "compare": lambda actor: evaluations.compare(actor, 1, [2]),
    "benchmark": lambda actor: evaluations.of_benchmark(actor, "F"),
    "values": lambda actor: evaluations.values(actor, 1),
    "scores": evaluations.scores,
    "records": lambda actor: evaluations.records(actor, [1]),
    "ordinary": lambda actor: evaluations.ordinary(actor, {"base"}),
    "requests": lambda actor: evaluations.requests(actor, []),
    "circular": lambda actor: evaluations.circular(actor, []),
    "models": models.list_some,
    "model": lambda actor: models.show(actor, 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_operation_without_the_right_is_refused(sqlite_store: Store, name: str) -> None:
    fill(sqlite_store)
    for right in ("curate", "review", "judge", "adjudicate", "release"):
        actor = Actor("eve", rights=Rights(everywhere=frozenset({right})))
        with pytest.raises(Refused, match="lacks a right"):
            CALLS[name](actor)
    with sqlite_store.read() as session:
        assert jobs.list_jobs(session) == []


@pytest.mark.parametrize(
    "given",
    [
        {"benchmark": "/srv/beir"},
        {"benchmark": "dataset:books", "ordinary": "beir"},
        {"models": ("trec:/etc/passwd",), "benchmark": "dataset:books"},
        {"release": "1", "qrels": "/etc/passwd"},
        {"release": "1", "paraphrases": "/etc/passwd"},
        {"release": "1", "trec": "/srv/new"},
        {"release": "1", "remote_code": True},
    ],
)
def test_only_an_admin_names_files_of_the_server(
    sqlite_store: Store, given: dict[str, Any]
) -> None:
    trainer = Actor("eve", rights=Rights(everywhere=frozenset({"train"})))
    with pytest.raises(Refused, match="only an admin"):
        evaluations.create(trainer, EvaluationStart.read({"models": ("bm25",)} | given), queued)


def test_the_config_of_an_earlier_version_is_read_and_a_wrong_one_refused() -> None:
    old = EvaluationStart.read(OLD_PAGE)
    assert (old.benchmark, old.bm25_language, old.with_base) == ("dataset:books", "de", True)
    command = {key: OLD_PAGE[key] for key in ("models", "release", "benchmark", "subset")}
    assert EvaluationStart.read(command | {"held_out_seed": 3}).held_out_seed == 3
    for wrong, why in (
        ({"bm25_language": "klingon"}, "one of en, da"),
        ({"template": "{nothing}"}, "template"),
        ({"release": "1"}, "give either"),
        ({"modells": ["x"]}, "did you mean 'models'"),
    ):
        with pytest.raises(BadInput, match=why):
            EvaluationStart.read(OLD_PAGE | wrong)


def test_options_of_the_command_are_checked_before_anything_runs(inf: Callable[..., Ran]) -> None:
    for given, why in (
        (("--benchmark", "b", "--bm25-language", "klingon"), "klingon"),
        (("--benchmark", "b", "--release", "1"), "give either --release or --benchmark"),
        (("--benchmark", "b", "--template", "{x}"), "template"),
        (("--benchmark", "b", "--qrels", "/nowhere"), "/nowhere"),
    ):
        for command in (("evaluate",), ("evaluations", "create")):
            ran = inf(*command, "--model", "bm25", *given)
            assert ran.code == 2 and why in ran.err, ran.err


def test_requests_of_jobs_that_one_may_not_see_are_left_out(sqlite_store: Store) -> None:
    """An evaluation may be visible by its checkpoint, whose page must not end at its job."""
    with sqlite_store.write() as session:
        job_id = jobs.enqueue_job(session, "evaluate", OLD_PAGE, started_by="ada").id
        session.commit()
    bob = Actor("bob", rights=Rights(on_datasets={1: frozenset({"train"})}))
    assert evaluations.requests(bob, [job_id]) == {}
    assert evaluations.requests(owner("ada"), [job_id])[job_id].models == ("bm25",)
