"""A training's heap is trimmed when it has grown, and not after every step."""

import subprocess
import sys

import pytest

from trainer.loop import watch

# Frees every second of many blocks: glibc keeps their pages, as the blocks between them stay.
FRAGMENTED = """
import psutil
from trainer.loop.watch import held_bytes, trim_heap
blocks = [bytearray(b"x" * 100_000) for _ in range(2_000)]
kept = blocks[::2]
before = held_bytes()
del blocks
freed = held_bytes()
trim_heap()
print(before, freed, held_bytes())
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can be asked for it")
def test_trimming_gives_freed_pages_back() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FRAGMENTED], capture_output=True, text=True, check=True
    )
    before, freed, trimmed = map(int, ran.stdout.split())
    assert freed > before - 50_000_000  # the adversary: still held
    assert trimmed < before - 80_000_000


def test_it_is_trimmed_where_it_has_grown_by_a_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    held = iter([80, 100, 90, 100, 120, 124, 126, 90, 125, 126])
    trimmed: list[int] = []
    keeper = watch.TrimmedHeap()
    monkeypatch.setattr(watch, "held_bytes", lambda: next(held))
    monkeypatch.setattr(watch, "trim_heap", lambda: trimmed.append(keeper.steps))
    for _ in range(10):
        keeper.on_step_end()
    assert trimmed == [7, 10]
