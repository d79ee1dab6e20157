"""Groups: the same rows for command, page and operation; blind for who may not see verdicts."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from app_pages import card_data, open_page
from conftest import Ran
from records_world import group_ids, make_run
from sqlalchemy import event
from sqlalchemy.engine import Engine

from app.access.identity import Actor, owner
from app.operations import datasets, groups, runs
from curation.recipe import recipe as recipes
from db.errors import BadInput, InfError, Refused
from db.people.rights import Rights
from db.review.queue import QueueFilter
from db.review.reviews import add_proposal, approve_group, edit_group
from db.store.store import Store
from db.study.judgments import get_or_create_judge

ALL = QueueFilter(run_id=1)
CURATOR = Actor("ann", rights=Rights(on_datasets={1: frozenset({"curate"})}))
ANNOTATOR = Actor("eve", rights=Rights(on_datasets={1: frozenset({"review"})}))
NEEDED: dict[str, tuple[str, Callable[[Actor], Any]]] = {
    "list_some": ("curate or review", lambda actor: groups.list_some(actor, ALL)),
    "show": ("curate", lambda actor: groups.show(actor, 1)),
}


def as_text(rows: Any) -> str:
    return json.dumps(rows, ensure_ascii=False)


def test_the_page_the_command_and_the_operation_have_the_same_rows(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    run_id = make_run(sqlite_store, kept=2, dropped=2, unwritten=1)
    with sqlite_store.write() as session:
        approve_group(session, group_ids(sqlite_store, run_id)[0], reviewed_by="ada")
        session.commit()
    listed = inf("groups", "list", "--run", run_id, "--json").json
    assert listed["total"] == 5 and listed["next"] is None
    own = groups.list_some(owner("ada"), QueueFilter(run_id=run_id)).as_json()
    assert as_text({key: listed[key] for key in own}) == as_text(own)
    assert as_text(card_data(open_page("groups"))["rows"]) == as_text(listed["data"])
    # the former keys, for one release
    first = listed["groups"][0]
    assert (first["group_id"], first["query_id"]) == (first["id"], first["name"])
    dropped = inf("groups", "list", "--run", run_id, "--verdict", "dropped", "--json").json
    page = card_data(open_page("groups", verdict="dropped"))
    assert as_text(page["rows"]) == as_text(dropped["data"]) and page["total"] == dropped["total"]


def test_a_group_is_shown_whole(sqlite_store: Store, inf: Callable[..., Ran]) -> None:
    run_id = make_run(sqlite_store)
    group_id = group_ids(sqlite_store, run_id)[0]
    found = inf("groups", "show", group_id, "--json").json
    shown = groups.show(owner("ada"), group_id).as_json()
    assert found == shown | {"group_id": group_id, "query_id": shown["name"]}
    assert list(shown["triplets"]) == ["positive", "instruction_negative", "query_negative"]
    assert [each["agrees"] for each in shown["judgments"]] == [True] * len(shown["judgments"])
    with pytest.raises(InfError) as raised:
        groups.show(owner("ada"), 999)
    assert raised.value.code == "group_unknown"


def test_the_workbench_is_handed_the_group_that_commands_print(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    run_id = make_run(sqlite_store, kept=1, dropped=1, unwritten=1)
    (first,) = group_ids(sqlite_store, run_id)
    with sqlite_store.write() as session:
        edit_group(session, first, {"query_negative": "who sold it"}, reviewed_by="ada")
        judge = get_or_create_judge(session, "agent:helper", kind="model", provider="agent")
        add_proposal(session, first, judge, action="reject", reason="a leak")
        session.commit()
    card = {each["group"]["id"]: each for each in card_data(open_page("groups"))["groups"]}
    assert len(card) == 3
    for group_id, each in card.items():
        printed = inf("groups", "show", group_id, "--json").json
        shown = groups.show(owner("ada"), group_id).as_json()
        assert as_text(each["group"]) == as_text(shown)
        assert as_text({name: printed[name] for name in shown}) == as_text(shown)
    shown = card[first]["group"]
    review = inf("reviews", "show", shown["review"]["id"], "--json").json
    assert as_text(shown["review"]) == as_text(review)
    assert [each["reason"] for each in shown["proposals"]] == ["a leak"]


def test_lists_are_paged_alike(sqlite_store: Store, inf: Callable[..., Ran]) -> None:
    make_run(sqlite_store, kept=3, dropped=2, unwritten=0)
    make_run(sqlite_store, kept=1, dropped=0, unwritten=0, name="other")
    first = inf("groups", "list", "--run", 1, "--limit", 2, "--json").json
    assert (len(first["data"]), first["next"], first["total"]) == (2, 2, 5)
    last = inf("groups", "list", "--run", 1, "--limit", 3, "--offset", 4, "--json").json
    assert (len(last["data"]), last["next"]) == (1, None)
    for noun in ("datasets", "runs", "recipes"):
        whole = inf(noun, "list", "--json").json
        part = inf(noun, "list", "--limit", 1, "--offset", 1, "--json").json
        assert part["data"] == whole["data"][1:2] and part["total"] == whole["total"]
        assert part[noun] == whole[noun][1:2], "the former key has the same page"
        out = inf(noun, "list", "--limit", 1).out
        assert f"1 of {whole['total']:,}: --offset 1 lists the next ones" in out
    for noun in (
        "models",
        "evaluations",
        "releases",
        "studies",
        "people",
        "jobs",
        "trainings",
        "connections",
    ):
        found = inf(noun, "list", "--limit", 1, "--offset", 3, "--json")
        assert (found.code, found.json["data"], found.json["next"]) == (0, [], None), noun


@pytest.mark.parametrize("name", NEEDED)
def test_an_operation_on_groups_needs_a_right_on_their_dataset(
    sqlite_store: Store, name: str
) -> None:
    make_run(sqlite_store)
    required, call = NEEDED[name]
    with pytest.raises(Refused, match=f"requires {required}"):
        call(Actor("tom", rights=Rights(everywhere=frozenset({"train", "release", "judge"}))))
    elsewhere = Actor("joe", rights=Rights(on_datasets={77: frozenset({"curate", "review"})}))
    with pytest.raises(InfError, match=r"no (run|group)"):
        call(elsewhere)


def test_a_blind_reviewer_gets_no_verdict_and_cannot_filter_by_one(sqlite_store: Store) -> None:
    make_run(sqlite_store, kept=2, dropped=2, unwritten=1)
    rows = groups.list_some(ANNOTATOR, ALL)
    assert rows.total == 4, "a group without its texts was dropped"
    for row in rows.data:
        assert (row.verdict, row.drop_reason, row.stage, row.state) == (None, None, "", "")
    assert {row.verdict for row in groups.list_some(CURATOR, ALL).data} == {"kept", "dropped"}
    for wanted in ({"verdict": "kept"}, {"reason": "validation"}, {"stage": "validation"}):
        with pytest.raises(Refused, match="without verdicts"):
            groups.list_some(ANNOTATOR, QueueFilter.read({"run_id": 1, **wanted}))
    with pytest.raises(Refused):
        groups.show(ANNOTATOR, 1)


def test_a_filter_names_what_it_refuses() -> None:
    with pytest.raises(BadInput, match="did you mean 'verdict'"):
        QueueFilter.read({"run_id": 1, "verdikt": "kept"})
    with pytest.raises(BadInput, match="verdict='good'"):
        QueueFilter.read({"run_id": 1, "verdict": "good"})
    with pytest.raises(BadInput, match="stage="):
        QueueFilter.read({"run_id": 1, "stage": "dreamt"})


def plans(store: Store, work: Callable[[], Any]) -> list[str]:
    """SQLite's plan of every statement that the work sends."""
    sent: list[tuple[str, Any]] = []

    def execute(_c: Any, _u: Any, statement: str, parameters: Any, *_: Any) -> None:
        sent.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", execute)
    try:
        work()
    finally:
        event.remove(Engine, "before_cursor_execute", execute)
    found = []
    with store.read() as session:
        raw = session.connection().connection
        for statement, parameters in sent:
            if statement.startswith("SELECT"):
                rows = raw.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)  # type: ignore[attr-defined]
                found += [str(row[3]) for row in rows]
    return found


def test_a_list_of_runs_without_a_kept_count_reads_their_own_groups(sqlite_store: Store) -> None:
    make_run(sqlite_store, kept=2, dropped=1, unwritten=0)
    make_run(sqlite_store, kept=4, dropped=0, unwritten=0, name="other")
    for name in (None, "other"):
        found = plans(sqlite_store, partial(runs.list_all, owner("ada"), name))
        assert any(each.startswith("SEARCH group ") for each in found)
        assert not any(each.startswith("SCAN group ") for each in found)
    (row,) = runs.list_all(owner("ada"), "other").data
    assert (row.pairs, row.kept, row.dropped) == (4, 4, 0)


def test_a_dataset_is_shown_without_counting_groups_or_other_datasets(
    sqlite_store: Store,
) -> None:
    make_run(sqlite_store, kept=2, dropped=1, unwritten=0)
    make_run(sqlite_store, kept=4, dropped=0, unwritten=0, name="other")
    asked = plans(sqlite_store, lambda: datasets.show(owner("ada"), "other"))
    scanned = [each for each in asked if each.startswith(("SCAN group ", "SCAN pair "))]
    assert scanned == [] and not any(each.startswith("SCAN passage ") for each in asked)
    shown = datasets.show(owner("ada"), "other")
    assert (shown.runs, shown.pairs) == ((2,), 4)
    (row,) = [each for each in datasets.list_all(owner("ada")).data if each.name == "other"]
    assert shown.model_dump(include=set(row.model_dump())) == row.model_dump()


def test_a_run_reads_its_recipe_once(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(sqlite_store, name="small")
    read: list[str] = []
    load = recipes.load_recipe

    def loaded(name: str, *more: Any) -> Any:
        read.append(name)
        return load(name, *more)

    monkeypatch.setattr("curation.run.recipes.load_recipe", loaded)
    monkeypatch.setattr("app.cli.kit.report.work", lambda *_, **__: {"job_id": 1})
    done = inf("runs", "create", "small", "--provider", "offline", "--json")
    assert done.code == 0 and read == ["offline"]
