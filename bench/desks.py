"""A study with many annotators at a real server, on SQLite and on PostgreSQL: what
bench/decisions.py and bench/annotators.py set up before they measure.
"""

import json
import os
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from card_client import CardClient, add_annotators  # noqa: E402
from postgres_cluster import Cluster, missing_programs  # noqa: E402
from restartable import Restartable, restartable  # noqa: E402
from study_world import make_world, sampled_study  # noqa: E402

from db.store import schema  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import Store, open_store  # noqa: E402

owners_process(True)

ENGINES = ("sqlite", "postgresql")


@dataclass(frozen=True)
class Office:
    """A served study and everybody who is to judge in it."""

    store: Store
    study_id: int
    server: Restartable
    desks: list[CardClient]


@contextmanager
def opened(url: str, home: Path, *, clients: int, items: int, overlap: int) -> Iterator[Office]:
    """An office on the empty store at `url`, then that of the environment."""
    os.environ |= {"INF_HOME": str(home), "INF_DATABASE_URL": url}
    store = open_store(url)
    schema.upgrade(store)
    run_id = make_world(store, items)
    with store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=items, overlap=overlap).id
        session.commit()
    people = add_annotators(store, clients)
    with restartable(home, url) as server:
        desks = [
            CardClient(server.url, study_id, name, cookie, seed=number)
            for number, (name, cookie) in enumerate(people)
        ]
        yield Office(store, study_id, server, desks)
    store.close()


def measure_engines(
    parser: ArgumentParser, measure: Callable[..., dict[str, object]], **defaults: float
) -> None:
    """Read the options, call `measure(url, home, **options)` for each engine, print all as JSON."""
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--engine", choices=ENGINES, help="this one only")
    given = vars(parser.parse_args())
    only = given.pop("engine")
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        if only in (None, "sqlite"):
            home = Path(folder) / "sqlite"
            found["sqlite"] = measure(f"sqlite:///{folder}/inf.db", home, **given)
        if only == "postgresql" or (only is None and missing_programs() is None):
            with Cluster() as cluster:
                home = Path(folder) / "postgresql"
                found["postgresql"] = measure(cluster.create(), home, **given)
    sys.stdout.write(json.dumps(given | found, indent=2) + "\n")
