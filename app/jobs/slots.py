"""Slots: how many jobs run side by side on a machine, and which kind waits for which.

Three queues, so that a training of hours blocks no export: `curation` (curate, judge), `files`
(export, push, backup, import), and one for models, of which there is one per GPU (`gpu0`, `gpu1`,
…; the job sees that GPU alone) or, without a GPU, one in all. Jobs of the other queues see no GPU:
nobody shares one by accident.
"""

import os
from dataclasses import dataclass, field

from app.jobs.kinds import kinds_of_slot
from db.jobs.gpus import ask_gpus


@dataclass(frozen=True)
class Slot:
    """A place in which one job runs at a time: its name, the kinds it takes, what they see."""

    name: str
    kinds: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


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
    ]


def visible_gpus() -> list[str]:
    """The GPUs this process may use, by number or UUID, as CUDA_VISIBLE_DEVICES would say them."""
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if allowed is not None:
        return [gpu.strip() for gpu in allowed.split(",") if gpu.strip() not in ("", "-1")]
    return [str(number) for number in ask_gpus("index")]
