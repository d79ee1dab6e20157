"""`inf db`: the store's schema, and its copy in another database."""

from pathlib import Path

import click
from sqlalchemy.engine import make_url

from app.cli.kit.progress import progress_bar
from app.cli.kit.report import Result, me, reporting
from db.errors import BadInput
from db.events import record_event
from db.store import schema
from db.store.copying import copy_store
from db.store.settings import database_url, schema_name
from db.store.store import open_store


@click.group()
def db() -> None:
    """Create, upgrade, check or copy the store."""


@db.command()
@reporting(lambda result: f"the store is at revision {result['revision']}")
def upgrade() -> Result:
    """Create the tables, or bring them up to this version of InF Studio."""
    store = open_store()
    schema.upgrade(store)
    return {"revision": schema.current(store)}


@db.command()
@reporting(
    lambda result: f"the store is at revision {result['revision']}, with the schema of this version"
)
def check() -> Result:
    """Check revision, tables, columns, constraints and indexes against this version."""
    store = open_store()
    schema.require_current(store)
    return {"revision": schema.current(store)}


def _copied(result: Result) -> str:
    counted = [f"  {name:<24} {rows:>12,}" for name, rows in result["tables"].items() if rows]
    return "\n".join(
        [f"copied {result['rows']:,} rows, equal on both sides:", *counted, "content "]
    ) + str(result["content_sha256"])


@db.command()
@click.argument("source", metavar="FROM")
@click.option(
    "--from-schema",
    metavar="NAME",
    help="The schema of FROM on PostgreSQL, as public; default: INF_DATABASE_SCHEMA.",
)
@reporting(_copied)
def copy(source: str, from_schema: str | None) -> Result:
    """Copy the store FROM (a SQLite file, or an address) into the one INF_DATABASE_URL names.

    That one must be empty; both may be SQLite or PostgreSQL. Counts and content are compared.
    Refused while jobs of FROM run.
    """
    address = database_url(source if "://" in source else f"sqlite:///{_existing(source)}")
    if from_schema is not None:
        from_schema = schema_name(from_schema, "--from-schema")
    origin, target = open_store(address, schema=from_schema), open_store()
    if make_url(origin.url) == make_url(target.url) and (
        origin.is_sqlite or origin.schema == target.schema
    ):
        raise BadInput(
            "FROM is the store that INF_DATABASE_URL names",
            "name another there, or with --from-schema another schema of it",
            code="store_inf_database_url",
        )
    with progress_bar("copying", unit=" rows") as show:
        result = copy_store(origin, target, progress=show)
    with target.write() as session:
        record_event(session, me(), "copy", "store", rows=result["rows"])
        session.commit()
    return result


def _existing(source: str) -> Path:
    path = Path(source).expanduser().absolute()
    if not path.is_file():
        raise BadInput(
            f"{source} does not exist", "name a SQLite file or an address", code="does_not_exist"
        )
    return path
