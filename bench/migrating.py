"""How long a migration takes up and down, on a store with many groups of the release before.

    bench/migrating.py 0028 --groups 100000

The ten groups of `tests/data/release_before` are copied with their pairs, passages and triplets at
the revision before the migration, then it runs up, down and up again, three times; the medians are
printed with their range. PostgreSQL: a private cluster (`tests/postgres_cluster.py`).
"""

import argparse
import gzip
import json
import os
import sqlite3
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

import sqlalchemy as sa  # noqa: E402
from earlier_stores import fill_from  # noqa: E402
from postgres_cluster import Cluster  # noqa: E402

from db.store import schema  # noqa: E402
from db.store.store import Store, open_store  # noqa: E402

FROZEN, FIRST = ROOT / "tests" / "data" / "release_before" / "store.sql.gz", "0023"
GROUPS = 10  # of its first run, whose rows are copied
STEP = 100_000  # between the ids of two copies, which lie below 2**31: a row's id lies below it
# By table: of which rows, which columns are ids of it or another table, which are made unique.
COPIED = {
    "passage": ("id IN (SELECT passage_id FROM triplet WHERE {groups})", ("id",), "external_id"),
    "pair": (
        'id IN (SELECT pair_id FROM "group" g WHERE run_id = 1)',
        ("id", "passage_id"),
        "external_id",
    ),
    "group": ("run_id = 1", ("id", "pair_id"), None),
    "triplet": ("{groups}", ("id", "group_id", "passage_id"), None),
}


def multiply(store: Store, copies: int) -> None:
    """Insert this many copies of the first run's groups, in one statement for each table."""
    tables = sa.MetaData()
    tables.reflect(store.engine, only=list(COPIED))
    of_run = f'group_id IN (SELECT id FROM "group" WHERE run_id = 1 AND id < {STEP})'
    with store.engine.execution_options(inf_write=True).begin() as writing:
        for name, (which, ids, unique) in COPIED.items():
            columns = [column.name for column in tables.tables[name].columns]
            values = []
            for column in columns:
                own = f't."{column}"'
                if column in ids:
                    own = f"{own} + k * {STEP}"
                elif column == unique:
                    own = f"{own} || '-' || CAST(k AS TEXT)"
                values.append(own)
            quoted = ", ".join(f'"{column}"' for column in columns)
            writing.exec_driver_sql(
                "WITH RECURSIVE s(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM s "
                f'WHERE k < {copies}) INSERT INTO "{name}" ({quoted}) SELECT {", ".join(values)} '
                f'FROM s, "{name}" t WHERE t.id < {STEP} AND t.{which.format(groups=of_run)}'
            )
            count = writing.exec_driver_sql(f'SELECT count(*) FROM "{name}"').scalar()
            print(f"{name}: {count:,} rows")


def measure(store: Store, revision: str, before: str) -> dict[str, list[float]]:
    """Seconds of each way: elapsed, and of CPU in this process (all of SQLite's, none of the
    server's)."""
    found: dict[str, list[float]] = {}
    for _ in range(3):
        for way, move, to in (("up", schema.upgrade, revision), ("down", schema.downgrade, before)):
            start, used = perf_counter(), process_time()
            move(store, to)
            found.setdefault(way, []).append(perf_counter() - start)
            found.setdefault(f"{way} cpu", []).append(process_time() - used)
    return found


def prepared(folder: Path) -> Store:
    path = folder / "before.db"
    with sqlite3.connect(path) as database:
        database.executescript(gzip.decompress(FROZEN.read_bytes()).decode())
    database.close()
    return open_store(f"sqlite:///{path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--only", choices=("sqlite", "postgres"))
    given = parser.parse_args()
    before = f"{int(given.revision) - 1:04d}"
    with tempfile.TemporaryDirectory() as name, Cluster() as cluster:
        os.environ["INF_HOME"] = name
        source = prepared(Path(name))
        stores = {"postgres": open_store(cluster.create()), "sqlite": source}
        schema.upgrade(stores["postgres"], FIRST)
        fill_from(source, stores["postgres"])
        for engine, store in stores.items():
            if given.only in (None, engine):
                schema.upgrade(store, before)
                multiply(store, given.groups // GROUPS)
                found = measure(store, given.revision, before)
                shown = {
                    way: f"{median(of):.1f} ({min(of):.1f} to {max(of):.1f})"
                    for way, of in found.items()
                }
                print(engine, json.dumps(shown))
            store.close()


if __name__ == "__main__":
    main()
