"""Many rows in one statement, on both engines the same."""

from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from db.store.bulk import insert_for_ids, insert_new, insert_rows
from db.store.store import Store
from db.tables import Call, Dataset, Passage, utc_now

AWKWARD = ('it\'s "quoted" :rows %s %(x)s {braces}', "two\nlines\ttab \\ back", "𝔘 é ½ 日本", "a")


def passages(dataset_id: int) -> list[dict[str, Any]]:
    return [
        {
            "dataset_id": dataset_id,
            "external_id": f"p{number}",
            "title": "",
            "text": text,
            "sha256": "x",
            "origin": "generated",
            "meta": {"role": text, "none": None, "list": [1, 2.5]},
        }
        for number, text in enumerate(AWKWARD * 40)
    ]


def calls(*keys: str) -> list[dict[str, Any]]:
    return [
        {
            "key": key,
            "task": "validation",
            "provider": "openai",
            "model": "small",
            "prompt_sha256": "0",
            "request": {"sample": number},
            "answer": f"answer {number}",
            "finish_reason": "stop",
            "input_tokens": number,
            "output_tokens": 1,
            "reasoning_tokens": 0,
            "cost_usd": 0.000125,
            "attempts": 1,
            "latency_seconds": 0.25,
            "created_at": utc_now(),
        }
        for number, key in enumerate(keys)
    ]


def test_rows_come_back_as_they_were_under_ids_in_their_order(store: Store) -> None:
    with store.write() as session:
        session.add(dataset := Dataset(name="awkward"))
        session.flush()
        rows = passages(dataset.id)
        ids = insert_for_ids(session, Passage, rows)
        session.commit()
    with store.read() as session:
        stored = {one.id: one for one in session.scalars(select(Passage))}
    assert len(ids) == len(rows) == len(stored)
    for key, row in zip(ids, rows, strict=True):
        assert {name: getattr(stored[key], name) for name in row} == row


def test_only_rows_that_are_new_are_written_and_told(store: Store) -> None:
    first, second = calls("a", "b"), calls("b", "c")
    with store.write() as session:
        result = insert_new(session, Call, first, ("id", "key"))
        assert {row["key"] for row in result} == {"a", "b"}
        result = insert_new(session, Call, second, ("id", "key"))
        assert [row["key"] for row in result] == ["c"]
        session.commit()
    with store.read() as session:
        kept = {call.key: call for call in session.scalars(select(Call))}
    assert {key: call.answer for key, call in kept.items()} == {
        "a": "answer 0",
        "b": "answer 1",
        "c": "answer 1",
    }
    one, asked = kept["b"], first[1]
    assert {name: getattr(one, name) for name in asked} == asked


def test_what_breaks_a_constraint_is_refused_and_no_rows_are_nothing_to_do(store: Store) -> None:
    with store.write() as session:
        insert_rows(session, Call, [])
        assert insert_for_ids(session, Call, []) == []
        insert_rows(session, Call, calls("a"))
        with pytest.raises(IntegrityError):
            insert_rows(session, Call, calls("a"))
