"""Work on a store that ends by SIGKILL before a commit of its own, a process for each line.

    python tests/killed_work.py < LINES

A line is a JSON object of `work` (a name in `WORK`), `url`, `folder` and `commit`: before which one
the process is killed. Each is answered with the exit status, -9 for a kill.
"""

import json
import os
import signal
import sys
from pathlib import Path

from killed_purge import in_a_fork
from sqlalchemy import Engine, event
from sqlalchemy.orm import configure_mappers
from starlette.applications import Starlette
from starlette.testclient import TestClient
from study_world import make_world, sampled_study

from app.access.identity import owner
from app.operations import store as operations
from app.operations.store import StoreUpgrade
from app.server.recruited import RECRUITED_ROUTES
from curation.backups import BackupPlan, RestorePlan, backup, restore
from curation.hub.pull import pull_as
from curation.hub.request import DatasetPull
from curation.importing import groups, importing
from curation.importing.job import import_as
from curation.importing.request import DatasetImport
from db.jobs import jobs
from db.jobs.runner import JobHandle, run
from db.people.accounts import add_account
from db.people.recruiting import open_recruiting
from db.store.settings import owners_process
from db.store.store import Store, open_store

ADA = owner("ada")
HANDLERS = {"backup": backup, "restore": restore}


def _nothing(done: int, total: int | None) -> None:
    """No progress is shown."""


def import_pairs(store: Store, folder: Path) -> None:
    request = DatasetImport(name="new", pairs=str(folder / "pairs.jsonl"))
    import_as(store, request, by="ada", progress=_nothing)


def import_groups(store: Store, folder: Path) -> None:
    request = DatasetImport(name="new", groups=(str(folder / "groups.jsonl"),))
    import_as(store, request, by="ada", progress=_nothing)


def pull(store: Store, folder: Path) -> None:
    request = DatasetPull(repo=str(folder / "hub"), name="new", licence="mit")
    pull_as(store, request, by="ada", progress=_nothing)


def back_up_as_job(store: Store, folder: Path) -> None:
    _as_job(store, "backup", BackupPlan(path=str(folder / "new.zip")))


def restore_as_job(store: Store, folder: Path) -> None:
    _as_job(store, "restore", RestorePlan(path=str(folder / "all.zip"), replace=True))


def restore_here(store: Store, folder: Path) -> None:
    operations.restore(ADA, RestorePlan(path=str(folder / "all.zip"), replace=True), _nothing)


def copy_here(store: Store, folder: Path) -> None:
    operations.copy_from(ADA, operations.StoreCopy(source=str(folder / "other.db")), _nothing)


def upgrade_here(store: Store, folder: Path) -> None:
    operations.upgrade(ADA, StoreUpgrade())


def go_back(store: Store, folder: Path) -> None:
    operations.upgrade(ADA, StoreUpgrade(back=str(folder / "before.db")))


def begin_as_recruit(store: Store, folder: Path) -> None:
    """Somebody comes by the link of a study, which is made here."""
    run_id = make_world(store, 2)
    with store.write() as session:
        add_account(session, "root", "correct horse battery", role="admin", actor="test")
        study_id = sampled_study(session, run_id=run_id, items=1, overlap=1).id
        codes = {"platform": "prolific", "complete": "C", "screened_out": "S"}
        token = open_recruiting(session, study_id, **codes, people=1, quota=1, actor="root")
        session.commit()
    client = TestClient(Starlette(routes=[*RECRUITED_ROUTES]), follow_redirects=False)
    path, data = f"/recruited/{study_id}/{token}", {"person": "5f01", "submission": "s111"}
    for _ in range(2):
        assert client.post(path, data=data).status_code == 303


def _as_job(store: Store, kind: str, plan: BackupPlan) -> None:
    """Run the job of this kind that is queued, or was when its process was killed."""
    with store.write() as session:
        job_id = jobs.enqueue_job(session, kind, plan.config(), started_by="ada").id
        job = jobs.claim_job(session, job_id)
        session.commit()
    assert job is not None
    run(JobHandle(store, job.id, job.attempt), HANDLERS[kind])


WORK = {
    each.__name__: each
    for each in (
        *(import_pairs, import_groups, pull, back_up_as_job, restore_as_job, restore_here),
        *(copy_here, upgrade_here, go_back, begin_as_recruit),
    )
}


def killed_before(commit: int, work: str, url: str, folder: Path) -> None:
    """Do the work in this process, which ends by SIGKILL before its commit of this number."""
    os.environ["INF_DATABASE_URL"] = url
    store, commits = open_store(), 0
    importing.BATCH = groups.BATCH = 2

    def reached(_: object) -> None:
        nonlocal commits
        commits += 1
        if commits == commit:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "commit", reached)
    WORK[work](store, folder)


if __name__ == "__main__":
    owners_process(True)
    configure_mappers()  # once, not in each fork
    for line in sys.stdin:
        given = json.loads(line)
        place = Path(given["folder"])
        code = in_a_fork(killed_before, given["commit"], given["work"], given["url"], place)
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()
