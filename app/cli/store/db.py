"""`inf db`: the store's schema."""

import click

from app.cli.kit.report import Result, reporting
from db.store import schema
from db.store.store import open_store


@click.group()
def db() -> None:
    """Create or upgrade the store."""


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
