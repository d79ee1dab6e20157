"""`python -P -m app.jobs.entry JOB ATTEMPT`: the process of one claimed job, whatever its kind.

It loads the handler that the table of kinds names, and nothing else of `app`: a curation worker
holds neither Streamlit nor PyTorch.
"""

import sys

from analysis.files import shared
from app.jobs.kinds import KINDS
from db.errors import Refused
from db.home import as_stored, home, home_ids
from db.jobs.jobs import LOCAL
from db.jobs.runner import Handler, JobHandle, main
from db.modules import load
from db.rows import Row
from db.store.settings import log_of_attempt


def handle(job: JobHandle) -> Row:
    """Import the handler of the job's kind and run it; returns the job's result.

    What it names of INF_FILES is fetched first, what it made is copied there before it is done.
    """
    _require_files(job)
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
    uses = job.kind in ("train", "export") or as_stored(job.config) != job.config
    if uses and job.launcher != LOCAL and job.home not in (None, *home_ids()):
        raise Refused(
            f"INF_HOME of this node, {home()}, is not the one that the job was started with",
            "mount that folder on every node under the same path, or set INF_FILES",
            code="node_without_files",
        )


if __name__ == "__main__":
    sys.exit(main(dict.fromkeys(KINDS, handle)))
