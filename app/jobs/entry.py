"""`python -P -m app.jobs.entry JOB ATTEMPT`: the process of one claimed job, whatever its kind.

It loads the handler that the table of kinds names, and nothing else of `app`: a curation worker
holds neither Streamlit nor PyTorch.
"""

import logging
import sys
import uuid

from sqlalchemy import select

from analysis.files import shared
from app.jobs.kinds import KINDS
from db.errors import InfError, Refused
from db.events import record_event
from db.home import as_stored, files_root, home, home_ids
from db.jobs.jobs import LOCAL
from db.jobs.runner import Handler, JobHandle, main
from db.modules import load
from db.rows import Row
from db.store.settings import log_of_attempt
from db.store.store import Store
from db.tables import Event

FILES_USED = "store.files"
log = logging.getLogger("inf.jobs")


def handle(job: JobHandle) -> Row:
    """Import the handler of the job's kind and run it; returns the job's result.

    What it names of INF_FILES is fetched first, what it made is copied there before it is done.
    """
    _require_files(job)
    require_own_files(job.store)
    handler: Handler = load(KINDS[job.kind].handler)
    for path in shared.named_in(job.config):
        shared.here(path)
    with shared.copied_log(log_of_attempt(job.id, job.attempt)):
        result = handler(job)
        made = (job.config.get("out"), job.config.get("trec"), result.as_json())
        for path in dict.fromkeys(shared.named_in(made)):
            shared.share(path)
    return result


def _require_files(job: JobHandle) -> None:
    """Raise Refused on a node of a cluster that lacks the files, or would keep what is made."""
    fetches = as_stored(job.config) != job.config and not files_root()
    uses = job.kind in ("train", "export") or fetches
    if uses and job.launcher != LOCAL and job.home not in (None, *home_ids()):
        raise Refused(
            f"INF_HOME of this node, {home()}, is not the one that the job was started with",
            "mount that folder on every node under the same path, or set INF_FILES",
            code="node_without_files",
        )


def require_own_files(store: Store) -> None:
    """Raise Refused where INF_FILES is another store's: their logs and checkpoints have one name.

    The first store that comes has it; what it is known by there is an event, in copies, too.
    """
    if not files_root():
        return
    query = select(Event.noun_id).where(Event.name == FILES_USED).order_by(Event.id)
    with store.read() as session:
        ids = session.scalars(query).all()
    if not ids:
        with store.write() as session:
            record_event(session, "inf", FILES_USED, uuid.uuid4().hex)
            session.commit()
            ids = session.scalars(query).all()  # another process's, too
    try:
        shared.require_own_files(ids)
    except Refused:
        raise
    except InfError as error:  # a run goes on without its log
        log.warning("%s", error)


if __name__ == "__main__":
    sys.exit(main(dict.fromkeys(KINDS, handle)))
