"""`python -m curation JOB ATTEMPT`: curation's jobs, each loaded when it is its turn."""

import importlib
import sys
from typing import Any, cast

from curation.sdk_types import load_types_by_name
from db.job_runner import Handler, JobHandle, main

HANDLERS = {
    "curate": "curation.engine:curate",
    "judge": "curation.judge_job:judge",
    "export": "curation.releases:export_release",
    "push": "curation.hub_push:push",
    "backup": "curation.backups:backup",
    "import": "curation.import_job:import_files",
}


def lazily(path: str) -> Handler:
    """A handler whose module is imported when it is called."""
    module, name = path.split(":")

    def handler(handle: JobHandle) -> dict[str, Any]:
        return cast(Handler, getattr(importlib.import_module(module), name))(handle)

    return handler


if __name__ == "__main__":
    load_types_by_name()
    sys.exit(main({kind: lazily(path) for kind, path in HANDLERS.items()}))
