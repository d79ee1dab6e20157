"""A list of groups and items for a study, one to a line.

A line is a group (`12`), a group and a scenario (`12 query_negative`) or an item (`item 40`);
`#` begins a comment. Every line that cannot be used is told with its number.
"""

from collections.abc import Iterable

from db.errors import BadInput, BadRow, BadRows
from db.scenarios import ROLES
from db.study.sampling import Groups

REMEDY = "no study was made: correct these lines"


def listed_items(lines: Iterable[str], file: str, run_id: int, groups: Groups) -> Groups:
    """The listed groups with the items that may be taken of them: one, or all of them.

    `groups` are those of the run that reached validation. Raises BadRows for bad lines, BadInput
    where nothing is listed.
    """
    group_of = {item: group for group, items in groups.items() for item in items.values()}
    found: dict[int, dict[str, int]] = {}
    first: dict[int, int] = {}
    bad: list[BadRow] = []
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            group_id, items = _resolve(words, run_id, groups, group_of)
            if group_id in found:
                raise ValueError(
                    f"group {group_id} stands in line {first[group_id]} already: a study takes one "
                    "item of a group"
                )
        except ValueError as error:
            bad.append(BadRow(file, number, str(error)))
        else:
            found[group_id], first[group_id] = items, number
    if bad:
        raise BadRows(bad, REMEDY)
    if not found:
        raise BadInput(f"{file}: lists no group and no item")
    return found


def _resolve(
    words: list[str], run_id: int, groups: Groups, group_of: dict[int, int]
) -> tuple[int, dict[str, int]]:
    if words[0] == "item" and len(words) == 2:
        item_id = _number(words[1])
        if item_id not in group_of:
            raise ValueError(
                f"item {item_id} is no current item of run {run_id}: of another, or edited since"
            )
        items = groups[group_of[item_id]]
        return group_of[item_id], {name: each for name, each in items.items() if each == item_id}
    if len(words) > 2:
        raise ValueError(f"{' '.join(words)[:60]!r} is neither GROUP, GROUP SCENARIO nor item ITEM")
    group_id = _number(words[0])
    if group_id not in groups:
        raise ValueError(f"group {group_id} did not reach validation in run {run_id}")
    if len(words) == 1:
        return group_id, dict(groups[group_id])
    if words[1] not in groups[group_id]:
        raise ValueError(
            f"{words[1][:40]!r} is no scenario of group {group_id}: {', '.join(ROLES)}"
        )
    return group_id, {words[1]: groups[group_id][words[1]]}


def _number(word: str) -> int:
    if not (word.isascii() and word.isdecimal()) or len(word) > 18:
        raise ValueError(f"{word[:40]!r} is no number of a group or an item")
    return int(word)
