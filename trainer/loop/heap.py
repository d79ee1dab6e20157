"""Keeps a training on a CPU from taking ever more memory.

What one batch freed seldom fits the lengths of the next one, so the heap grows with the steps: to
three times what a step needs (docs/benchmarks.md). Freed pages go back to the system when it has
grown by `GROWTH`; after every step that would cost a fifth of its time.
"""

import ctypes
import sys
from typing import Any

import psutil
from transformers import TrainerCallback

FIRST_STEPS = 4  # the memory after these is what the training needs
GROWTH = 1.25


class TrimmedHeap(TrainerCallback):
    """Trims this process's heap after steps that let it grow."""

    def __init__(self) -> None:
        self.steps, self.needed = 0, 0

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Look at the memory; for the first steps only remember the most."""
        self.steps += 1
        held = held_bytes()
        if self.steps <= FIRST_STEPS:
            self.needed = max(self.needed, held)
        elif held > GROWTH * self.needed:
            trim_heap()


def held_bytes() -> int:
    """The memory that this process holds, freed pages of its heap included."""
    return int(psutil.Process().memory_info().rss)


def trim_heap() -> None:
    """Give freed pages back; only Linux's glibc can be asked for it."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)
