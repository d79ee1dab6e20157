"""The natural probe: read line by line, scored by hand, part of every training."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainer_jobs import claim, config_for

import curation
from analysis.files.rows import read_rows
from analysis.text.near_duplicates import near_duplicate_keys
from curation.recorded.recording import WRITTEN
from db.errors import BadInput
from db.jobs import jobs
from db.store.store import Store
from trainer.launch.here import train
from trainer.probe import natural
from trainer.probe.natural import read_natural_probe, score_natural_probe
from trainer.settings.template import Template

ITEM = {
    "id": "n1",
    "query": "bridges of the town",
    "instruction_a": "I restore masonry.",
    "instruction_b": "Nothing built of stone, please.",
    "passage_a": "The old bridge stands on four arches of granite.",
    "passage_b": "The footbridge hangs from two steel cables.",
    "distractor_1": "The town hall was painted in spring.",
    "distractor_2": "A ferry crosses the lake on Sundays.",
    "style": "persona",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    items = [ITEM, ITEM | {"id": "n2", "style": "exclusion"}]
    path = tmp_path / "natural.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


class Answers:
    """Vectors by hand: texts that hold a word of the table have its vector."""

    def __init__(self, table: dict[str, tuple[float, ...]]) -> None:
        self.table = table

    def encode_query(self, texts: list[str], **_: Any) -> np.ndarray:
        return np.array(
            [next(v for word, v in self.table.items() if word in text) for text in texts],
            dtype=np.float32,
        )

    encode_document = encode_query


PASSAGES = {"granite": (1, 0, 0), "steel": (0, 1, 0), "painted": (0, 0, 1), "ferry": (0, 0, 1)}


@pytest.mark.parametrize(
    ("masonry", "stone", "flip", "first"),
    [
        ((3, 1, 0), (1, 3, 0), 1.0, 1.0),
        ((3, 1, 0), (3, 1, 0), 0.0, 0.0),  # the instruction is ignored
        ((3, 1, 9), (1, 3, 0), 1.0, 0.0),  # a distractor is in front
        ((1, 1, 0), (1, 3, 0), 0.0, 0.0),  # equal scores count against the model
    ],
)
def test_both_measures_by_hand(
    file: Path, masonry: Any, stone: Any, flip: float, first: float
) -> None:
    model: Any = Answers({"masonry": masonry, "of stone": stone, **PASSAGES})
    found = score_natural_probe(model, Template(), read_natural_probe(file))
    own = {name: value for name, value in found.metrics.items() if ":" not in name}
    assert own == {"natural-flip": flip, "natural-first": first}
    assert found.items == 2 and found.flip_by_style == {"exclusion": flip, "persona": flip}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is not JSON"),
        (json.dumps({**ITEM, "id": "n2", "passage_b": " "}), "line 2 has no `passage_b`"),
        ("[]", "line 2 has no `id`"),
        (json.dumps(ITEM), "'n1' is there twice"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "damaged.jsonl"
    path.write_text(json.dumps(ITEM) + "\n" + line + "\n")
    with pytest.raises(BadInput, match=message):
        read_natural_probe(path)


def test_every_training_scores_the_probe_before_and_after(
    sqlite_store: Store, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that holds out no groups."""
    monkeypatch.setattr(natural, "FILE", file)
    monkeypatch.setattr(natural, "read_natural_probe", lambda: read_natural_probe(file))
    config = config_for(tmp_path, max_steps="1", held_out="0")
    del config["settings"]["natural_probe"]
    handle = claim(sqlite_store, config)
    result = train(handle)
    probe = result["natural_probe"]
    assert probe["items"] == 2 and set(probe["bm25"]) == set(probe["after"])
    own = {"natural-flip", "natural-first"}
    assert set(probe["after"]) == own | {f"instruction-alone:{name}" for name in own}
    assert set(probe["after_by_style"]) == {"exclusion", "persona"}
    gain = probe["after"]["natural-flip"] - probe["before"]["natural-flip"]
    told = probe["gain"]["natural-flip"]
    assert (told["value"], told["low"], told["high"]) == (gain, None, None)  # two items
    assert told["gained"] - told["lost"] == gain * 2
    with sqlite_store.read() as session:
        series = jobs.metric_series(session, [handle.id])[handle.id]
    assert [step for step, _ in series["natural-flip"]] == [0, 1]
    assert "natural-flip" in (Path(result["path"]) / "README.md").read_text()


def test_the_items_that_ship_are_enough_and_each_its_own() -> None:
    items = read_natural_probe()
    assert len(items) >= 240 and len({item.query for item in items}) > 200
    assert all(len(set(item.passages)) == 4 for item in items)
    assert all(item.instruction_a != item.instruction_b for item in items)


def test_the_shipped_items_are_in_no_training_or_demo_set() -> None:
    """No near-duplicate of a text of the demo set or its recording, by the contamination check."""
    demo = Path(curation.__file__).parent / "demo"
    columns = {
        "pairs.jsonl": ["query"],
        "passages.jsonl": ["text"],
        "recording/groups.jsonl": list(WRITTEN),
    }
    known = [
        row.values[name]
        for file, names in columns.items()
        for row in read_rows(demo / file)
        for name in names
    ]
    assert len(known) > 602 * (1 + len(WRITTEN))
    ours = [
        text
        for item in read_natural_probe()
        for text in (item.query, item.instruction_a, item.instruction_b, *item.passages)
    ]
    keys = near_duplicate_keys([*known, *ours])
    assert not set(keys[: len(known)]) & set(keys[len(known) :])
    assert near_duplicate_keys([known[0], f"  {known[0].upper()}"]) == [0, 0]


def test_every_blind_judgment_of_the_shipped_items_is_recorded() -> None:
    """Both questions of every item were answered; the share of intended choices is the README's."""
    folder = natural.FILE.parent
    shown = {row.values["token"]: row.values for row in read_rows(folder / "judging/shown.jsonl")}
    answers = [row.values for row in read_rows(folder / "judging/answers_A.jsonl")]
    assert {(each["id"], each["instruction"]) for each in shown.values()} == {
        (item.id, which) for item in read_natural_probe() for which in "ab"
    }
    assert {answer["token"] for answer in answers} == shown.keys()
    right = sum(
        shown[answer["token"]]["order"][answer["choice"] - 1]
        == f"passage_{shown[answer['token']]['instruction']}"
        for answer in answers
        if answer["choice"]
    )
    assert f"{right} of\n{len(shown)} choices" in (folder / "README.md").read_text()
