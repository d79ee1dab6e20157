"""How long answers waited, until a kill cost them no more, or until they were in the store."""

import math
from collections import Counter

SHARES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999, "most": 1.0}


class WaitTimes:
    """Counts waits by the millisecond."""

    def __init__(self) -> None:
        self._by_ms: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """One answer waited so long."""
        self._by_ms[math.ceil(1000 * seconds)] += 1

    def told(self) -> dict[str, int]:
        """The milliseconds within which so many of the answers had waited; empty for none."""
        total = sum(self._by_ms.values())
        told: dict[str, int] = {}
        for name, share in SHARES.items() if total else ():
            left = math.ceil(share * total)
            for ms, count in sorted(self._by_ms.items()):
                left -= count
                if left <= 0:
                    told[name] = ms
                    break
        return told
