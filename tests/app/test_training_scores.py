"""What `inf train` and the Train page print of a training's held-out groups."""

import pytest
from app_pages import open_drawers
from streamlit.testing.v1 import AppTest

from app.cli.trainings import _trained
from app.models.verdict import shared_with_control
from app.training.watched import changes_of, verdict_text
from trainer.evaluate.intervals import ranked_over
from trainer.report.scored import interval_rows, score_rows

RESULT = {
    "checkpoint_id": 1,
    "path": "out",
    "offline": False,
    "steps": 2,
    "seconds": 3.0,
    "loss_first": 1.0,
    "loss_last": 0.5,
    "held_out": {
        "groups": 9,
        "before": {"strict": 0.5},
        "after": {"strict": 0.75},
        "intervals": {"before": {"strict": [0.25, 0.75]}, "after": {"strict": [0.5, 0.9]}},
        "gain": {"strict": {"value": 0.25, "low": -0.05, "high": 0.55}},
        "notes": ["the base model already has instruction-flip 0.95: they are too easy"],
    },
    "natural_probe": {
        "before": {"natural-flip": 0.25},
        "after": {"natural-flip": 0.5},
        "gain": {"natural-flip": {"value": 0.25, "low": 0.125, "high": 0.375}},
    },
}


def test_the_report_of_a_training_has_intervals_what_is_ranked_and_notes() -> None:
    shown = _trained(RESULT)
    rows = [line.split() for line in shown.splitlines()]
    numbers = ["0.5000", "0.2500", "0.7500", "0.7500", "0.5000", "0.9000"]
    assert ["strict", *numbers, "0.2500", "-0.0500", "0.5500"] in rows
    probe = ["0.2500", "–", "–", "0.5000", "–", "–", "0.2500", "0.1250", "0.3750"]
    assert ["natural-flip", *probe] in rows
    assert "ranked over the group's 3 passages" in shown and "too easy" in shown
    row, natural = interval_rows(RESULT)
    assert natural.trained_low is None and natural.gain_low == 0.125
    assert (row.base_low, row.trained, row.trained_high) == (0.25, 0.75, 0.9)


def test_a_training_without_stored_intervals_has_none() -> None:
    old = {
        name: value
        for name, value in RESULT["held_out"].items()
        if name not in ("intervals", "gain")
    }
    assert interval_rows({"held_out": old}) == []
    assert interval_rows({}) == []


def test_the_train_page_shows_the_intervals_and_what_is_ranked() -> None:
    def page(result: dict[str, object]) -> None:
        from app.training.watched import _draw_scores
        from db.tables import Job

        _draw_scores(Job(kind="train", config={}, result=result))

    at = AppTest.from_function(page, default_timeout=60, kwargs={"result": RESULT})
    open_drawers(at, "train.measures")
    assert not at.exception
    assert at.dataframe[1].value.loc[[0], ["base_low", "trained_high"]].to_numpy().tolist() == [
        [0.25, 0.9]
    ]
    captions = "\n".join(each.value for each in at.caption)
    assert "ranked over the group's 3 passages" in captions and "too easy" in captions


@pytest.mark.parametrize(
    ("measure", "documents", "found"),
    [
        ("strict", 900, "the group's 3 passages"),
        ("p-mrr", 100, "all 100 held-out passages"),
        ("p-mrr", 101, "BM25's best 100 and the group's"),
    ],
)
def test_bm25s_best_are_named_only_where_not_all_passages_are_ranked(
    measure: str, documents: int, found: str
) -> None:
    record = {"benchmark": {"documents": documents}, "pool": "all"}
    assert ranked_over(measure, {"instruction-flip": 0.5}, record) == found
    assert ranked_over(measure, {}, record) == "all"


@pytest.mark.parametrize("low", [None, 0.0, -0.1])
def test_a_control_shares_no_gain_that_there_may_not_be(low: float | None) -> None:
    assert shared_with_control(0.3, 0.29, low) == shared_with_control(0.3, 0.5, low) == ""


@pytest.mark.parametrize(("control", "shares"), [((0.2, 0.5), True), ((0.2, 0.22), False)])
def test_a_gain_that_the_instruction_alone_has_too_is_told_as_such(
    control: tuple[float, float], shares: bool
) -> None:
    gain = {"value": 0.2, "low": 0.1, "high": 0.3}
    held_out = {
        "before": {"instruction-flip": 0.3},
        "after": {"instruction-flip": 0.5},
        "gain": {"instruction-flip": gain},
        "groups": 40,
    }
    said = verdict_text(interval_rows({"held_out": held_out}), {}, control)
    assert "clearly higher." in said
    assert ("by the instruction alone, it gained" in said) == shares


def test_the_slope_chart_has_all_measures_with_the_intervals_that_are_known() -> None:
    result = {
        "held_out": {
            "groups": 9,
            "before": {"strict": 0.5, "ndcg@10": 0.4, "map": 0.3, "mrr": 0.2},
            "after": {"strict": 0.75, "ndcg@10": 0.6, "map": 0.4, "mrr": 0.3, "p-mrr": None},
            "intervals": {
                "before": {"strict": [0.25, 0.75], "ndcg@10": [0.3, 0.5]},
                "after": {"strict": [0.5, 0.9], "ndcg@10": [0.5, 0.7]},
            },
        }
    }
    found = changes_of(score_rows(result), interval_rows(result))
    assert len(found) == 4, "strict, nDCG@10, MAP and MRR"
    by_end = {after.value: (before.interval, after.interval) for before, after in found}
    assert by_end[0.6] == ((0.3, 0.5), (0.5, 0.7)) and by_end[0.75][0] == (0.25, 0.75)
    assert by_end[0.4] == by_end[0.3] == (None, None)
