"""A list of groups and items for a study, one to a line.

A line is a group (`12`), a group and a scenario (`12 query_negative`) or an item (`item 40`);
`#` begins a comment. Every unusable line is reported with its number.
"""

from collections.abc import Iterable

from db.errors import BadInput, BadRow, BadRows
from db.scenarios import ROLES
from db.study.sampling import Groups

REMEDY = "no study was made: correct these lines"


def listed_items(lines: Iterable[str], file: str, run_id: int, groups: Groups) -> Groups:
    """The listed groups with their permitted items: one, or all of them.

    `groups` are those of the run that reached validation. Raises BadRows for bad lines, BadInput
    for an empty list.
    """
    group_of = {item: group for group, items in groups.items() for item in items.values()}
    found: dict[int, dict[str, int]] = {}
    first: dict[int, int] = {}
    bad: list[BadRow] = []
    for number, line in enumerate(lines, start=1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        try:
            group_id, items = _resolve(fields, run_id, groups, group_of)
            if group_id in found:
                raise ValueError(
                    f"group {group_id} is in line {first[group_id]} already: a study takes one "
                    "item of a group"
                )
        except ValueError as error:
            bad.append(BadRow(file, number, str(error)))
        else:
            found[group_id], first[group_id] = items, number
    if bad:
        raise BadRows(bad, REMEDY, code="bad_rows")
    if not found:
        raise BadInput(f"{file}: lists no group and no item", code="lists_no_group_no")
    return found


def _resolve(
    fields: list[str], run_id: int, groups: Groups, group_of: dict[int, int]
) -> tuple[int, dict[str, int]]:
    if fields[0] == "item" and len(fields) == 2:
        item_id = _number(fields[1])
        if item_id not in group_of:
            raise ValueError(
                f"item {item_id} is not a current item of run {run_id}: of another, or edited since"
            )
        items = groups[group_of[item_id]]
        return group_of[item_id], {name: each for name, each in items.items() if each == item_id}
    if len(fields) > 2:
        raise ValueError(
            f"{' '.join(fields)[:60]!r} is neither GROUP, GROUP SCENARIO nor item ITEM"
        )
    group_id = _number(fields[0])
    if group_id not in groups:
        raise ValueError(f"group {group_id} did not reach validation in run {run_id}")
    if len(fields) == 1:
        return group_id, dict(groups[group_id])
    if fields[1] not in groups[group_id]:
        raise ValueError(
            f"{fields[1][:40]!r} is not a scenario of group {group_id}: {', '.join(ROLES)}"
        )
    return group_id, {fields[1]: groups[group_id][fields[1]]}


def _number(field: str) -> int:
    if not (field.isascii() and field.isdecimal()) or len(field) > 18:
        raise ValueError(f"{field[:40]!r} is not the number of a group or an item")
    return int(field)
