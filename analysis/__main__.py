"""`python -m analysis JOB ATTEMPT`: runs one claimed job of kind `embed` or `project`."""

import sys
from typing import Any

from db.job_runner import JobHandle, main


def diversity(handle: JobHandle) -> dict[str, Any]:
    """Diversity of corpora."""
    from analysis import work

    return work.diversity(handle)


def coverage(handle: JobHandle) -> dict[str, Any]:
    """A map of corpora."""
    from analysis import work

    return work.coverage(handle)


if __name__ == "__main__":
    sys.exit(main({"embed": diversity, "project": coverage}))
