"""Where most of a text differs from its counterpart, marks would say nothing: a note does."""

from app.groups.workbench import _compared

OTHER = "The old trick of simmering a potato in the pot mostly works because it soaks up liquid."


def test_a_few_new_words_are_marked() -> None:
    found = _compared(OTHER.replace("potato", "carrot"), OTHER)
    assert [text for text, is_new in found["pieces"] if is_new] == ["carrot"]
    assert found["note"] == ""


def test_a_text_that_differs_throughout_is_said_to_and_not_marked() -> None:
    text = "Sunday lunch, eleven cousins on their way, and I had salted the minestrone twice."
    assert _compared(text, OTHER) == {"pieces": [(text, False)], "note": "differs throughout"}


def test_an_equal_and_an_empty_text_have_neither() -> None:
    for text in (OTHER, ""):
        assert _compared(text, text) == {"pieces": [(text, False)], "note": ""}
