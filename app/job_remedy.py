"""What to do about a job that failed, in a sentence."""

import errno
import os

from db.tables import Job

FULL = os.strerror(errno.ENOSPC)


def what_to_do(job: Job) -> str:
    """The next step after a failure, "" where the job's own words have it."""
    if job.status != "failed" or not job.error:
        return ""
    if FULL in job.error:
        return "Free space on the disk, then resume: it goes on from what was stored."
    if "Traceback" in job.error or "  File " in job.error:
        log = f" (`inf jobs logs {job.id}`)" if job.log_path else ""
        return (
            f"This is a fault of the program: its last lines are above, all are in the log{log}. "
            "Resume goes on from what was stored; where it comes again, report it with the log."
        )
    return ""
