"""Notebooks beyond rows: functions as judges, agreement as a figure, releases as datasets."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from api_world import ApiWorld, make_api_world
from curation_runs import pairs_file
from exporting import export
from judged_study import judged
from sqlalchemy import select

import inf_studio as inf
from curation.judges.function import FunctionJudge
from db.errors import BadInput, InfError, Refused
from db.store.scope import unscoped
from db.store.settings import owners_process
from db.store.store import Store
from db.tables import Item, Job, Judge, Judgment, Passage, ProgramLease
from inf_studio import client
from inf_studio.client import Agreement, Judged, Studio
from inf_studio.transport import InProcess, OverHttp

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def world(sqlite_store: Store) -> Iterator[ApiWorld]:
    yield make_api_world(sqlite_store)
    owners_process(True)


@inf.judge("length")
def shortest(view: inf.ItemView) -> int:
    """The shortest passage."""
    return min(range(len(view.candidates)), key=lambda place: len(view.candidates[place]))


@pytest.fixture(params=["open", "connect"])
def studio(world: ApiWorld, request: pytest.FixtureRequest) -> Iterator[Studio]:
    """A studio of each door; on the server, of a curator."""
    if request.param == "open":
        yield Studio(InProcess())
    else:
        owners_process(False)
        yield Studio(OverHttp("http://localhost", world.tokens["cora"], world.client))
        owners_process(True)


def own(world: ApiWorld, judge: str) -> dict[int, tuple[str, str | None]]:
    """By item: what a judge chose, and the text of that."""
    with unscoped(), world.store.read() as session:
        of_judge = select(Judgment).join(Judge, Judge.id == Judgment.judge_id)
        found = {}
        for one in session.scalars(of_judge.where(Judge.name == judge)):
            item = session.get_one(Item, one.item_id)
            ids = {entry["label"]: entry["passage_id"] for entry in item.candidates}
            passage = session.get(Passage, ids.get(one.choice, 0))
            found[one.item_id] = one.choice, passage and passage.text
        return found


def test_a_function_judges_as_a_model_named_by_the_hash_of_its_source(
    world: ApiWorld, studio: Studio
) -> None:
    study = studio.studies.get(world.mine.study)
    judged = study.judge(shortest)
    assert isinstance(judged, Judged) and judged.wait() is judged
    assert judged.row == {"study_id": study.id, "judge": shortest.name, "answers": study.items}
    assert shortest.name == f"python:length@{shortest.model[:12]}" and study.items == 3
    with unscoped(), world.store.read() as session:
        row = session.scalars(select(Judge).where(Judge.name == shortest.name)).one()
        assert (row.kind, row.provider, row.model) == ("model", "python", shortest.model)
        jobs = session.scalars(select(Job).where(Job.kind == "judge")).all()
        assert jobs == [] and session.scalars(select(ProgramLease)).all() == []
    given = own(world, shortest.name)
    assert len(given) == 3
    for item_id, (_, text) in given.items():  # the same at both doors: the shortest there is
        with unscoped(), world.store.read() as session:
            candidates = session.get_one(Item, item_id).candidates
            texts = [session.get_one(Passage, one["passage_id"]).text for one in candidates]
        assert text is not None and len(text) == min(map(len, texts))
    assert study.judge(shortest).answers == 0  # what it answered stands
    assert own(world, shortest.name) == given
    shown = study.refresh()
    (own_row,) = (one for one in shown.row["judges"] if one["judge"] == shortest.name)
    assert own_row["kind"] == "model"


def test_what_a_function_answered_before_it_failed_is_stored_and_the_rest_is_free_at_once(
    world: ApiWorld, studio: Studio
) -> None:
    study = studio.studies.get(world.mine.study)
    seen: list[inf.ItemView] = []

    @inf.judge("fails")
    def fails(view: inf.ItemView) -> int | None:
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(view)
        return None

    with pytest.raises(KeyboardInterrupt):
        study.judge(fails)
    assert len(own(world, fails.name)) == 2
    seen.clear()
    assert study.judge(fails).answers == 1 and len(own(world, fails.name)) == 3


def test_programs_of_one_judge_share_a_study_and_each_waits_for_the_last_answer(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LEASE_EVERY_SECONDS", 0.05)
    monkeypatch.setattr(client, "ANSWERS_EVERY_SECONDS", 0.0001)  # each answer on its own
    calls: list[str] = []

    @inf.judge("slow")
    def slow(view: inf.ItemView) -> int | None:
        calls.append(view.query)
        time.sleep(0.2)
        return 0

    study = Studio(InProcess()).studies.get(world.mine.study)
    with ThreadPoolExecutor(3) as pool:
        judged = [found.answers for found in pool.map(lambda _: study.judge(slow), range(3))]
    assert sum(judged) == 3 and len(own(world, slow.name)) == len(calls) == 3


def test_another_source_is_another_judge_and_its_decorators_are_not_in_it() -> None:
    def first(view: inf.ItemView) -> int | None:
        return 0

    one = inf.judge("first")(first)

    def first(view: inf.ItemView) -> int | None:  # type: ignore[no-redef]
        return None

    other = inf.judge("first")(first)
    assert one.name != other.name and one.model != other.model
    assert inf.judge("x")(shortest.function).model == shortest.model
    with pytest.raises(BadInput) as caught:
        inf.judge("made")(min)  # of C
    assert caught.value.code == "judge_without_source"
    with pytest.raises(BadInput):
        inf.judge("")


@pytest.mark.parametrize("answer", [-1, 99, True, "0", 0.0, "positive"])
def test_what_is_no_position_is_refused_and_not_stored(
    world: ApiWorld, studio: Studio, answer: Any
) -> None:
    def wrong(view: inf.ItemView) -> Any:
        return answer

    with pytest.raises(BadInput):
        studio.studies.get(world.mine.study).judge(FunctionJudge("wrong", wrong))
    with unscoped(), world.store.read() as session:
        of_study = select(Judgment).where(Judgment.study_id == world.mine.study)
        assert not session.scalars(of_study).all()


def test_a_release_is_the_same_files_and_rows_here_and_from_a_server(
    world: ApiWorld, tmp_path: Path
) -> None:
    exported = export(world.store, tmp_path / "out", dataset="mine", runs=[world.mine.run])
    here = Studio(InProcess()).releases.get(exported["release_id"])
    local = here.to_datasets()
    copied = here.download(tmp_path / "here")
    owners_process(False)
    studio = Studio(OverHttp("http://localhost", world.tokens["mina"], world.client))
    there = studio.releases.get(exported["release_id"])
    assert {split: rows.to_list() for split, rows in there.to_datasets().items()} == {
        split: rows.to_list() for split, rows in local.items()
    }
    assert sum(map(len, local.values())) > 0
    files = {path.relative_to(copied): path.read_bytes() for path in copied.rglob("*.*")}
    downloaded = there.download(tmp_path / "there")
    assert {path: (downloaded / path).read_bytes() for path in files} == files and files
    with pytest.raises(Refused, match="already exists"):
        there.download(tmp_path / "there")
    with pytest.raises(InfError) as caught:  # its folder is not there
        studio.releases.get(world.mine.release).to_datasets()
    assert caught.value.code


def test_agreement_is_a_figure_with_its_interval(sqlite_store: Store) -> None:
    judged(sqlite_store, {"ann": "ppppppnnnnnn", "bob": "pppppnnnnnnn", "MODEL": "pppppppppppp"})
    agreement = Studio(InProcess()).studies.get(1).agreement()
    assert isinstance(agreement, Agreement) and agreement.coefficient == "cohen_kappa"
    # 11 of 12 alike; by chance 6/12 * 5/12 + 6/12 * 7/12 = 1/2; (11/12 - 1/2) / (1/2) = 5/6
    assert agreement.kappa == pytest.approx(5 / 6)
    assert agreement.interval is not None and agreement.reason == ""
    low, high = agreement.interval
    assert 0 < low < 5 / 6 < high <= 1
    assert f"cohen_kappa 0.833 [{low:.3f}, {high:.3f}]" in agreement._repr_html_()
    assert {row["judge"] for row in agreement.judges()} == {"ann", "bob", "MODEL"}
    axes = agreement.plot()
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert "MODEL" in names and len(axes.lines) == 2 * len(names)


def test_agreement_without_people_is_undefined_and_says_why(sqlite_store: Store) -> None:
    judged(sqlite_store, {"MODEL": "pppppppp"})
    agreement = Studio(InProcess()).studies.get(1).agreement()
    assert (agreement.kappa, agreement.interval) == (None, None)
    assert agreement.reason and agreement.reason in repr(agreement)
    assert agreement.plot().lines[:] == []


SCRIPT = """
import json, os
import inf_studio as inf
import pandas as pd

studio = inf.open()
rows = [json.loads(line) for line in open(os.environ["PAIRS"], encoding="utf-8")]
df = pd.DataFrame(rows)
data = studio.datasets.create("mine", pairs=df, source="our logs", licence="cc-by-4.0")
recipe = inf.Recipe.builtin("offline")
print(data.estimate(recipe, limit=30))
run = data.curate(recipe, provider="offline", limit=30, budget_usd=2)
states = [(event.done, event.message) for event in run.events()]
assert states
run.wait()
assert len(run.groups()) == 30, run.groups()
run.groups(verdict="dropped").to_pandas()

@inf.judge("length")
def shorter(view: inf.ItemView) -> int:
    return min(range(len(view.candidates)), key=lambda place: len(view.candidates[place]))

study = run.studies.create(items=10, overlap=3, judges=[shorter])
agreement = study.agreement()
agreement._repr_html_(), agreement.kappa, agreement.interval, agreement.plot()
own = [row for row in study.judgments() if row["judge"] == shorter.name]
assert len(own) == study.items == 10 and {row["kind"] for row in own} == {"model"}
release = run.release()
found = release.to_datasets()
print("ROWS", sum(len(part) for part in found.values()), release.groups)
"""


@pytest.mark.long
def test_the_lines_of_a_notebook_run_as_one_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    path = pairs_file(tmp_path, 40)
    environment = os.environ | {"PAIRS": str(path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows, groups = done.stdout.split("ROWS ")[1].split()
    assert int(rows) == int(groups) > 0
