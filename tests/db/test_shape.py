"""InF-IR's shape says what its paper says; other shapes are read from a recipe's tables."""

import json
from typing import Any

import pytest
from records_world import group_ids, make_run
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from db.errors import BadInput
from db.shape import INF_IR, Role, shape_from
from db.store import schema
from db.store.store import Store
from db.tables import Item, Triplet


def test_the_columns_are_those_that_inf_ir_publishes_in_their_order() -> None:
    assert INF_IR.columns == (
        "query_positive",
        "instruction_positive",
        "document_positive",
        "query_negative",
        "instruction_negative",
        "hard_negative_document_1",
        "hard_negative_document_2",
    )


def test_each_scenario_has_its_instruction_query_and_right_passage() -> None:
    assert INF_IR.labels == {
        "positive": "(I+, Q+) → P+",
        "instruction_negative": "(I-, Q+) → P1-",
        "query_negative": "(I+, Q-) → P2-",
    }


def test_every_text_is_introduced_once_and_stands_in_a_triplet_of_the_scenario_that_does() -> None:
    found = [text.sign for role in INF_IR.roles for text in INF_IR.introduced(role)]
    assert sorted(found) == sorted(INF_IR.texts)
    for text in INF_IR.texts.values():
        assert INF_IR.places(text)[0] == (text.introduced_by, text.field)
        assert INF_IR.signs[text.field, text.introduced_by] == text.sign


@pytest.mark.parametrize("role", INF_IR.roles)
def test_no_scenario_shares_its_right_passage_with_another(role: Role) -> None:
    passages = [each.passage for each in INF_IR.scenarios.values()]
    assert passages.count(INF_IR.scenarios[role].passage) == 1


def test_an_edited_instruction_is_written_into_both_triplets_that_hold_it() -> None:
    assert INF_IR.editable["instruction_positive"] == (
        ("positive", "instruction"),
        ("query_negative", "instruction"),
    )
    given = {text.column for text in INF_IR.all_texts if text.from_source}
    assert set(INF_IR.editable) | given == set(INF_IR.columns)
    introduced = [text.field for text in INF_IR.introduced("instruction_negative")]
    assert introduced == ["instruction", "passage"]


def test_a_scenario_is_complete_once_its_three_texts_are_there() -> None:
    pair = {"Q+": "a query", "P+": "a passage"}
    assert INF_IR.complete(pair) == ()
    assert [each.role for each in INF_IR.complete(pair | {"I+": "x"})] == ["positive"]
    assert len(INF_IR.complete(dict.fromkeys(INF_IR.texts, "x"))) == len(INF_IR.scenarios)


def fourth(**changed: Any) -> dict[str, Any]:
    """InF-IR with (I-, Q-) → P3-, `changed` in its new text."""
    body = INF_IR.body()
    text = {"sign": "P3-", "field": "passage", "column": "hard_negative_document_3"} | changed
    role = {"role": "both_negative", "instruction": "I-", "query": "Q-", "passage": "P3-"}
    return {"texts": [*body["texts"], text], "scenarios": [*body["scenarios"], role]}


def test_a_shape_is_read_from_its_own_body() -> None:
    assert shape_from(json.loads(json.dumps(INF_IR.body()))) == INF_IR
    more = shape_from(fourth())
    assert more != INF_IR and shape_from(more.body()) == more
    assert more.labels["both_negative"] == "(I-, Q-) → P3-"
    assert more.introduced("both_negative") == (more.texts["P3-"],)


def test_a_fourth_scenario_leaves_the_answers_of_three_where_they_are() -> None:
    """A vote's sample number is part of its call's key: it was place + number of scenarios * vote,
    so that a fourth scenario had every vote but the first paid for again."""
    more = shape_from(fourth())
    for vote in range(50):
        for place, role in enumerate(INF_IR.roles):
            assert INF_IR.sample(role, vote) == more.sample(role, vote) == place + 3 * vote
    numbers = {more.sample(role, vote): role for role in more.roles for vote in range(300)}
    assert len(numbers) == 4 * 300
    assert all(more.role_of_sample(number) == role for number, role in numbers.items())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (fourth(field="passsage"), "'P3-': field = 'passsage' is none of"),
        (fourth(column="P3"), "column = 'P3' is not a name"),
        (fourth(column="query_negative"), "column 'query_negative' stands there twice"),
        (fourth(sign="P2-"), "sign 'P2-' stands there twice"),
        (fourth(sign="P4-"), "passage = 'P3-'; the texts of this field: P., P1-, P2-, P4-"),
        (fourth(from_source=True), "from_source texts are P., P3-, Q.; a pair gives"),
        (fourth(from_source="yes"), "from_source = 'yes' is not true or false"),
        (fourth() | {"scenarios": INF_IR.body()["scenarios"]}, "'P3-': no scenario uses it"),
        (fourth() | {"scenarios": []}, "there is no scenario"),
    ],
)
def test_a_wrong_shape_is_refused_with_its_place(body: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        shape_from(body, "the recipe mine.toml")


def test_roles_of_other_shapes_are_stored_and_hold_back_a_downgrade(store: Store) -> None:
    """Before migration 0024 the store refused every role but InF-IR's three."""
    run_id = make_run(store, kept=1, dropped=0, unwritten=0)

    def rename(role: str, to: str) -> None:
        with store.engine.begin() as connection:
            connection.execute(update(Triplet).where(Triplet.role == role).values(role=to))
            connection.execute(update(Item).where(Item.scenario == role).values(scenario=to))

    rename("query_negative", "of_mine")
    with pytest.raises(ValueError, match="'of_mine', which the version before cannot hold"):
        schema.downgrade(store, "0023")
    rename("of_mine", "query_negative")
    schema.downgrade(store, "0023")
    with pytest.raises(IntegrityError, match=r"role|scenario"):
        rename("query_negative", "of_mine")
    schema.upgrade(store)
    rename("query_negative", "of_mine")
    assert len(group_ids(store, run_id)) == 1
