"""The style control finds a style that was planted, and nothing where there is none."""

import random
from pathlib import Path

import pytest
from trainer_release import make_rows

from db.shape import INF_IR
from trainer.data.groups import Group, group_of


def groups(count: int, *, planted: bool) -> list[Group]:
    """Groups whose passages carry, or do not carry, the mark of their own instruction."""
    draw, found = random.Random(3), []
    row = make_rows(1)[0]
    for number in range(count):
        marks = draw.sample(["verily", "okay"], 2)
        words = [
            " ".join(draw.choices(["stone", "oak", "iron", "arch", "mill"], k=6)) for _ in "ab"
        ]
        of_passage = marks if planted else draw.sample(marks, 2)
        texts = {
            "instruction_positive": f"{marks[0]} {words[0]}",
            "instruction_negative": f"{marks[1]} {words[0]}",
            "document_positive": f"{of_passage[0]} {words[1]}",
            "hard_negative_document_1": f"{of_passage[1]} {words[1]}",
        }
        found.append(group_of(row | texts, group_id=str(number), shape=INF_IR))
    return found


@pytest.mark.parametrize("planted", [True, False])
def test_a_planted_style_is_found(planted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    from style_control import style_flips

    all_groups = groups(160, planted=planted)
    flips, _ = style_flips("instruction-flip", all_groups[:120], all_groups[120:], 1)
    assert flips.mean() == 1.0 if planted else flips.mean() <= 0.5
