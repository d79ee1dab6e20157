"""The state of everything at a glance: store, server, what runs, and what waits for a person."""

import json
import os
import urllib.error
import urllib.request
from pathlib import Path

from sqlalchemy.engine import make_url

from app.access.identity import Actor
from app.operations import jobs
from app.operations.acting import reading
from db.machine import PORT
from db.outcome.overview import with_actual_status
from db.patience import known_absence
from db.people.accounts import has_accounts
from db.review.queue import QueueFilter, count_matching
from db.rows import Row
from db.run.progress import list_runs
from db.run.runs import RunSummary
from db.store import schema
from db.store.revision import head
from db.store.store import open_store
from db.study.studies import list_studies

SERVER = f"http://127.0.0.1:{PORT}"
ANSWERS_IN_SECONDS = 1.0
MAX_JOBS = 20
LOOKED_AT = 3  # the newest runs of which unreviewed groups are counted


class StoreState(Row):
    """The store: its address without a password, its revision and the one that this version writes.

    `has_accounts` is None where the store is not of this version. `waiting`: since when processes
    of this machine wait for it, the next attempt and the reason, as for a locked file; "" for none.
    """

    address: str
    engine: str
    revision: str | None
    wanted: str
    has_accounts: bool | None
    waiting: str


class RunState(Row):
    """A run that is not done: its groups with a verdict, of all its pairs."""

    id: int
    name: str
    status: str
    finished: int
    pairs: int


class Waiting(Row):
    """Something that waits for a person, and the operation that goes on with it."""

    number: int
    what: str
    operation: str


class Status(Row):
    """What there is and what goes on. `server` is the address of one that answers, else None."""

    store: StoreState
    server: str | None
    jobs: tuple[jobs.JobRow, ...]
    runs: tuple[RunState, ...]
    waiting: tuple[Waiting, ...]


def store_state(actor: Actor) -> StoreState:
    """The store as it is, also without tables or of an earlier version. Raises StoreBehind."""
    store = open_store()
    file = make_url(store.url).database or ""
    is_missing = store.is_sqlite and not Path(file).is_file()  # a connection would make it
    revision, wanted = None if is_missing else schema.current(store), head()
    if revision is not None:
        schema.require_not_newer(store)
    known = None
    if revision == wanted:
        with reading(actor, "any") as session:
            known = has_accounts(session)
    away = known_absence(store.url)
    return StoreState(
        address=make_url(store.url).render_as_string(hide_password=True),
        engine="sqlite" if store.is_sqlite else "postgresql",
        revision=revision,
        wanted=wanted,
        has_accounts=known,
        waiting=f"work here waits for it {away}" if away else "",
    )


def status(actor: Actor) -> Status:
    """The state of now. Of a store that is not of this version it has the store and the server."""
    state = store_state(actor)
    if state.revision != state.wanted:
        return Status(store=state, server=_server(), jobs=(), runs=(), waiting=())
    listed = jobs.list_some(actor, statuses=("running", "queued"), limit=MAX_JOBS).data
    with reading(actor, "groups") as session:
        runs = [with_actual_status(session, run) for run in list_runs(session)]
        unreviewed = {
            run.id: count_matching(
                session,
                QueueFilter(run_id=run.id, verdict="kept", review="none"),
                reviewer=actor.name,
            )
            for run in runs[:LOOKED_AT]
        }
    with reading(actor, "studies") as session:
        studies = list_studies(session, statuses=("open",))
    waiting = [
        *(_of_run(run) for run in runs if run.status in ("paused", "failed", "lost")),
        *(
            Waiting(
                number=number,
                what=f"kept groups of run {run_id} that no person reviewed",
                operation=f"groups list {run_id}",
            )
            for run_id, number in unreviewed.items()
        ),
        *(
            Waiting(
                number=study.places - study.done,
                what=f"judgments that study {study.id} ({study.name}) lacks",
                operation=f"studies show {study.id}",
            )
            for study in studies
        ),
    ]
    return Status(
        store=state,
        server=_server(),
        jobs=listed,
        runs=tuple(
            RunState(
                id=run.id,
                name=run.dataset,
                status=run.status,
                finished=run.kept + run.dropped,
                pairs=run.pairs,
            )
            for run in runs
            if run.status not in ("done", "cancelled")
        ),
        waiting=tuple(each for each in waiting if each.number > 0),
    )


def _of_run(run: RunSummary) -> Waiting:
    left = run.pairs - run.kept - run.dropped
    what = f"groups of run {run.id} ({run.dataset}), which is {run.status}"
    return Waiting(number=left, what=what, operation=f"runs resume {run.id}")


def looked_at() -> str:
    """The address where a server of ours is looked for."""
    return os.environ.get("INF_PUBLIC_URL", "").strip().rstrip("/") or SERVER


def _server() -> str | None:
    """The address of a server of ours that answers: INF_PUBLIC_URL, or this machine's PORT."""
    address = looked_at()
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=ANSWERS_IN_SECONDS) as answer:
            is_ours = "status" in json.load(answer)
    except urllib.error.HTTPError as error:
        is_ours = error.code == 503  # it runs, and reports that something fails
    except (OSError, ValueError):
        is_ours = False
    return address if is_ours else None
