"""Answers as JSON by schema where the server takes one; text where it does not; both strictly."""

import json
from typing import Any

import pytest
from curation_runs import add_dataset, run_curation
from openai_server import Server
from sqlalchemy import select

from curation.recipe.answers import Unparsable, parse
from curation.recipe.recipe import load_recipe
from curation.recipe.structured import response_format
from curation.recipe.tasks import tasks_of
from db.errors import BadInput
from db.run.group_detail import get_group
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Group

TASKS = tasks_of(INF_IR)

SETTINGS = ["model=small", "validation.model=judge"]


def written(store: Store, run_id: int) -> list[Any]:
    """The triplets and what the judge chose, without the raw answers."""
    with store.read() as session:
        groups = session.scalars(select(Group.id).where(Group.run_id == run_id).order_by(Group.id))
        found = [get_group(session, group_id) for group_id in groups]
    return [
        (group.name, group.triplets, [each.choice for each in group.judgments]) for group in found
    ]


@pytest.mark.parametrize("schema", ["taken", "refused", "ignored"])
def test_a_run_ends_the_same_whatever_the_server_makes_of_a_schema(
    schema: str, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=4)
    with Server(schema=schema) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        told = run_curation(sqlite_store, dataset="small", provider="openai", settings=SETTINGS)
        plain = ["output=text", *SETTINGS]
        other = run_curation(sqlite_store, dataset="small", provider="openai", settings=plain)
        asked = [body for body in server.bodies if "response_format" in body]
    assert told["kept"] == 4
    assert written(sqlite_store, told["run_id"]) == written(sqlite_store, other["run_id"])
    assert len(asked) == {"taken": 32, "ignored": 32}.get(schema, len(asked))
    if schema == "refused":
        # two forms for what was in flight before the model was known: 4 of one, 12 of the other
        assert 0 < len(asked) <= 32, "once refused, a model is asked in text"


@pytest.mark.parametrize("task", TASKS)
def test_a_schema_wants_every_key_and_no_other(task: str) -> None:
    found = response_format(task, TASKS[task].gives)["json_schema"]
    assert found["strict"] and found["schema"]["additionalProperties"] is False
    assert found["schema"]["required"] == list(found["schema"]["properties"])


def test_json_is_read_by_its_schema_and_by_nothing_less() -> None:
    assert (
        parse("instruction_positive", '{"instruction": "Only x.\\nAnd y"}', gives="Instruction")
        == "Only x."
    )
    good = json.dumps({"reasoning": "Choice: 1 is wrong", "choice": "2"})
    assert parse("validation", good, candidates=3, gives="Choice") == "2"
    for wrong in (
        '{"instruction": "x"',
        '{"instruction": 3}',
        '{"instruction": "x", "more": 1}',
        '{"query": "x"}',
        "{}",
    ):
        with pytest.raises(Unparsable) as error:
            parse("instruction_positive", wrong, gives="Instruction")
        assert error.value.reason == "unparsable"
    with pytest.raises(Unparsable, match="the query is empty"):
        parse("query_negative", '{"query": "  "}', gives="Query")
    with pytest.raises(Unparsable, match="chose passage 9 of 3"):
        parse(
            "validation", json.dumps({"reasoning": "", "choice": "9"}), candidates=3, gives="Choice"
        )


def test_an_output_that_is_neither_is_refused() -> None:
    with pytest.raises(BadInput, match="output = 'xml' is not text or json"):
        load_recipe("msmarco", ["validation.output=xml"])
