"""`inf upgrade`: copy the store, migrate it, check it; and the way back."""

from pathlib import Path

import click

from app.cli.kit.report import Result, lines, me, reporting
from db.events import record_event
from db.store import schema
from db.store.store import open_store
from db.store.upgrading import go_back, upgrade_store

FILE = click.Path(path_type=Path, dir_okay=False)


def _human(result: Result) -> str:
    rows: list[tuple[str, object]] = [("revision", result["revision"])]
    if "restored" in result:
        rows += [("restored", result["restored"]), ("what was there", result["copy"])]
        return lines(*rows)
    if result["before"] == result["revision"] and not result["added_indexes"]:
        return f"the store is at revision {result['revision']}: nothing to do"
    rows += [("before", result["before"] or "empty"), ("check", "passed")]
    rows += [("added", statement) for statement in result["added_indexes"]]
    if result["copy"]:
        rows += [("copy", result["copy"]), ("way back", f"inf upgrade --back {result['copy']}")]
    return lines(*rows)


@click.command()
@click.option("--copy-to", type=FILE, help="The copy's file; default: in $INF_HOME/backups.")
@click.option("--no-copy", is_flag=True, help="You have a copy already.")
@click.option("--back", type=FILE, metavar="COPY", help="Put this copy of an upgrade back.")
@reporting(_human)
def upgrade(copy_to: Path | None, no_copy: bool, back: Path | None) -> Result:
    """Copy the store, migrate it to this version and check it; or nothing is changed.

    --back puts a copy back, after a copy of what is there; then run the version that made it.
    """
    if bool(copy_to) + no_copy + bool(back) > 1:
        raise click.UsageError("give at most one of --copy-to, --no-copy and --back")
    store = open_store()
    if back is not None:
        return go_back(store, back.expanduser().absolute())
    result = upgrade_store(
        store, copy=not no_copy, copy_to=copy_to and copy_to.expanduser().absolute()
    )
    if result["before"] != result["revision"] or result["added_indexes"]:
        schema.require_current(store)
        with store.write() as session:
            record_event(session, me(), "upgrade", str(result["revision"]), **result)
            session.commit()
    return result
