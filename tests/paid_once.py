"""What every test would pay again: the same answer at the price of one.

CPU seconds by `pytest -p cpu_times`, see docs/benchmarks.md, section Tests.
"""

import functools
import gc
import sys
from contextlib import nullcontext
from typing import Any

import pytest
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher
from sqlalchemy import Engine
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

from db.people.passwords import hasher
from db.store import store


def quick_passwords(patch: pytest.MonkeyPatch) -> None:
    """Argon2 with its least memory and one pass: the recommended one takes 0.24 s per password.

    That commands store the recommended one is tested where they are processes (test_users.py).
    """
    quick = PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),))
    patch.setattr(PasswordHash, "recommended", lambda: quick)
    hasher.cache_clear()


def scan_components_once() -> None:
    """Keep what Streamlit finds in the metadata of every installed package, 0.25 s per AppTest."""
    if "streamlit.testing.v1.app_test" not in sys.modules:
        return
    from streamlit.components.v2 import manifest_scanner

    scan = manifest_scanner.scan_component_manifests
    if not hasattr(scan, "cache_info"):
        manifest_scanner.scan_component_manifests = functools.cache(scan)


def work_on_runs_here() -> None:
    """A run in this process starts without `tuned_gc` and has its leakage check here.

    The former traverses all that the tests imported (0.5 s), the latter is a process that imports
    scikit-learn (2 s). Both are tested for themselves (test_collector.py, test_run_leakage.py), and
    a run in a process of its own has both.
    """
    if engine := sys.modules.get("curation.run.engine"):
        from curation.run.leakage import measure

        vars(engine).update(tuned_gc=nullcontext, check_leakage=measure)


def spare_what_is_loaded() -> None:
    """Leave what the tests imported out of every later garbage collection."""
    gc.collect()
    gc.freeze()


def share_compiled_statements(patch: pytest.MonkeyPatch) -> None:
    """All engines of a dialect share the SQL that SQLAlchemy compiled: a fifth of a page's test.

    Every test has its own store, so its own engine, and would compile every statement once more.
    The cache is keyed by the dialect, which is equal to itself only.
    """
    for dialect in (SQLiteDialect_pysqlite, PGDialect_psycopg):
        patch.setattr(dialect, "__eq__", lambda self, other: type(self) is type(other))
        patch.setattr(dialect, "__hash__", lambda self: hash(type(self)))
    make = store._make_engine
    caches: dict[str, Any] = {}

    def make_sharing(url: str, schema: str) -> Engine:
        engine = make(url, schema)
        shared = caches.setdefault(engine.dialect.name, LRUCache(2000))
        engine._compiled_cache = shared
        return engine

    patch.setattr(store, "_make_engine", make_sharing)
