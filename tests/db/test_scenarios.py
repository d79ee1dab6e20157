"""The table of scenarios says what InF-IR's paper says, and the facts made from it agree."""

import pytest

from db.corpus.texts import INTRODUCES
from db.review.texts import FIELDS, FROM_THE_SOURCE
from db.scenarios import (
    COLUMNS,
    LABELS,
    ROLES,
    SCENARIOS,
    SIGNS,
    TEXTS,
    Role,
    complete,
    introduced,
    places,
)


def test_the_columns_are_those_that_inf_ir_publishes_in_their_order() -> None:
    assert COLUMNS == (
        "query_positive",
        "instruction_positive",
        "document_positive",
        "query_negative",
        "instruction_negative",
        "hard_negative_document_1",
        "hard_negative_document_2",
    )


def test_each_scenario_has_its_instruction_query_and_right_passage() -> None:
    assert LABELS == {
        "positive": "(I+, Q+) → P+",
        "instruction_negative": "(I-, Q+) → P1-",
        "query_negative": "(I+, Q-) → P2-",
    }


def test_every_text_is_introduced_once_and_stands_in_a_triplet_of_the_scenario_that_does() -> None:
    found = [text.sign for role in ROLES for text in introduced(role)]
    assert sorted(found) == sorted(TEXTS)
    for text in TEXTS.values():
        assert places(text)[0] == (text.introduced_by, text.field)
        assert SIGNS[text.field, text.introduced_by] == text.sign


@pytest.mark.parametrize("role", ROLES)
def test_no_scenario_shares_its_right_passage_with_another(role: Role) -> None:
    passages = [each.passage for each in SCENARIOS.values()]
    assert passages.count(SCENARIOS[role].passage) == 1


def test_an_edited_instruction_is_written_into_both_triplets_that_hold_it() -> None:
    assert FIELDS["instruction_positive"] == (
        ("positive", "instruction"),
        ("query_negative", "instruction"),
    )
    assert set(FIELDS) | set(FROM_THE_SOURCE) == set(COLUMNS)
    assert INTRODUCES["instruction_negative"] == ("instruction", "passage")


def test_a_scenario_is_complete_once_its_three_texts_are_there() -> None:
    pair = {"Q+": "a query", "P+": "a passage"}
    assert complete(pair) == ()
    assert [each.role for each in complete(pair | {"I+": "x"})] == ["positive"]
    assert len(complete(dict.fromkeys(TEXTS, "x"))) == len(SCENARIOS)
