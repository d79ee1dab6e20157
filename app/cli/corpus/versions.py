"""`inf runs decide`, `versions`, `compare-versions`, `use-version`, `remove-version`."""

import click

from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, lines, reporting
from app.cli.kit.table import paged, table
from app.operations import runs as operations
from app.text.numbers import counted
from curation.recipe.drop_reasons import reason_text
from curation.rules.deciding import RunDecide
from db.run.versions import FIRST, KEPT, VersionChoice, VersionComparison


def add_versions(group: click.Group) -> None:
    """Add the commands of verdict versions to those of runs."""
    for command in (decide, versions, compare_versions, use_version, remove_version):
        group.add_command(command)


def _ending(name: str) -> str:
    return name if name == KEPT else f"{name}: {reason_text(name)}"


def _changes(result: Result) -> str:
    """How many groups both keep, one keeps, and what changed, by drop reason."""
    changed = [each for each in result["changes"] if each["first"] != each["second"]]
    sums = lines(
        ("kept in both", f"{result['kept_in_both']:,}"),
        ("only in the first", f"{result['only_in_first']:,}"),
        ("only in the second", f"{result['only_in_second']:,}"),
        ("dropped in both", f"{result['in_neither']:,}"),
    )
    rows = [
        (f"{each['groups']:,}", _ending(each["first"]), _ending(each["second"])) for each in changed
    ]
    return f"{sums}\n\n{table(('groups', 'first', 'second'), rows, empty='no group changes')}"


def _decided(result: Result) -> str:
    rules = ", ".join(result["settings"])
    if result["version"] is None:
        head = f"run {result['run_id']} by {rules} (a preview: nothing is stored)"
        return f"{head}\nfirst: as the run is now; second: as it would be\n{_changes(result)}"
    head = f"run {result['run_id']} has verdict version {result['version']} now: {rules}"
    note = f"decided in {result['seconds']:.1f} s; first: the version before, second: this one"
    return f"{head}\n{note}\n{_changes(result)}"


@click.command()
@click.argument("run_id", metavar="RUN", type=int)
@request_options(RunDecide)
@reporting(_decided)
def decide(request: RunDecide) -> Result:
    """Decide a finished run again by other rules, from its stored answers: nothing is requested."""
    return operations.decide(command_actor(), request).as_json()


def _listed(result: Result) -> str:
    rows = [
        (
            f"{row['number']}*" if row["current"] else str(row["number"]),
            row["kept"],
            sum(row["dropped"].values()),
            ", ".join(row["settings"]) or "the recipe's rules",
            row["created_by"] or None,
            row["created_at"][:16].replace("T", " "),
            ", ".join(map(str, row["releases"])) or None,
        )
        for row in result["data"]
    ]
    head = ("version", "kept", "dropped", "rules", "by", "at", "releases")
    return f"{table(head, rows, empty='')}\n* is what the run uses"


@click.command()
@click.argument("run_id", metavar="RUN", type=int)
@paged()
@reporting(_listed)
def versions(run_id: int, limit: int | None, offset: int) -> Result:
    """List the verdict versions of a run: by which rules, by whom, what they keep."""
    return operations.list_versions(command_actor(), run_id).part(limit, offset).as_json()


def _compared(result: Result) -> str:
    first, second = (
        f"version {row['number']} ({', '.join(row['settings']) or 'the recipe’s rules'})"
        for row in (result["first"], result["second"])
    )
    rows = [
        (row["id"], row["query"], _detailed(row, "first"), _detailed(row, "second"))
        for row in result["groups"]["data"]
    ]
    shown = table(("group", "query", "first", "second"), rows, empty="")
    left = result["groups"]["total"] - len(rows)
    more = f"\n{counted(left, 'more group')}: --offset, --was and --now choose" if left > 0 else ""
    return (
        f"first: {first}\nsecond: {second}\n{_changes(result)}"
        + (f"\n\n{shown}" if rows else "")
        + more
    )


def _detailed(row: Result, side: str) -> str:
    detail = row[f"{side}_detail"]
    return f"{row[side]} ({detail})" if detail else str(row[side])


@click.command("compare-versions")
@click.argument("run_id", metavar="RUN", type=int)
@click.argument("first", type=int, default=FIRST)
@click.argument("second", type=int, required=False)
@request_options(VersionComparison)
@paged(operations.EXAMPLES)
@reporting(_compared)
def compare_versions(request: VersionComparison, limit: int, offset: int) -> Result:
    """Compare two verdict versions of a run, by default the first and what the run uses."""
    found = operations.compare_versions(command_actor(), request, limit=limit, offset=offset)
    return found.as_json()


@click.command("use-version")
@click.argument("run_id", metavar="RUN", type=int)
@click.argument("number", metavar="VERSION", type=int)
@request_options(VersionChoice)
@reporting(_listed)
def use_version(request: VersionChoice) -> Result:
    """Give the run's groups the verdicts of one of its versions."""
    return operations.use_version(command_actor(), request).as_json()


@click.command("remove-version")
@click.argument("run_id", metavar="RUN", type=int)
@click.argument("number", metavar="VERSION", type=int)
@request_options(VersionChoice)
@reporting(_listed)
def remove_version(request: VersionChoice) -> Result:
    """Delete a verdict version that the run does not use and no release is made of."""
    return operations.remove_version(command_actor(), request).as_json()
