"""`python -m curation JOB ATTEMPT`: curation's jobs, each loaded when it is its turn."""

import importlib
import sys
from typing import Any, cast

from curation.providers.sdk_types import load_types_by_name
from db.jobs.runner import Handler, JobHandle, main

HANDLERS = {
    "curate": "curation.run.engine:curate",
    "judge": "curation.judging.job:judge",
    "export": "curation.release.job:export_release",
    "push": "curation.hub.push:push",
    "backup": "curation.backups:backup",
    "import": "curation.importing.job:import_files",
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
