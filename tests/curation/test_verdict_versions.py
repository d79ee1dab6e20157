"""Verdict versions: a run decided again by other rules over stored answers, never asking."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from checked_recipe import CHECKS, write_recipe
from curation_runs import add_dataset, run_curation
from decided_runs import FAULTS, ME, PAIRS, VOTES, decide, require_whole, voted
from openai_server import Server
from records_world import list_groups
from sqlalchemy import event, func, select

from app.access.identity import Actor
from app.operations import runs
from curation.recipe.recipe import load_recipe, with_rules
from curation.rules.deciding import RunDecide
from db.errors import BadInput, NotFound, Refused
from db.people.rights import Rights
from db.review.reviews import edit_group, reject_group
from db.run.versions import VersionChoice, VersionComparison
from db.shape import INF_IR
from db.store.settings import owners_process
from db.store.store import Store, open_store
from db.tables import Call, Event, Group, GroupVerdict, Pair, Run, VerdictVersion


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    running: list[Server] = []

    def start(**wanted: Any) -> Server:
        one = Server(**wanted).__enter__()
        running.append(one)
        monkeypatch.setenv("OPENAI_BASE_URL", one.url)
        return one

    yield start
    for one in running:
        one.__exit__()


def verdicts(store: Store, run_id: int) -> dict[str, tuple[str | None, str | None, str | None]]:
    with store.read() as session:
        rows = session.execute(
            select(Pair.external_id, Group.verdict, Group.drop_reason, Group.drop_detail)
            .join(Pair, Pair.id == Group.pair_id)
            .where(Group.run_id == run_id)
        )
        return {name: tuple(found) for name, *found in rows}


# ---- the same verdicts as a run


RULES = (
    ("validation.agree=3",),
    ("validation.votes=1",),
    ("validation.votes=2", "validation.agree=2"),
    ("filters.max_passage_words=20",),
    ("filters.max_instruction_words=6", "validation.agree=3"),
    ("checks.fits.expected.P1-=any",),
    ("checks.fits.expected.P+=no",),
    ("checks.relevance.expected.P2-=< 2", "checks.relevance.votes=1"),
    ("checks.answers.expected.P+=> 0.95",),
    ("checks.answers.votes=1", "checks.relevance.expected.P+=>= 1"),
)


@pytest.mark.long
def test_a_run_decided_again_has_the_verdicts_of_a_new_run_by_these_rules(
    sqlite_store: Store, tmp_path: Path, server: Callable[..., Server]
) -> None:
    """One after the other on one run: what a version was decided from is not the one before."""
    one = server(faults=FAULTS, seed=7)
    add_dataset(sqlite_store, pairs=PAIRS)
    asked = {"dataset": "small", "provider": "openai", "recipe": write_recipe(tmp_path)}
    first = run_curation(sqlite_store, **asked, settings=VOTES)
    run_id = first["run_id"]
    of_run, answered = verdicts(sqlite_store, run_id), one.answered.total()
    assert first["kept"] and first["dropped"]
    judged = {name for name, (_, why, _) in of_run.items() if not is_early(why)}
    assert 4 < len(judged) < PAIRS
    for number, rules in enumerate(RULES, 2):
        before = verdicts(sqlite_store, run_id)
        found = decide(run_id, *rules)
        again = verdicts(sqlite_store, run_id)
        new = run_curation(sqlite_store, **asked, settings=[*VOTES, *rules])
        assert new["calls"]["made"] == 0 and one.answered.total() == answered
        expected = verdicts(sqlite_store, new["run_id"])
        assert {name: again[name] for name in judged} == {
            name: expected[name] for name in judged
        }, rules
        assert {name: each[0] for name, each in again.items()} == {
            name: each[0] for name, each in expected.items()
        }, rules
        assert found.version == require_whole(sqlite_store, run_id) == number
        assert sorted(found.settings) == sorted(rules)
        kept = [{n for n, each in of.items() if each[0] == "kept"} for of in (before, again)]
        assert found.kept_in_both == len(kept[0] & kept[1])
        assert found.only_in_first == len(kept[0] - kept[1])
        assert found.only_in_second == len(kept[1] - kept[0])
        assert sum(each.groups for each in found.changes) == PAIRS
    endings = {row.number: (row.kept, row.dropped) for row in runs.list_versions(ME, run_id).data}
    assert len(endings) == len(RULES) + 1
    assert len({str(each) for each in endings.values()}) > 5, endings


def is_early(reason: str | None) -> bool:
    """Whether a group of these runs was dropped while its texts were written: of an unusable answer
    it is not known from the reason, so those do not count as judged either."""
    return reason in ("unparsable", "refused", "cut_off", "unchanged", "empty", "too_long")


@pytest.mark.long
def test_thresholds_of_real_scores_move_the_line_and_back(
    sqlite_store: Store, tmp_path: Path
) -> None:
    add_dataset(sqlite_store, pairs=PAIRS)
    recipe = write_recipe(tmp_path, CHECKS.replace("\nexpected", "\n# expected"), of="offline")
    run_id = run_curation(sqlite_store, dataset="small", provider="offline", recipe=recipe)[
        "run_id"
    ]
    first = verdicts(sqlite_store, run_id)
    kept = {0.0: sum(one[0] == "kept" for one in first.values())}
    for at in (0.3, 0.5, 0.7, 0.99):
        found = decide(run_id, f"checks.answers.expected.P+=>= {at}")
        kept[at] = found.kept_in_both + found.only_in_second
        require_whole(sqlite_store, run_id)
    assert list(kept.values()) == sorted(kept.values(), reverse=True)
    assert len(set(kept.values())) > 2, kept
    runs.use_version(ME, VersionChoice(run_id=run_id, number=1))
    assert verdicts(sqlite_store, run_id) == first and require_whole(sqlite_store, run_id) == 1


@pytest.mark.long
def test_rules_that_change_nothing_give_every_group_its_verdict_again(
    store: Store, server: Callable[..., Server]
) -> None:
    run = voted(store, server)
    before = verdicts(store, run["run_id"])
    found = decide(run["run_id"], "validation.agree=2")  # of three votes: more than half
    assert verdicts(store, run["run_id"]) == before
    assert found.only_in_first == found.only_in_second == 0
    assert all(each.first == each.second for each in found.changes)
    assert require_whole(store, run["run_id"]) == 2


@pytest.mark.long
def test_a_preview_counts_the_same_and_stores_nothing(
    store: Store, server: Callable[..., Server]
) -> None:
    run_id = voted(store, server)["run_id"]
    before = verdicts(store, run_id)
    preview = decide(run_id, "validation.agree=3", preview=True)
    assert preview.version is None and verdicts(store, run_id) == before
    assert [row.number for row in runs.list_versions(ME, run_id).data] == [1]
    with store.read() as session:
        assert session.scalar(select(func.count()).select_from(VerdictVersion)) == 0
    done = decide(run_id, "validation.agree=3")
    assert (done.changes, done.only_in_first) == (preview.changes, preview.only_in_first)


# ---- versions


@pytest.mark.long
def test_versions_say_who_when_and_which_rules_and_are_compared(
    store: Store, server: Callable[..., Server]
) -> None:
    run_id = voted(store, server)["run_id"]
    (first,) = runs.list_versions(ME, run_id).data
    assert (first.number, first.settings, first.current) == (1, (), True)
    bob = Actor("bob", rights=Rights(everywhere=frozenset({"curate"})), via="page")
    runs.decide(bob, RunDecide(run_id=run_id, settings=("validation.agree=3",)))
    decide(run_id, "validation.votes=1")
    one, two, three = runs.list_versions(ME, run_id).data
    assert (one.kept, one.dropped) == (first.kept, first.dropped)
    assert (two.created_by, two.settings, two.current) == ("bob", ("validation.agree=3",), False)
    assert three.current and three.settings == ("validation.votes=1",)
    compared = runs.compare_versions(ME, VersionComparison(run_id=run_id, second=2), limit=None)
    assert (compared.kept_in_both, compared.only_in_second) == (two.kept, 0)
    assert compared.only_in_first == one.kept - two.kept > 0
    lost = next(each for each in compared.changes if each.first == "kept" != each.second)
    listed = runs.compare_versions(
        ME, VersionComparison(run_id=run_id, second=2, was="kept", now=lost.second), limit=1
    ).groups
    assert listed.total == lost.groups and len(listed.data) == 1
    assert listed.data[0].second_detail and listed.data[0].first_detail is None
    assert compared.groups.total == sum(
        each.groups for each in compared.changes if each.first != each.second
    )
    with store.read() as session:
        stored = session.scalars(select(Event).where(Event.name == "run.decide")).all()
        assert [(each.actor, each.noun, each.data["version"]) for each in stored] == [
            ("bob", "run", 2),
            ("cli:me", "run", 3),
        ]
    with pytest.raises(NotFound, match="no verdict version 7: there are 1, 2, 3"):
        runs.compare_versions(ME, VersionComparison(run_id=run_id, second=7))


@pytest.mark.long
def test_the_same_rules_are_one_version(store: Store, server: Callable[..., Server]) -> None:
    run_id = voted(store, server)["run_id"]
    assert decide(run_id, "validation.agree=3").version == 2
    runs.use_version(ME, VersionChoice(run_id=run_id, number=1))
    assert decide(run_id, "validation.agree=3").version == 2
    assert require_whole(store, run_id) == 2
    with pytest.raises(BadInput, match="no rule differs"):
        decide(run_id, "validation.agree=0")


@pytest.mark.long
def test_a_version_goes_unless_something_is_of_it(
    store: Store, server: Callable[..., Server]
) -> None:
    run_id = voted(store, server)["run_id"]
    decide(run_id, "validation.agree=3")
    for number, why in ((1, "it stays"), (2, "uses its version 2")):
        with pytest.raises(Refused, match=why):
            runs.remove_version(ME, VersionChoice(run_id=run_id, number=number))
    runs.use_version(ME, VersionChoice(run_id=run_id, number=1))
    left = runs.remove_version(ME, VersionChoice(run_id=run_id, number=2))
    assert [row.number for row in left.data] == [1]
    with store.read() as session:
        for table in (VerdictVersion, GroupVerdict):
            assert session.scalar(select(func.count()).select_from(table)) == 0
    assert require_whole(store, run_id) == 1


@pytest.mark.long
def test_reviews_stay_with_the_group_and_edits_are_not_what_is_decided(
    store: Store, server: Callable[..., Server]
) -> None:
    run_id = voted(store, server)["run_id"]
    with store.write() as session:
        rows = list_groups(session, run_id, verdict="kept").rows
        reject_group(session, rows[0].id, reviewed_by="ann", reason="dull")
        # an edit gets items of its own; the run's judge answered about the texts before
        edited = {INF_IR.texts["P2-"].column: "long " * 200}
        edit_group(session, rows[1].id, edited, reviewed_by="ann")
        session.commit()
    before = verdicts(store, run_id)
    decide(run_id, "filters.max_passage_words=100")
    assert verdicts(store, run_id) == before, "what the run wrote is shorter"
    with store.read() as session:
        found = {row.id: row.review for row in list_groups(session, run_id, limit=100).rows}
    assert (found[rows[0].id], found[rows[1].id]) == ("reject", "edit")


# ---- what is refused


@pytest.mark.parametrize(
    ("rule", "error", "code"),
    [
        ("validation.model=other", Refused, "rules_need_answers"),
        ("temperature=0.5", Refused, "rules_need_answers"),
        ("validation.distractors=5", Refused, "rules_need_answers"),
        ("validation.votes=5", Refused, "rules_need_answers"),
        ("validation.votes=0", BadInput, "votes_invalid"),
        ("validation.agree=4", BadInput, "votes_invalid"),
        ("validation.agree=many", BadInput, "recipe_number_invalid"),
        ("validation.agrees=2", Refused, "rules_need_answers"),
        ("filters.max_words=3", BadInput, "recipe_key_unknown"),
        ("checks.fits.expected.P+=yes", BadInput, "setting_place_unknown"),
        ("validation.agree", BadInput, "setting_without_place"),
    ],
)
def test_rules_that_need_answers_or_are_none_are_refused(
    sqlite_store: Store,
    server: Callable[..., Server],
    rule: str,
    error: type[Exception],
    code: str,
) -> None:
    run_id = voted(sqlite_store, server, pairs=4)["run_id"]
    with pytest.raises(error) as refused:
        decide(run_id, rule)
    assert refused.value.code == code  # type: ignore[attr-defined]
    assert require_whole(sqlite_store, run_id) == 1


@pytest.mark.long
def test_a_looser_filter_is_refused_where_it_would_let_dropped_texts_through(
    sqlite_store: Store, server: Callable[..., Server]
) -> None:
    server(faults={"much": 0.1}, seed=3)
    add_dataset(sqlite_store, pairs=PAIRS)
    run_id = run_curation(
        sqlite_store, dataset="small", provider="openai", settings=["model=small"]
    )["run_id"]
    details = [each[2] or "" for each in verdicts(sqlite_store, run_id).values()]
    dropped = sum(each.startswith("instruction_") for each in details)
    assert dropped
    with pytest.raises(Refused, match=f"{dropped} groups were dropped") as refused:
        decide(run_id, "filters.max_instruction_words=500")
    assert "runs create" in str(refused.value.remedy)
    found = decide(run_id, "filters.quoted_words=20")  # nothing was dropped as a quotation
    assert found.only_in_first == found.only_in_second == 0


@pytest.mark.long
def test_only_a_finished_run_with_answers_is_decided_again(
    store: Store, server: Callable[..., Server]
) -> None:
    run_id = voted(store, server, pairs=4)["run_id"]
    for status in ("running", "paused", "failed", "cancelled", "created"):
        with store.write() as session:
            session.get_one(Run, run_id).status = status
            session.commit()
        with pytest.raises(Refused, match=f"run {run_id} is {status}"):
            decide(run_id, "validation.agree=3")
    with store.write() as session:
        session.get_one(Run, run_id).status = "done"
        session.commit()
    decide(run_id, "validation.agree=3")
    with pytest.raises(Refused, match="2 verdict versions"):
        run_curation(store, run_id, retry="judge_ambiguous")
    eve = Actor("eve", rights=Rights(everywhere=frozenset({"review"})))
    with pytest.raises(Refused, match="requires curate"):
        runs.decide(eve, RunDecide(run_id=run_id, settings=("validation.agree=2",)))


def test_settings_of_checks_are_the_same_words_in_a_run(tmp_path: Path) -> None:
    rules = ["checks.answers.expected.P+=> 0.95", "checks.relevance.votes=1"]
    path = write_recipe(tmp_path)
    assert load_recipe(path, rules).checks == with_rules(load_recipe(path), rules).checks
    with pytest.raises(BadInput, match="names no check"):
        load_recipe(path, ["checks.fit.votes=1"])
    with pytest.raises(BadInput, match="expected names 'P9', which over does not"):
        with_rules(load_recipe(path), ["checks.fits.expected.P9=any"])


# ---- attacks


def _decide_until(url: str, home: str, run_id: int, statement: int, rule: str) -> None:
    """Decide a run in a process that is gone before the given statement of its write."""
    os.environ.update(INF_DATABASE_URL=url, INF_HOME=home)
    owners_process(True)
    counted = iter(range(10**6))

    def count(connection: Any, *_: Any) -> None:
        verb = str(_[1]).split()[0]
        if verb in ("INSERT", "UPDATE", "DELETE") and next(counted) == statement:
            os._exit(9)

    event.listen(open_store(url).engine, "before_cursor_execute", count)
    decide(run_id, rule)


@pytest.mark.long
def test_killed_before_any_statement_the_version_before_is_whole(
    store: Store, server: Callable[..., Server], own_home: Path
) -> None:
    run_id = voted(store, server, pairs=8)["run_id"]
    before = verdicts(store, run_id)
    url = os.environ["INF_DATABASE_URL"]
    ends = []
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["app.operations.runs"])
    for statement in range(20):
        child = context.Process(
            target=_decide_until,
            args=(url, str(own_home), run_id, statement, "validation.agree=3"),
        )
        child.start()
        child.join()
        ends.append(child.exitcode)
        if child.exitcode == 0:
            break
        assert require_whole(store, run_id) == 1 and verdicts(store, run_id) == before
    assert ends[-1] == 0 and ends[:-1] == [9] * (len(ends) - 1) and len(ends) > 4
    assert require_whole(store, run_id) == 2 and verdicts(store, run_id) != before


@pytest.mark.long
def test_two_who_decide_at_once_get_a_version_each(
    store: Store, server: Callable[..., Server]
) -> None:
    run_id = voted(store, server)["run_id"]
    rules = ["validation.agree=3", "validation.votes=1", "filters.max_passage_words=30"]
    found: dict[str, Any] = {}
    start = threading.Barrier(len(rules) * 2)

    def go(rule: str, number: int) -> None:
        start.wait()
        try:
            found[f"{rule} {number}"] = decide(run_id, rule).version
        except Exception as error:
            found[f"{rule} {number}"] = error

    threads = [threading.Thread(target=go, args=(rule, n)) for rule in rules for n in (1, 2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted({*found.values()}) == [2, 3, 4], found
    for rule in rules:
        assert found[f"{rule} 1"] == found[f"{rule} 2"]
    require_whole(store, run_id)


@pytest.mark.long
def test_a_run_that_worked_on_meanwhile_is_not_decided_by_what_was_read(
    store: Store, server: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = voted(store, server)["run_id"]
    whole = runs.versions.add_version
    before = verdicts(store, run_id)
    reason = next(one[1] for one in before.values() if one[1] and one[1].startswith("judge"))

    def late(*given: Any, **more: Any) -> Any:
        return whole(*given, **more)

    def read_then_work(*given: Any, **more: Any) -> Any:
        found = runs_changes(*given, **more)
        run_curation(store, run_id, retry=reason)
        return found

    runs_changes = runs.versions.changes_by
    monkeypatch.setattr(runs.versions, "add_version", late)
    monkeypatch.setattr(runs.versions, "changes_by", read_then_work)
    with pytest.raises(Refused, match="worked on while it was decided"):
        decide(run_id, "validation.agree=3")
    assert require_whole(store, run_id) == 1


@pytest.mark.long
def test_nothing_is_asked_or_billed(store: Store, server: Callable[..., Server]) -> None:
    one = server(faults=FAULTS, seed=11)
    add_dataset(store, pairs=4)
    run_id = run_curation(store, dataset="small", provider="openai", settings=VOTES)["run_id"]
    before = one.answered.total()
    with store.read() as session:
        calls = session.scalar(select(func.count()).select_from(Call))
        spent = session.get_one(Run, run_id).spent_usd
    decide(run_id, "validation.agree=3")
    with store.read() as session:
        assert session.scalar(select(func.count()).select_from(Call)) == calls
        assert session.get_one(Run, run_id).spent_usd == spent
    assert one.answered.total() == before
