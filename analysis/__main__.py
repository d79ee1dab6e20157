"""`python -m analysis JOB ATTEMPT`: runs one claimed job of kind `embed` or `project`."""

import sys
from typing import Any

from db.jobs.runner import JobHandle, main


def embed(handle: JobHandle) -> dict[str, Any]:
    """Diversity, near-duplicates or contamination of corpora, as the config's `what` says."""
    from analysis import work

    what = {
        "diversity": work.diversity,
        "near_duplicates": work.near_duplicates,
        "contamination": work.contamination,
    }
    return what[handle.config.get("what", "diversity")](handle)


def coverage(handle: JobHandle) -> dict[str, Any]:
    """A map of corpora."""
    from analysis import work

    return work.coverage(handle)


if __name__ == "__main__":
    sys.exit(main({"embed": embed, "project": coverage}))
