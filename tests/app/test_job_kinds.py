"""The table of job kinds, and the process that reads it."""

import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path
from types import UnionType
from typing import get_args, get_type_hints

import pytest

from app.access.identity import owner
from app.access.permissions import NEEDS
from app.jobs import launching, supervisors
from app.jobs.kinds import KINDS, kinds_of_slot
from app.jobs.ray_cluster import entrypoint_of, environment_of
from app.jobs.supervisor import slots
from db.jobs import jobs
from db.modules import run_module
from db.rows import Row
from db.store.store import Store
from db.values import JOB_KINDS

LOADED = "import sys, app.jobs.entry; print(*sorted(m.split('.')[0] for m in sys.modules))"


def test_the_table_has_exactly_the_kinds_that_the_store_accepts() -> None:
    assert sorted(KINDS) == sorted(JOB_KINDS)
    assert all(name == kind.name for name, kind in KINDS.items())


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_every_kind_names_a_permission_a_slot_and_a_handler(kind) -> None:
    assert kind.permission in NEEDS
    assert any(kind.name in slot.kinds for slot in slots(gpus=[]))
    module, function = kind.handler.split(":")
    handler = getattr(importlib.import_module(module), function)
    assert list(inspect.signature(handler).parameters) == ["handle"]
    found = get_type_hints(handler)["return"]
    rows = get_args(found) if isinstance(found, UnionType) else (found,)
    assert all(issubclass(row, Row) for row in rows), "what a job stores is a declared row"


def test_only_kinds_of_the_model_slot_see_a_gpu() -> None:
    seen = {kind for slot in slots(gpus=["0"]) if slot.name == "gpu0" for kind in slot.kinds}
    assert seen == set(kinds_of_slot("models")) == {k.name for k in KINDS.values() if k.uses_gpu}


def test_the_entry_loads_neither_streamlit_nor_a_model_library() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not {"streamlit", "torch", "umap", "sentence_transformers", "openai"} & set(
        done.stdout.split()
    )


@pytest.fixture
def hostile_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder holds modules with our names; each writes a file when it is imported."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in ("db", "app", "analysis", "trainer", "curation"):
        (folder / f"{name}.py").write_text(
            f"import pathlib; pathlib.Path({str(folder / 'taken')!r}).touch()\n"
        )
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.long
def test_a_job_does_not_import_modules_of_the_current_folder(
    sqlite_store: Store, hostile_folder: Path, tmp_path: Path
) -> None:
    job = launching.run_in_foreground(
        sqlite_store, "backup", {"path": str(tmp_path / "all.zip")}, actor=owner("me")
    )
    assert job.status == "done" and not (hostile_folder / "taken").exists()


def test_the_supervisor_does_not_import_modules_of_the_current_folder(
    sqlite_store: Store, hostile_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisors, "run_module", lambda name: [*run_module(name), "--help"])
    supervisors.ensure_supervisor(sqlite_store)
    assert supervisors._started[-1].wait(60) == 0
    assert not (hostile_folder / "taken").exists()


def test_children_of_a_job_on_the_cluster_do_not_look_into_the_current_folder_either(
    sqlite_store: Store,
) -> None:
    with sqlite_store.write() as session:
        job = jobs.enqueue_job(session, "train", {})
        session.commit()
    assert environment_of(sqlite_store, job)["PYTHONSAFEPATH"] == "1"
    assert " -P -m " in entrypoint_of(job)


def test_children_of_a_local_job_inherit_the_safe_path(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = {}

    def popen(command, **options):
        started.update(options, command=command)
        return type("Child", (), {"pid": os.getpid()})()

    with sqlite_store.write() as session:
        job_id = jobs.enqueue_job(session, "export", {}).id
        job = jobs.claim_job(session, job_id)
        session.commit()
    monkeypatch.setattr(launching.subprocess, "Popen", popen)
    launching.start_process(sqlite_store, job)
    assert started["env"]["PYTHONSAFEPATH"] == "1"
    assert started["command"][1:3] == ["-P", "-m"]
