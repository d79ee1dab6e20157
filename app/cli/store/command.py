"""`inf store`: back up, restore, upgrade, check and copy the whole store; and `inf status`."""

from pathlib import Path

import click

from app.access.identity import owner
from app.cli.kit.doors import Noun
from app.cli.kit.formerly import formerly
from app.cli.kit.options import request_options
from app.cli.kit.progress import progress_bar
from app.cli.kit.report import Launching, Result, launched, lines, me, reporting
from app.cli.kit.table import Column, drawn, sheet
from app.operations import store as operations
from app.operations.overview import status as operation_of_status
from app.operations.store import StoreUpgrade, StoreUpgraded
from app.text.remedies import in_commands
from curation.backups import RestorePlan
from db.store.backup import greatest_job_id

store = Noun("store")
backup = store.door(
    operations.back_up,
    name="backup",
    text=(("backup", "path"), "rows", "bytes", ("content", "content_sha256")),
    title="backing up to {path}",
)


@store.command()
@request_options(RestorePlan)
@launched
@reporting(lambda result: f"restored {result['rows']:,} rows; content {result['content_sha256']}")
def restore(request: RestorePlan, launch: Launching) -> Result:
    """Restore the backup FILE into the store that INF_DATABASE_URL names, atomically.

    A backup of either engine can be restored into either engine. A store that is not empty
    requires --replace. No job is started: queued jobs are cancelled. With --detach it is refused
    while other jobs run.
    """
    title = f"restoring {Path(request.path).name}"
    if not launch.is_here:
        after = greatest_job_id(Path(request.path))  # its row has to stay with those of the backup
        return operations.restore_as_job(owner(me()), request, launch(title, after))
    with progress_bar(title, unit=" rows") as show:
        return operations.restore(owner(me()), request, show).as_json()


def _upgraded(result: Result) -> str:
    rows: list[tuple[str, object]] = [("revision", result["revision"])]
    if "restored" in result:
        rows += [("restored", result["restored"]), ("what was there", result["copy"])]
        return lines(*rows)
    if result["before"] == result["revision"] and not result["added_indexes"]:
        return f"the store is at revision {result['revision']}: nothing to do"
    rows += [("before", result["before"] or "empty"), ("check", "passed")]
    rows += [("added", statement) for statement in result["added_indexes"]]
    if result["copy"]:
        back = f"inf store upgrade --back {result['copy']}"
        rows += [("copy", result["copy"]), ("way back", back)]
    return lines(*rows)


upgrade = store.door(
    operations.upgrade,
    text=_upgraded,
    actor=lambda _: owner(me()),
    about="Create the tables, or copy the store, migrate and check it; or nothing is changed.\n\n"
    "--back puts a copy back, after a copy of what is there; then run the version that made it.",
)


check = store.door(
    operations.check,
    text=lambda found: f"the store is at revision {found['revision']}, as this version has it",
)


def _copied(result: Result) -> str:
    tables = [{"table": name, "rows": rows} for name, rows in result["tables"].items() if rows]
    head = f"copied {result['rows']:,} rows, equal on both sides:"
    return f"{head}\n{sheet(tables)}\ncontent {result['content_sha256']}"


copy = store.door(
    operations.copy_from,
    name="copy",
    text=_copied,
    title="copying",
    actor=lambda _: owner(me()),
    about="Copy the store FROM (a SQLite file, or an address) into the one INF_DATABASE_URL "
    "names.\n\nThat one must be empty; both may be SQLite or PostgreSQL. Counts and content are "
    "compared. Refused while jobs of FROM run.",
)


# The former names, of which `inf db upgrade` made no copy.
former_backup = formerly(backup, "backup", "store backup")
former_restore = formerly(restore, "restore", "store restore")
former_upgrade = formerly(upgrade, "upgrade", "store upgrade")


@click.command("upgrade")
@reporting(lambda result: f"the store is at revision {result['revision']}")
def _without_copy() -> StoreUpgraded:
    """Create the tables, or bring them up to this version of InF Studio."""
    return operations.upgrade(owner(me()), StoreUpgrade(no_copy=True))


db = Noun(
    "db",
    formerly(_without_copy, "db upgrade", "store upgrade --no-copy"),
    formerly(check, "db check", "store check"),
    formerly(copy, "db copy", "store copy"),
)


WAITING: tuple[Column, ...] = (
    *("number", ("what waits for a person", "what")),
    ("command", lambda row: in_commands(f"`{row['operation']}`").strip("`")),
)


def _status(result: Result) -> str:
    kept, behind = result["store"], result["store"]["revision"] != result["store"]["wanted"]
    state = "new" if kept["revision"] is None else f"revision {kept['revision']}"
    other = ", of another version" * (behind and kept["revision"] is not None)
    address = ("store", f"{kept['address']} ({state}{other})")
    server = ("server", result["server"] or f"none at {operation_of_status.looked_at()}")
    jobs = (("job", "id"), "kind", "status", "done", "total", "message")
    runs = (("run", "id"), "name", "status", "finished", "pairs")
    parts = [
        lines(address, *([("", kept["waiting"])] if kept["waiting"] else []), server),
        # whole: what a job waits for comes last
        drawn(jobs, result["jobs"], empty="no job runs or is queued", max_columns=500),
        drawn(runs, result["runs"], empty="no run is open"),
        drawn(WAITING, result["waiting"], empty="nothing waits"),
    ]
    then = "next: inf serve" if result["server"] is None else f"next: open {result['server']}"
    return "\n\n".join([*parts, in_commands("next: `store upgrade`") if behind else then])


@click.command()
@reporting(_status)
def status() -> Result:
    """Show store and server, the jobs and runs that are open, and what waits for a person."""
    return operation_of_status.status(owner(me())).as_json()
