"""InF-IR's shape says what its paper says; other shapes are read from a recipe's tables."""

import json
from typing import Any

import pytest
from records_world import group_ids, make_run
from sqlalchemy import text, update
from sqlalchemy.exc import IntegrityError

from db.corpus.texts import texts_of
from db.errors import BadInput
from db.release.rows import release_rows
from db.shape import INF_IR, Role, shape_from
from db.store import schema
from db.store.store import Store
from db.tables import Item, Recipe, SlotText


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


def test_every_text_is_introduced_once_by_a_scenario_that_has_it() -> None:
    found = [text.sign for role in INF_IR.roles for text in INF_IR.introduced(role)]
    assert sorted(found) == sorted(INF_IR.texts)
    for each in INF_IR.texts.values():
        assert each in INF_IR.scenarios[each.introduced_by].texts
        assert INF_IR.mark(each.field, each.role).sign == each.sign


@pytest.mark.parametrize("role", INF_IR.roles)
def test_no_scenario_shares_its_right_passage_with_another(role: Role) -> None:
    passages = [each.passage for each in INF_IR.scenarios.values()]
    assert passages.count(INF_IR.scenarios[role].passage) == 1


def test_all_texts_but_the_pairs_own_can_be_edited() -> None:
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
        body = json.loads(json.dumps(INF_IR.body()).replace('"query_negative"', f'"{to}"'))
        with store.engine.begin() as connection:
            named = {} if to == "query_negative" else {"shape": body}
            connection.execute(update(Recipe).values(body=named))
            connection.execute(update(Item).where(Item.scenario == role).values(scenario=to))

    rename("query_negative", "of_mine")
    with pytest.raises(ValueError, match="'of_mine', which the version before cannot hold"):
        schema.downgrade(store, "0023")
    schema.upgrade(store)  # it went back as far as it could
    rename("of_mine", "query_negative")
    schema.downgrade(store, "0023")
    with pytest.raises(IntegrityError, match=r"role|scenario"):
        rename("query_negative", "of_mine")
    schema.upgrade(store)
    rename("query_negative", "of_mine")
    assert len(group_ids(store, run_id)) == 1


def test_a_slot_may_hold_several_texts_which_hold_back_a_downgrade(store: Store) -> None:
    run_id = make_run(store, kept=2, dropped=0, unwritten=1)
    first, second = group_ids(store, run_id)
    unwritten = max(group_ids(store, run_id, "dropped"))
    with store.write() as session:
        session.add(SlotText(group_id=first, slot="I-", ordinal=1, text="another"))
        session.commit()
    with store.read() as session:
        found = texts_of(session, [second, first, unwritten])
        released = [
            row for batch in release_rows(session, [first, second], INF_IR) for row in batch
        ]
    assert list(found) == [second, first, unwritten] and found[unwritten] == {}
    assert set(found[second]) == set(INF_IR.texts)
    assert found[first].keys() - found[second].keys() == {"I-[1]"}
    assert found[first]["I-[1]"] == "another"
    assert [row.texts for row in released] == [
        tuple(found[group_id][sign] for sign in INF_IR.texts) for group_id in (first, second)
    ]
    with pytest.raises(ValueError, match="several texts in 'I-'"):
        schema.downgrade(store, "0027")


def test_texts_become_triplets_and_texts_again(store: Store) -> None:
    run_id = make_run(store, kept=2, dropped=0, unwritten=1)
    with store.read() as session:
        before = texts_of(session, group_ids(store, run_id))
    schema.downgrade(store, "0027")
    with store.engine.connect() as connection:
        rows = connection.execute(text("SELECT group_id, role, instruction, query FROM triplet"))
        found = {(group_id, role): (i, q) for group_id, role, i, q in rows}
    assert found == {
        (group_id, role): (texts[scenario.instruction.sign], texts[scenario.query.sign])
        for group_id, texts in before.items()
        for role, scenario in INF_IR.scenarios.items()
        if texts
    }
    schema.upgrade(store)
    with store.read() as session:
        assert texts_of(session, group_ids(store, run_id)) == before
