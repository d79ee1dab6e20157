"""The kinds of jobs: one table that the queue's slots, the permissions and the job process read.

A new kind is one row here and its name in `db.values.JOB_KINDS` (the store's check constraint,
which needs a migration).
"""

import os
from dataclasses import dataclass

from db.errors import BadInput


@dataclass(frozen=True)
class JobKind:
    """One kind of job.

    `handler` is "module:function"; only the job's own process imports it. `permission` is what a
    session user needs to launch one from a page. `slot` is the queue it waits in
    (`app.jobs.supervisor`). `shared`: its config may have `workers`, so many jobs that work on one
    thing; all but the first have `joins`.
    """

    name: str
    handler: str
    permission: str
    slot: str
    shared: bool = False

    @property
    def uses_gpu(self) -> bool:
        """Whether a process of this kind computes with a model and may need a GPU."""
        return self.slot == "models"


KINDS: dict[str, JobKind] = {
    kind.name: kind
    for kind in (
        JobKind("curate", "curation.run.engine:curate", "curate", "curation", shared=True),
        JobKind("judge", "curation.run.revalidation:judge", "studies", "curation"),
        JobKind("embed", "analysis.work:embed", "analyze", "models"),
        JobKind("project", "analysis.work:coverage", "analyze", "models"),
        JobKind("train", "trainer.launch.job:train", "train", "models"),
        JobKind("evaluate", "trainer.evaluate.job:evaluate_as_job", "evaluate", "models"),
        JobKind("export", "curation.release.job:export_release", "export", "files"),
        JobKind("push", "curation.hub.push:push", "export", "files"),
        JobKind("backup", "curation.backups:backup", "accounts", "files"),
        JobKind("import", "curation.importing.job:import_files", "import", "files"),
        JobKind("pull", "curation.hub.pull:pull_as_job", "import", "files"),
        JobKind("mine", "curation.mining.mining:mine", "import", "models"),
        JobKind("restore", "curation.backups:restore", "accounts", "files"),
        JobKind("study", "curation.judging.job:work_on_study", "studies", "files"),
    )
}


QUEUES = tuple(dict.fromkeys(kind.slot for kind in KINDS.values()))


def queues_taken() -> tuple[str, ...]:
    """The queues whose jobs this machine runs: INF_QUEUES. Raises BadInput for an unknown one."""
    given = os.environ.get("INF_QUEUES", "").replace(",", " ").split()
    if unknown := set(given) - {*QUEUES, "none"}:
        raise BadInput(
            f"INF_QUEUES: no queue {sorted(unknown)[0]!r}",
            f"name some of {', '.join(QUEUES)}, or none",
            code="queue_unknown",
        )
    return tuple(queue for queue in QUEUES if not given or queue in given)


def kinds_of_slot(slot: str) -> tuple[str, ...]:
    """The names of the kinds that wait in this queue."""
    return tuple(kind.name for kind in KINDS.values() if kind.slot == slot)
