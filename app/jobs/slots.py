"""Slots: how many jobs run side by side on a machine, and which kinds wait for which.

Three queues, so that training for hours does not block an export: `curation`, `files` and `models`
(`app.jobs.kinds` assigns each kind). The models queue has one slot per GPU (`gpu0`, `gpu1`, …; its
job sees only that GPU) or a single slot without GPUs. Jobs of the other queues see no GPU, so that
none is shared by accident.

Jobs that join a run (`inf runs join RUN --detach`) have places of their own: behind the run's
first worker they would wait until there is nothing left to do.
"""

import os
from dataclasses import dataclass, field

from app.jobs.kinds import kinds_of_slot
from db.jobs.gpus import query_gpus

MAX_JOINED = 8  # workers that joined runs, at a time on this machine; further ones wait


@dataclass(frozen=True)
class Slot:
    """A place for one job at a time: its name, the kinds it takes, and their environment.

    `joins`: it takes jobs that join a run, and no others.
    """

    name: str
    kinds: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    joins: bool = False


def slots(gpus: list[str] | None = None) -> list[Slot]:
    """The slots of this machine."""
    found = visible_gpus() if gpus is None else gpus
    model_kinds = kinds_of_slot("models")
    no_gpu = {"CUDA_VISIBLE_DEVICES": ""} if found else {}
    models = [
        Slot(f"gpu{number}", model_kinds, {"CUDA_VISIBLE_DEVICES": gpu})
        for number, gpu in enumerate(found)
    ]
    return [
        Slot("files", kinds_of_slot("files"), no_gpu),
        Slot("curation", kinds_of_slot("curation"), no_gpu),
        *(models or [Slot("models", model_kinds)]),
        *(
            Slot(f"joined{number}", ("curate",), no_gpu, joins=True)
            for number in range(1, MAX_JOINED + 1)
        ),
    ]


def visible_gpus() -> list[str]:
    """The GPUs this process may use, by number or UUID, as in CUDA_VISIBLE_DEVICES."""
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if allowed is not None:
        return [gpu.strip() for gpu in allowed.split(",") if gpu.strip() not in ("", "-1")]
    return [str(number) for number in query_gpus("index")]
