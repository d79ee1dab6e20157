"""Latency from an answer received to durable on disk, or to committed."""

import math
from collections import Counter

SHARES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999, "most": 1.0}


class WaitTimes:
    """A histogram of waits in milliseconds."""

    def __init__(self) -> None:
        self._by_ms: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """Count one wait."""
        self._by_ms[math.ceil(1000 * seconds)] += 1

    def percentiles(self) -> dict[str, int]:
        """The percentiles of SHARES in milliseconds, rounded up; empty without waits."""
        total = sum(self._by_ms.values())
        found: dict[str, int] = {}
        for name, share in SHARES.items() if total else ():
            left = math.ceil(share * total)
            for ms, count in sorted(self._by_ms.items()):
                left -= count
                if left <= 0:
                    found[name] = ms
                    break
        return found
