"""`python -P -m app.jobs.entry JOB ATTEMPT`: the process of one claimed job, whatever its kind.

It loads the handler that the table of kinds names, and nothing else of `app`: a curation worker
holds neither Streamlit nor PyTorch.
"""

import sys

from app.jobs.kinds import KINDS
from db.jobs.runner import Handler, JobHandle, main
from db.modules import load
from db.rows import Row


def handle(job: JobHandle) -> Row:
    """Import the handler of the job's kind and run it; returns the job's result."""
    handler: Handler = load(KINDS[job.kind].handler)
    return handler(job)


if __name__ == "__main__":
    sys.exit(main(dict.fromkeys(KINDS, handle)))
