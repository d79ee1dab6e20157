"""A label explains itself on hover by what its group's shape says; it stays text."""

from unittest.mock import patch

from app.text.texts import draw_text


def drawn(label: str, meaning: str = "") -> str:
    with patch("streamlit.html") as html:
        draw_text("a text", label=label, meaning=meaning)
    return str(html.call_args.args[0])


def test_a_label_has_its_meaning_and_one_without_none() -> None:
    assert '<abbr title="the query">Query Q</abbr>' in drawn("Query Q", "the query")
    assert "<abbr" not in drawn("Passage P1-")


def test_a_label_and_its_meaning_are_text_and_never_markup() -> None:
    found = drawn('<b title="I+">P1-</b>', '"><script>')
    assert "&lt;b title=&quot;" in found and "<b" not in found and "<script" not in found
