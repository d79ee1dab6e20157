"""`python -P -m app.jobs.entry JOB ATTEMPT`: the process of one claimed job, whatever its kind.

It loads the handler that the table of kinds names, and nothing else of `app`: a curation worker
holds neither Streamlit nor PyTorch.
"""

import sys

from analysis.files import shared
from app.jobs.kinds import KINDS
from db.jobs.runner import Handler, JobHandle, main
from db.modules import load
from db.rows import Row
from db.store.settings import logs


def handle(job: JobHandle) -> Row:
    """Import the handler of the job's kind and run it; returns the job's result.

    What it names of INF_FILES is fetched first, what it made is copied there before it is done.
    """
    handler: Handler = load(KINDS[job.kind].handler)
    for path in shared.named_in(job.config):
        shared.here(path)
    with shared.copied_log(logs() / f"job-{job.id}-{job.attempt}.log"):
        result = handler(job)
        made = (job.config.get("out"), job.config.get("trec"), result.as_json())
        for path in dict.fromkeys(shared.named_in(made)):
            shared.share(path)
    return result


if __name__ == "__main__":
    sys.exit(main(dict.fromkeys(KINDS, handle)))
