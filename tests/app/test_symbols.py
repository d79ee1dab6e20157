"""The paper's symbols explain themselves on hover; a label stays text."""

import pytest

from app.text.texts import with_meanings
from db.shape import INF_IR


@pytest.mark.parametrize("sign", INF_IR.texts)
def test_every_symbol_of_a_label_has_its_meaning(sign: str) -> None:
    meaning = INF_IR.texts[sign].meaning
    assert with_meanings(f"Text {sign}") == f'Text <abbr title="{meaning}">{sign}</abbr>'


@pytest.mark.parametrize("label", ["", "AI+x", "P-", "HI-tech", "q+", "P+-", "I++"])
def test_letters_that_only_look_like_a_symbol_stay(label: str) -> None:
    assert with_meanings(label) == label


def test_a_label_is_text_and_never_markup() -> None:
    found = with_meanings('<b title="I+">P1-</b>')
    assert found.startswith("&lt;b title=&quot;") and "<b" not in found
    assert found.count("<abbr") == 2
