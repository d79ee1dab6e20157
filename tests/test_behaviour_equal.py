"""What `bench/behaviour_equal.py` reports between two commits, and what it lets pass."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "bench" / "behaviour_equal.py"
# by its path: with bench/ on the path its analysis.py would replace the package
_spec = importlib.util.spec_from_file_location("behaviour_equal", SCRIPT)
assert _spec is not None and _spec.loader is not None
bench = sys.modules["behaviour_equal"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(bench)


@pytest.mark.parametrize(
    ("part", "before", "after", "said"),
    [
        ("verdicts", {"q1": ["kept", None]}, {"q1": ["dropped", "empty"]}, "q1: ['kept', None]"),
        ("verdicts", {"q1": ["kept", None]}, {}, "q1: ['kept', None] before, None after"),
        ("data files", {"csv": {"a.csv": "1"}}, {"csv": {"a.csv": "2"}}, "csv › a.csv: 1 before"),
        ("data files", {"csv": {}}, {"csv": {"b.csv": "2"}}, "csv › b.csv: None before, 2 after"),
        ("checkpoint", {"model.safetensors": "1"}, {"model.safetensors": "2"}, "model.safetensors"),
        ("pages", {"home": ["metric Groups: 4"]}, {"home": ["metric Groups: 5"]}, "Groups: 4"),
        ("pages", {"home": ["button 'Go'"]}, {"home": []}, "only before: button 'Go'"),
        ("pages", {"home": ["toggle", "toggle"]}, {"home": ["toggle"]}, "another order or number"),
        ("cards", {"csv": ["licence: cc0"]}, {"csv": ["licence: mit"]}, "only after: licence: mit"),
    ],
)
def test_what_differs_is_a_line_that_names_its_place(
    part: str, before: Any, after: Any, said: str
) -> None:
    assert list(bench.differences(before, before, f" › {part}")) == []
    found = list(bench.differences(before, after, f" › {part}"))
    assert found and any(said in row for row in found)
    assert all(row.startswith(f" › {part}") for row in found)


def test_times_dates_and_paths_are_masked_and_figures_are_not(tmp_path: Path) -> None:
    (tmp_path / "card.md").write_text(
        f"Made 2026-11-23T06:37:47 in 14.2 s at {tmp_path}/out from 0123abcd0123abcd: 62 groups\n"
    )
    assert bench.card(tmp_path / "card.md", tmp_path) == [
        "Made DATE in TIME at HOME/out from HASH: 62 groups"
    ]
    assert bench.masked("done 3 minutes ago, 2.1 MB") == "done TIME, SIZE"
    assert bench.masked("precision 0.93, 1,204 rows") == "precision 0.93, 1,204 rows"


def test_what_names_the_time_of_a_release_is_no_data_file(tmp_path: Path) -> None:
    of_the_time = ("README.md", "release.json", "croissant.json", "judgments/train.jsonl")
    for name in ("data/train.jsonl", "provenance/calls.jsonl", *of_the_time):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert list(bench.data_files(tmp_path)) == ["data/train.jsonl", "provenance/calls.jsonl"]
