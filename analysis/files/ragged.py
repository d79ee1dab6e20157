"""Groups with lists, of the rows that a release has of them: one for each query, one after another.

As `curation.release.rows` names them: a row is GROUP-I-Q, a passage GROUP-N[1], and the passage of
the pair has its own id. So each text is known by its slot, whatever the shape.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from analysis.files.row import BadValue, FileRow
from db.shape import RELEASE_COLUMNS, ListText, Shape

LISTED = "texts of lists"  # where a row that was put together has them, by name


def rows_of_groups(rows: Iterable[FileRow], shape: Shape) -> Iterator[FileRow]:
    """A row for each group: the rows themselves, but of a shape with lists put together."""
    if not shape.lists:
        yield from rows
        return
    for _, of_group in groupby(rows, lambda row: str(row.values.get("group_id"))):
        first, *others = of_group
        reason = next((row.reason for row in (first, *others) if row.reason is not None), None)
        try:
            if reason is not None:
                raise BadValue(reason)
            values = _group_of([first.values, *(row.values for row in others)], shape)
            yield replace(first, values=values, position=(others or [first])[-1].position)
        except BadValue as bad:
            yield replace(first, reason=str(bad))


def _group_of(rows: Sequence[Mapping[str, Any]], shape: Shape) -> dict[str, Any]:
    """The columns of a group from its rows: texts by column, `LISTED` by name.

    Raises BadValue for a row or passage of a name that the shape does not have, or without a text.
    """
    group = rows[0].get("group_id")
    if group in (None, ""):
        raise BadValue("no `group_id`: rows of one group have one")
    queries = {f"{group}-{one.query.sign}": (None, one.query) for one in shape.all_scenarios} | {
        f"{group}-{one.instruction.sign}-{one.query.sign}": (one.instruction, one.query)
        for one in shape.all_scenarios
    }
    passages = {
        f"{group}-{name}": (text, name)
        for text in shape.slots.values()
        if text.is_passage
        for name in text.names
    }
    own, passage_id = shape.first.passage, str(rows[0].get("passage_id") or "")
    found: dict[str, Any] = {name: rows[0].get(name) for name in RELEASE_COLUMNS}
    listed: dict[str, str] = {}
    for row in rows:
        if (slots := queries.get(str(row.get("query_id")))) is None:
            raise BadValue(f"`query_id` {row.get('query_id')!r}: one of {', '.join(queries)}")
        instruction, query = slots
        found[query.column] = row.get("only_query")
        if instruction is not None:
            found[instruction.column] = row.get("only_instruction")
        for passage in (*_listed(row, "positive_passages"), *_listed(row, "negative_passages")):
            name = str(passage.get("docid"))
            text, named = passages.get(name, (own, own.sign))
            if name not in passages and name != passage_id:
                raise BadValue(f"`docid` {name!r}: one of {', '.join((passage_id, *passages))}")
            if isinstance(text, ListText):
                listed[named] = str(passage.get("text") or "")
            else:
                found[text.column] = passage.get("text")
    for column in shape.columns:
        if found.get(column) is None:
            raise BadValue(
                f"no row of group {group} has its `{column}`: rows of one group stand one after "
                "another"
            )
    return {**found, LISTED: listed}


def _listed(row: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The passages of a row. Raises BadValue where it has no such list."""
    value = row.get(name)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise BadValue(f"`{name}` is not a list of passages")
    return value
