"""`inf runs decide`, `versions`, `compare-versions`, `use-version`, `remove-version`."""

from app.cli.kit.doors import Noun
from app.cli.kit.report import Result, lines
from app.cli.kit.table import Column, drawn, paged
from app.operations import runs as operations
from app.text.numbers import counted
from curation.recipe.drop_reasons import reason_text
from db.run.versions import KEPT


def _ending(name: str) -> str:
    return name if name == KEPT else f"{name}: {reason_text(name)}"


SIDES: tuple[Column, ...] = tuple(
    (side, lambda row, key=side: _ending(row[key])) for side in ("first", "second")
)


def _changes(result: Result) -> str:
    """How many groups both keep, one keeps, and what changed, by drop reason; texts alone, too."""
    sums = lines(
        ("kept in both", f"{result['kept_in_both']:,}"),
        ("only in the first", f"{result['only_in_first']:,}"),
        ("only in the second", f"{result['only_in_second']:,}"),
        ("dropped in both", f"{result['in_neither']:,}"),
    )
    groups, texts = (
        [each for each in result[of] if each["first"] != each["second"]]
        for of in ("changes", "texts")
    )
    shown = drawn(("groups", *SIDES), groups, empty="no group changes")
    return "\n\n".join(filter(None, [sums, shown, drawn(("texts", *SIDES), texts)]))


def _decided(result: Result) -> str:
    rules = ", ".join(result["settings"])
    if result["version"] is None:
        head = f"run {result['run_id']} by {rules} (a preview: nothing is stored)"
        return f"{head}\nfirst: as the run is now; second: as it would be\n{_changes(result)}"
    head = f"run {result['run_id']} has verdict version {result['version']} now: {rules}"
    note = f"decided in {result['seconds']:.1f} s; first: the version before, second: this one"
    return f"{head}\n{note}\n{_changes(result)}"


VERSIONS: tuple[Column, ...] = (
    (
        "version (* is used)",
        lambda row: f"{row['number']}*" if row["current"] else str(row["number"]),
    ),
    *("kept", ("dropped", lambda row: sum(row["dropped"].values()))),
    ("rules", lambda row: ", ".join(row["settings"]) or "the recipe's rules"),
    *(("by", "created_by"), ("at", lambda row: row["created_at"][:16].replace("T", " "))),
    ("releases", lambda row: ", ".join(map(str, row["releases"]))),
)


def _listed(result: Result) -> str:
    return drawn(VERSIONS, result["data"])


def _compared(result: Result) -> str:
    first, second = (
        f"version {row['number']} ({', '.join(row['settings']) or 'the recipe’s rules'})"
        for row in (result["first"], result["second"])
    )
    rows = result["groups"]["data"]
    sides = ((side, lambda row, key=side: _detailed(row, key)) for side in ("first", "second"))
    texts = ("texts", _texts)
    shown = drawn([("group", "id"), "query", *sides, *[texts] * bool(result["texts"])], rows)
    left = result["groups"]["total"] - len(rows)
    more = f"\n{counted(left, 'more group')}: --offset, --was and --now choose" if left > 0 else ""
    return (
        f"first: {first}\nsecond: {second}\n{_changes(result)}"
        + (f"\n\n{shown}" if rows else "")
        + more
    )


def _texts(row: Result) -> str:
    """N[1]: kept → check_fits"""
    return "; ".join(f"{one['name']}: {one['first']} → {one['second']}" for one in row["texts"])


def _detailed(row: Result, side: str) -> str:
    detail = row[f"{side}_detail"]
    return f"{row[side]} ({detail})" if detail else str(row[side])


def add_versions(runs: Noun) -> None:
    """Add the commands of verdict versions to those of runs."""
    runs.door(operations.decide, text=_decided)
    runs.listed(operations.list_versions, name="versions", columns=VERSIONS, empty="")
    runs.door(operations.compare_versions, paged(operations.EXAMPLES), text=_compared)
    runs.door(operations.use_version, text=_listed)
    runs.door(operations.remove_version, text=_listed)
