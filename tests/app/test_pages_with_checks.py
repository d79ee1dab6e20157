"""Pages, reports, studies and releases of a store whose runs hold answers to other questions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from app_pages import open_page, page_names, words
from checked_recipe import CHECKS, write_recipe
from curation_runs import add_dataset, run_curation
from exporting import export
from made_study import make_study
from openai_server import Server
from records_world import list_groups
from sqlalchemy import select

from db.store.store import Store
from db.tables import Item, StudyItem
from trainer.data.release_files import read_release

PAIRS = 8


@pytest.fixture
def runs(sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A run with checks beside its picks, one that its checks drop, and one of checks alone."""
    add_dataset(sqlite_store, pairs=PAIRS)
    found = []
    with Server(schema="taken") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for number, (checks, picks) in enumerate(
            ((CHECKS, True), (CHECKS.replace(">= 0.5", "> 0.95"), True), (CHECKS, False))
        ):
            folder = tmp_path / str(number)
            folder.mkdir()
            recipe = write_recipe(folder, checks, picks=picks)
            asked: dict[str, Any] = {"dataset": "small", "provider": "openai", "recipe": recipe}
            result = run_curation(sqlite_store, **asked, settings=["model=small"])
            assert result["kept"] == (0 if number == 1 else PAIRS), result
            found.append(result["run_id"])
    return found


@pytest.mark.long
def test_every_page_draws_with_a_study_of_such_a_run(sqlite_store: Store, runs: list[int]) -> None:
    make_study(sqlite_store, dataset="small", run_id=runs[0], items=4, overlap=2)
    with sqlite_store.read() as session:
        asked = select(Item.question_id).join(StudyItem, StudyItem.item_id == Item.id)
        assert set(session.scalars(asked)) == {None}
    for name in page_names():
        assert not open_page(name).error, name
    for run_id in runs:
        for name in ("groups", "curate", "agreement", "validators"):
            assert not open_page(name, run=str(run_id)).error, (name, run_id)


def test_a_sample_is_offered_to_people_only_of_a_run_with_picks(
    sqlite_store: Store, runs: list[int]
) -> None:
    for run_id, is_offered in zip(runs, (True, False, False), strict=True):
        page = open_page("curate", run=str(run_id))
        labels = [getattr(each.proto, "label", "") for each in page.main]
        assert ("Let people judge a sample" in labels) == is_offered, run_id
        assert "written and judged by small" in words(page)


@pytest.mark.long
def test_the_page_of_such_a_group_draws(sqlite_store: Store, runs: list[int]) -> None:
    with sqlite_store.read() as session:
        dropped = list_groups(session, runs[1]).rows[0].id
        alone = list_groups(session, runs[2]).rows[0].id
    for group_id in (dropped, alone):
        assert not open_page("groups", group=str(group_id)).error


@pytest.mark.long
def test_every_report_is_made(
    sqlite_store: Store, runs: list[int], inf: Callable[..., Any]
) -> None:
    for number, run_id in enumerate(runs):
        with sqlite_store.read() as session:
            group = list_groups(session, run_id).rows[0].id
        shown = inf("groups", "show", group, "--json").json
        asked = {each["question"] for each in shown["judgments"]}
        assert asked == {"yes_no", "grade", "score"} | ({"pick"} if number < 2 else set())
        assert all(each["agrees"] is not False for each in shown["judgments"]) is (number != 1)
        assert "fits:P1-" in inf("groups", "show", group).out
        assert inf("runs", "show", run_id, "--json").json["run_id"] == run_id
        for command in (
            ["groups", "list", "--run", run_id],
            ["analyze", "leakage", "--run", run_id],
            ["analyze", "validators", "--dataset", "small", "--run", run_id],
        ):
            for form in ([], ["--json"]):
                found = inf(*command, *form)
                assert found.code == 0 or "validators" in command, (command, found.err)
                assert "Traceback" not in found.err
    first = inf("analyze", "validators", "--dataset", "small", "--run", runs[0], "--json")
    assert first.code == 0, first.err


def test_a_release_of_such_a_run_is_written_and_read(
    sqlite_store: Store, runs: list[int], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    export(sqlite_store, out, dataset="small", runs=[runs[0]], format="jsonl")
    lines = [
        json.loads(line)
        for path in sorted((out / "judgments").rglob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    assert len(lines) == PAIRS * 3
    assert {line["scenario"] for line in lines} == {line["choice"] for line in lines}
    release = read_release(out)
    assert len(release.groups) == PAIRS
