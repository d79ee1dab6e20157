"""Python's collector of cyclic garbage, tuned for a worker: many short-lived calls, a large still
heap.

The SDK and SQLAlchemy bring some 150,000 objects that stay, and every call leaves a few hundred
that go. Left alone, the collector walks all of the former again and again to find the latter: a
quarter of a worker's processor time at 256 calls in flight, measured with `gc.callbacks`.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (5_000, 10, 20)


@contextmanager
def calm_collector() -> Iterator[None]:
    """Leave what is loaded now out of every collection, and collect the rest less often."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
