"""What a language model wrote and judged for the demo set is replayed through the true pipeline."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from curation_runs import add_dataset, run_curation, texts_of
from records_world import list_groups
from sqlalchemy import select

from curation.judges.judge import ItemView
from curation.judges.registry import judge_named
from curation.recipe.tasks import tasks_of
from curation.recorded.recording import SHIPPED, WRITTEN, item_key, load_recording
from db.corpus.datasets import text_sha256
from db.errors import BadInput
from db.run.group_detail import get_group
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Pair, Passage

TASKS = tasks_of(INF_IR)

PAIRS = 6


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that `INF_RECORDING` names."""
    place = tmp_path / "recording"
    place.mkdir()
    monkeypatch.setenv("INF_RECORDING", str(place))
    return place


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def texts(number: int) -> dict[str, str]:
    """What was written for a pair: texts that no rule refuses, each with words of its own."""
    return {
        task: f"Number {number} wants something on {' '.join([task.replace('_', ' ')] * 3)} here."
        for task in WRITTEN
    }


def record_texts(store: Store, folder: Path, *, leave_out: int = 0) -> None:
    with store.read() as session:
        rows = session.execute(
            select(Pair.query, Passage.text).join(Passage, Passage.id == Pair.passage_id)
        ).all()
    recorded = [
        {"query": query, "document_sha256": text_sha256(text), **texts(number)}
        for number, (query, text) in enumerate(rows)
    ]
    write(folder / "groups.jsonl", recorded[leave_out:])
    write(folder / "judgments.jsonl", [])


def items_of(store: Store, run_id: int) -> list[tuple[str, str, dict[str, str], str]]:
    """(instruction, query, candidates by label, the label that is right) of a run's items."""
    with store.read() as session:
        groups = [
            get_group(session, row.id) for row in list_groups(session, run_id, limit=100).rows
        ]
    return [
        (one.instruction, one.query, one.candidates, one.scenario)
        for group in groups
        for one in group.judgments
    ]


def record_choices(
    folder: Path,
    items: list[tuple[str, str, dict[str, str], str]],
    choose: Callable[[int, str], str],
    judge: str = "A",
) -> None:
    rows = []
    for number, (instruction, query, candidates, right) in enumerate(items):
        label = choose(number, right)
        rows.append(
            {
                "judge": judge,
                "item": item_key(instruction, query, list(candidates.values())),
                "choice": text_sha256(candidates[label]) if label in candidates else label,
                "reason": f"because of {number}",
            }
        )
    write(folder / "judgments.jsonl", rows)


def judged_run(store: Store, folder: Path, choose: Callable[[int, str], str]) -> dict[str, Any]:
    """A first run whose judge is made to answer "none", its choices recorded, and a second run."""
    add_dataset(store, pairs=PAIRS)
    record_texts(store, folder)
    everything_none(folder)
    first = run_curation(store, dataset="small", provider="recorded")
    record_choices(folder, items_of(store, first["run_id"]), choose)
    load_recording.__globals__["_load"].cache_clear()
    return run_curation(store, dataset="small", provider="recorded")


def everything_none(folder: Path) -> None:
    """Record "none" for every set of candidates there may be: found by asking which are missing."""
    from curation.recorded import recording

    class Anything(dict[str, recording.Chosen]):
        def get(self, key: str, default: Any = None) -> Any:
            return recording.Chosen("none")

    loaded = recording.load_recording()
    loaded.choices["A"] = Anything()  # type: ignore[index]


def test_the_recorded_answers_go_through_parser_rules_journal_and_judge(
    sqlite_store: Store, folder: Path
) -> None:
    result = judged_run(sqlite_store, folder, lambda number, right: right)
    assert (result["status"], result["kept"], result["spent_usd"]) == ("done", PAIRS, 0.0)
    assert not result["offline"]
    for verdict, _, _, _, triplets, judged, calls in texts_of(
        sqlite_store, result["run_id"]
    ).values():
        assert verdict == "kept" and len(triplets) == 3 and len(judged) == 3
        assert {task for task, *_ in calls} == set(TASKS)
        for task, _, outcome, answer in calls:
            key = TASKS[task].gives.lower()
            assert outcome == "ok" and key in json.loads(answer)


def test_what_the_recorded_judge_does_not_confirm_is_dropped_with_its_reason(
    sqlite_store: Store, folder: Path
) -> None:
    def choose(number: int, right: str) -> str:
        if number == 0:
            return "none"
        return "distractor_1" if number == len(INF_IR.roles) else right

    result = judged_run(sqlite_store, folder, choose)
    assert result["kept"] == PAIRS - 2
    assert result["dropped"] == {"judge_none": 1, f"judge_missed_{INF_IR.roles[0]}": 1}


def test_a_pair_or_candidates_that_were_not_recorded_are_dropped_and_nothing_is_made_up(
    sqlite_store: Store, folder: Path
) -> None:
    add_dataset(sqlite_store, pairs=PAIRS)
    record_texts(sqlite_store, folder, leave_out=2)
    result = run_curation(sqlite_store, dataset="small", provider="recorded")
    assert (result["kept"], result["dropped"]) == (0, {"not_recorded": PAIRS})
    found = texts_of(sqlite_store, result["run_id"]).values()
    details = [detail for _, _, detail, *_ in found]
    assert sum("nothing was recorded for this pair" in one for one in details) == 2
    assert sum("did not see these candidates" in one for one in details) == PAIRS - 2


def test_a_recorded_judge_finds_its_choice_in_any_order_and_none_where_it_saw_nothing(
    sqlite_store: Store, folder: Path
) -> None:
    write(folder / "groups.jsonl", [])
    shown = ("one text", "another text", "a third")
    row = {"judge": "B", "item": item_key("I", "Q", shown), "choice": text_sha256("a third")}
    write(folder / "judgments.jsonl", [row])
    judge = judge_named("recorded:B", sqlite_store)
    views = [
        ItemView("I", "Q", shown),
        ItemView("I", "Q", shown[::-1]),
        ItemView("I", "Q", ("one text", "another text", "a fourth")),
        ItemView("I2", "Q", shown),
    ]
    choices = judge.choose(views)
    assert [choice.position for choice in choices] == [2, 0, None, None]
    assert [choice.unusable for choice in choices] == ["", "", "not_recorded", "not_recorded"]
    assert not judge.offline and not judge.simulated
    with pytest.raises(BadInput, match="use recorded:B"):
        judge_named("recorded:Z", sqlite_store)


@pytest.mark.parametrize(
    ("groups", "judgments", "message"),
    [
        ("no json", "", "groups.jsonl, line 1 is no JSON object"),
        ("[1]", "", "groups.jsonl, line 1 is no JSON object"),
        ('{"query": "q"}', "", "line 1: 'document_sha256' is missing or empty"),
        ("", '{"judge": "A", "item": "i"}', "judgments.jsonl, line 1: 'choice' is missing"),
        ("", '{"judge": "A", "item": "i", "choice": "none"}\n' * 2, "line 2: a second choice"),
    ],
)
def test_a_broken_recording_is_refused_with_the_place(
    folder: Path, groups: str, judgments: str, message: str
) -> None:
    (folder / "groups.jsonl").write_text(groups)
    (folder / "judgments.jsonl").write_text(judgments)
    with pytest.raises(BadInput, match=message.replace("(", r"\(")):
        load_recording()


def test_a_folder_without_a_recording_is_refused_with_the_remedy(folder: Path) -> None:
    with pytest.raises(BadInput, match="INF_RECORDING"):
        load_recording()


def test_every_recorded_text_of_the_demo_set_belongs_to_a_pair_of_it() -> None:
    demo = SHIPPED.parent
    rows = [json.loads(line) for line in (SHIPPED / "groups.jsonl").read_text().splitlines()]
    pairs = [json.loads(line) for line in (demo / "pairs.jsonl").read_text().splitlines()]
    passages = {
        each["passage_id"]: each["text"]
        for each in map(json.loads, (demo / "passages.jsonl").read_text().splitlines())
    }
    recording = load_recording()
    for pair in pairs:
        for task in WRITTEN:
            assert recording.text(task, pair["query"], passages[pair["passage_id"]])
    assert len(rows) == len(pairs) == len(recording.texts)
