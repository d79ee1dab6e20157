"""The figure of gain against loss: every stored point, by its set, and none invented."""

import json
from pathlib import Path
from typing import Any

import pytest
from app_pages import open_drawers, open_page, words
from full_store import fill

from analysis.figures.printed import printed
from app.training.frontier import FILE, LOSSES, frontier_figure, frontier_rows
from db.store.store import Store


def point(name: str, side: str, flips: list[float], losses: list[float]) -> dict[str, object]:
    gains = {"instruction-flip": flips, "query-flip": losses, "guard-ndcg@10": losses}
    seeds = list(range(1, 1 + len(flips)))
    return {
        "point": name,
        "side": side,
        "seeds": seeds,
        "gains": gains,
        "seconds": [9] * len(flips),
    }


def test_a_point_is_the_mean_of_its_seeds_with_their_range() -> None:
    points = [
        point("query", "query", [0.1, 0.2, 0.3], [0.0, 0.0, 0.0]),
        point("both", "both", [0.4], [-0.1]),
    ]
    figure = frontier_figure(points, "query-flip")
    whole, single = figure.data
    assert (list(whole.x), [round(y, 9) for y in whole.y]) == ([0.0], [0.2])
    assert [round(whole.error_y.array[0], 9), round(whole.error_y.arrayminus[0], 9)] == [0.1, 0.1]
    assert whole.marker.symbol == "circle" and single.marker.symbol == "circle-open"
    assert "one seed" in single.name and list(single.x) == [-0.1]
    assert [round(row["instruction-flip"], 9) for row in frontier_rows(points)] == [0.2, 0.4]
    assert printed(figure, "svg").startswith(b"<?xml")


def test_the_stored_points_name_their_set_and_their_seeds() -> None:
    found = json.loads(FILE.read_text(encoding="utf-8"))
    assert "held-out groups" in found["set"] and found["model"]
    for one in found["points"]:
        for name, values in one["gains"].items():
            assert len(values) == len(one["seeds"]) == len(set(one["seeds"])), name
        if one["side"] == "query":  # the same vectors, so the same figure
            assert set(one["gains"]["guard-ndcg@10"]) == {0.0}
    assert {one["side"] for one in found["points"]} == {"query", "both"}


def test_the_train_page_shows_the_figures_as_of_the_demos_set(sqlite_store: Store) -> None:
    fill(sqlite_store)
    at = open_drawers(open_page("train"), "train.frontier_drawer")
    page = words(at)
    assert "none is of a training of yours" in page.replace("\\", "")
    assert [one.label for one in at.expander if "demo's set" in one.label]
    assert len(LOSSES) == 2


def test_writing_adds_to_the_points_that_a_lost_folder_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    import frontier

    monkeypatch.setattr(frontier, "FILE", tmp_path / "frontier.json")
    names = (*frontier.HEADLINE, frontier.GUARD)

    def found(value: float, *seeds: int) -> dict[str, Any]:
        of_seed = {seed: (dict.fromkeys(names, value), 9) for seed in seeds}
        return {"side": "query", "of seed": of_seed}

    def write(points: dict[str, Any], about: str = "a set") -> list[dict[str, Any]]:
        merged: list[dict[str, Any]] = frontier.with_those_before(points, about, "a model")
        whole = {"set": about, "model": "a model", "points": merged}
        frontier.FILE.write_text(json.dumps(whole), encoding="utf-8")
        return merged

    write({"query: LoRA 8": found(0.1, 2), "both": found(0.1, 1)})
    points = write({"query": found(0.3, 1), "query: LoRA 8": found(0.2, 3, 1)})
    assert [(one["point"], one["seeds"]) for one in points] == [
        ("query", [1]),
        ("query: LoRA 8", [1, 2, 3]),
        ("both", [1]),
    ]
    assert points[1]["gains"]["strict"] == [0.2, 0.1, 0.2] and points[1]["seconds"] == [9, 9, 9]
    with pytest.raises(SystemExit, match=r"'a set'.*'another'"):
        write({"query": found(0.3, 1)}, "another")
