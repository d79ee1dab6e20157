"""A run that is done carries its leakage check to the run page and the card of its releases."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from app_pages import open_page, words
from curation_runs import add_dataset, run_curation
from exporting import export
from sqlalchemy import select

from analysis.found.runs import LeakageReport
from analysis.text.leakage import VERSION
from curation.release.preview import preview_release
from curation.release.request import ReleasePlan
from curation.run.leakage import (
    auc_text,
    check_leakage,
    leaking_sentence,
    stored_leakage,
    why_outdated,
)
from db.review.reviews import reject_group
from db.store.store import Store
from db.tables import Group, Job, Review, SlotText


@pytest.mark.long
@pytest.mark.slow
def test_the_check_is_stored_with_the_run_and_shown_on_page_and_card(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the check as a run has it, a process of its own (elsewhere see tests/paid_once.py)
    monkeypatch.setattr("curation.run.engine.check_leakage", check_leakage)
    add_dataset(sqlite_store, pairs=60, pool=20)
    done = run_curation(sqlite_store, dataset="small", provider="offline")
    report = done["leakage"]
    assert done["kept"] >= 20 and list(report["comparisons"]) == ["I- / I+", "P1- / P+", "P2- / P+"]
    for found in report["comparisons"].values():
        low, high = found["interval"]
        assert low <= found["auc"] <= high and found["pairs"] == done["kept"]
    again = run_curation_again(sqlite_store, done["run_id"], report)
    assert again == report
    page = open_page("curate")
    assert "folds split by pair" in words(page)
    warned = [str(each.value) for each in page.warning]
    sentence = leaking_sentence(LeakageReport.model_validate(report))
    assert bool(sentence) == any("never sees query or instruction" in each for each in warned)
    export(sqlite_store, tmp_path / "out", dataset="small")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "Leakage: how well a classifier" in card and "| P1- / P+ |" in card
    assert "The words that separate most:" in card and "- P1- / P+: of negatives “" in card
    assert (sentence in card) if sentence else True


@pytest.mark.long
@pytest.mark.slow
def test_a_release_is_measured_over_its_own_groups_as_they_are_now(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=60, pool=20)
    done = run_curation(sqlite_store, dataset="small", provider="offline")
    run_curation_again(sqlite_store, done["run_id"], done["leakage"])

    def manifest(name: str, **config: Any) -> Any:
        export(sqlite_store, tmp_path / name, dataset="small", **config)
        return json.loads((tmp_path / name / "release.json").read_text())["leakage"]

    with monkeypatch.context() as patched:  # equal texts are not measured twice
        patched.setattr("analysis.text.leakage.leakage_report", lambda *_: pytest.fail("measured"))
        assert manifest("whole") == done["leakage"]
    run_curation_again(sqlite_store, done["run_id"], {**done["leakage"], "version": 1})
    assert manifest("outdated")["version"] == done["leakage"]["version"], "measured again"
    run_curation_again(sqlite_store, done["run_id"], done["leakage"])
    with sqlite_store.write() as session:
        for each in session.scalars(select(SlotText).where(SlotText.slot == "I-")):
            each.text = f"Whatever is asked, {each.text}"
        kept = session.scalars(select(Group.id).where(Group.verdict == "kept")).all()
        for group_id in kept[: len(kept) // 4]:
            reject_group(session, group_id, reason="unclear", reviewed_by="ada")
        session.commit()
    edited = manifest("edited")
    left = len(kept) - len(kept) // 4
    assert {found["pairs"] for found in edited["comparisons"].values()} == {left}
    assert "I- / I+" in edited["leaks"], "an opening that only negatives have"
    card = (tmp_path / "edited" / "README.md").read_text()
    assert f"| {left:,} |" in card and "groups of this release (AUC" in card
    assert leaking_sentence(LeakageReport.model_validate(edited)) in card
    own = LeakageReport.model_validate(done["leakage"])
    of_run = [auc_text(found) for found in own.comparisons.values()]
    assert "The run's own check" in card and all(text in card for text in of_run)
    assert "The run's own check" not in (tmp_path / "whole" / "README.md").read_text()
    with sqlite_store.read() as session:
        wanted = ReleasePlan(datasets=("small",), out=str(tmp_path / "next"))
        preview = preview_release(session, wanted)
    assert "Leakage: measured over these groups when the release is made." in preview.card


def run_curation_again(store: Store, run_id: int, report: object) -> object:
    """What the store has of the run, once the job's result is stored as the runner stores it."""
    with store.write() as session:
        job = session.scalars(select(Job).where(Job.kind == "curate")).one()
        job.result = {"run_id": run_id, "leakage": report}
        session.commit()
    with store.read() as session:
        assert stored_leakage(session, run_id + 1) is None
        found = stored_leakage(session, run_id)
        return found and found.as_json()


def test_an_earlier_run_is_checked_by_command_and_the_page_then_shows_it(
    sqlite_store: Store, inf: Callable[..., Any]
) -> None:
    add_dataset(sqlite_store, pairs=6)
    run_id = run_curation(sqlite_store, dataset="small", provider="offline")["run_id"]
    with sqlite_store.read() as session:
        assert stored_leakage(session, run_id) is None, "its job was made here and has no result"
    done = inf("analyze", "leakage", "--run", run_id, "--json")
    assert done.code == 0, done.err
    assert "at least 20 are needed" in done.json["leakage"]["comparisons"]["I- / I+"]["reason"]
    with sqlite_store.read() as session:
        found = stored_leakage(session, run_id)
        assert found is not None and found.as_json() == done.json["leakage"]
    assert inf("analyze", "leakage", "--run", run_id + 1).code == 1


def test_a_check_of_other_groups_texts_or_rules_is_outdated_and_says_why(store: Store) -> None:
    add_dataset(store, pairs=6)
    run_id = run_curation(store, dataset="small", provider="offline")["run_id"]
    report = {"version": VERSION, "leaks": [], "warn_above": 0.8, "comparisons": {}}
    again = f"; measure it again: `analyses leakage run={run_id}`"

    def why(stored: dict[str, Any], finished_at: datetime) -> str:
        with store.write() as session:
            job = session.scalars(select(Job).where(Job.kind == "curate")).one()
            job.result, job.finished_at = {"run_id": run_id, "leakage": stored}, finished_at
            session.commit()
            return why_outdated(session, run_id)

    with store.read() as session:
        assert why_outdated(session, run_id) == "", "no check, so none that is outdated"
        kept = select(Group).where(Group.run_id == run_id, Group.verdict == "kept")
        groups = session.scalars(kept.order_by(Group.finished_at)).all()
        first, last = groups[0].finished_at, groups[-1].finished_at
        edited = groups[0].id
    assert first is not None and last is not None and len(groups) > 1
    assert why(report, last) == ""
    old = why(report | {"version": VERSION - 1}, last)
    assert old == f"measured by an earlier version, whose intervals were others{again}"
    assert why(report, first - timedelta(seconds=1)) == (
        f"measured before {len(groups)} groups were kept or edited{again}"
    )
    with store.write() as session:
        session.add(Review(group_id=edited, action="edit", reviewed_by="ann"))
        session.commit()
    assert why(report, last) == f"measured before 1 group was kept or edited{again}"


def test_a_small_run_says_how_many_pairs_are_needed(sqlite_store: Store) -> None:
    add_dataset(sqlite_store, pairs=6)
    report = run_curation(sqlite_store, dataset="small", provider="offline")["leakage"]
    assert report["leaks"] == []
    assert "at least 20 are needed" in report["comparisons"]["I- / I+"]["reason"]


@pytest.mark.parametrize(("auc", "warns"), [(0.8, False), (0.81, True)])
def test_only_what_is_above_the_limit_is_called_a_leak(auc: float, warns: bool) -> None:
    report = {
        "leaks": ["P1- / P+"] if auc > 0.8 else [],
        "comparisons": {"P1- / P+": {"auc": auc}},
    }
    assert (
        "P1- from P+ (AUC 0.81)" in leaking_sentence(LeakageReport.model_validate(report))
    ) is warns
