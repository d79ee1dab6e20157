"""`inf backup` and `inf restore`: write the whole store to one file, and restore it."""

from pathlib import Path

import click

from app.cli.kit.progress import progress_bar
from app.cli.kit.report import Result, detach_option, lines, me, ready_store, reporting, work
from app.jobs import launching
from curation.backups import restored_as_json
from db.events import record_event
from db.jobs.jobs import LOCAL
from db.store import schema
from db.store.backup import greatest_job_id, restore_backup
from db.store.store import Store, open_store

FILE = click.Path(path_type=Path, dir_okay=False)


def _human(result: Result) -> str:
    return lines(
        ("backup", result["path"]),
        ("rows", result["rows"]),
        ("bytes", result["bytes"]),
        ("content", result["content_sha256"]),
    )


@click.command()
@click.argument("file", type=FILE)
@detach_option
@reporting(_human)
def backup(file: Path, detach: bool) -> Result:
    """Write a consistent snapshot of the whole store to FILE while others keep working.

    Files outside the store (releases, checkpoints, logs) are not included.
    """
    config = {"path": str(file.expanduser().absolute())}
    return work(ready_store(), "backup", config, detach=detach, title=f"backing up to {file.name}")


@click.command()
@click.argument("file", type=FILE)
@click.option("--replace", is_flag=True, help="Delete everything in the store first.")
@detach_option
@reporting(lambda result: f"restored {result['rows']:,} rows; content {result['content_sha256']}")
def restore(file: Path, replace: bool, detach: bool) -> Result:
    """Restore the backup FILE into the store that INF_DATABASE_URL names, atomically.

    A backup of either engine can be restored into either engine. A store that is not empty
    requires --replace. No job is started: queued jobs are cancelled. With --detach it is refused
    while other jobs run.
    """
    store = open_store()
    if detach or launching.chosen_launcher() != LOCAL:
        return _restore_as_job(store, file.expanduser().absolute(), replace=replace, detach=detach)
    with progress_bar(f"restoring {file.name}", unit=" rows") as show:
        manifest = restore_backup(store, file, replace=replace, progress=show)
    with store.write() as session:
        record_event(session, me(), "restore", file.name, made_at=manifest["created_at"])
        session.commit()
    return restored_as_json(manifest)


def _restore_as_job(store: Store, file: Path, *, replace: bool, detach: bool) -> Result:
    """Queue the restore as a job, in a store without tables after creating them."""
    after = greatest_job_id(file)  # the row of the job has to stay beside those of the backup
    if schema.current(store) is None:
        schema.upgrade(store)
    schema.require_current(store)
    config = {"path": str(file), "replace": replace}
    return work(
        store, "restore", config, detach=detach, title=f"restoring {file.name}", after=after
    )
