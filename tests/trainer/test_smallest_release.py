"""A release of one group, and groups whose negatives say nothing, train and do no harm."""

from pathlib import Path

import pytest
from trainer_jobs import TINY, claim
from trainer_release import make_rows, write_rows

from db.errors import BadInput
from db.store.store import Store
from trainer.launch.here import train


def config(tmp_path: Path, rows: list[dict[str, object]], **settings: str) -> dict[str, object]:
    release = write_rows(tmp_path / "release", rows)
    given = TINY | {"max_steps": "1", "held_out": "0"} | settings
    return {"release": str(release), "out": str(tmp_path / "out"), "settings": given}


@pytest.mark.parametrize("objective", ["P,I,IQ:multi", "mnrl", "promptriever"])
def test_one_group_trains(sqlite_store: Store, tmp_path: Path, objective: str) -> None:
    result = train(claim(sqlite_store, config(tmp_path, make_rows(1), objective=objective)))
    assert result["steps"] == 1 and 0 < result["loss_last"] < 50


def test_one_group_cannot_be_held_out_in_part(sqlite_store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="1 group that cannot be split"):
        train(claim(sqlite_store, config(tmp_path, make_rows(1), held_out="0.2")))


def test_negatives_that_equal_the_positives_are_masked(sqlite_store: Store, tmp_path: Path) -> None:
    """Nothing is left to contrast: the loss is zero, and no number breaks."""
    row = make_rows(1)[0]
    row |= {
        "query_negative": row["query_positive"],
        "instruction_negative": row["instruction_positive"],
        "hard_negative_document_1": row["document_positive"],
        "hard_negative_document_2": row["document_positive"],
    }
    for name in ("P,I:multi", "P,I,IQ:uni", "promptriever"):
        result = train(claim(sqlite_store, config(tmp_path / name, [row] * 2, objective=name)))
        assert result["loss_last"] == pytest.approx(0.0, abs=1e-6), name
