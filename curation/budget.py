"""Money: a call's greatest cost is reserved before it is sent, so that a budget is never exceeded.

Checking first and charging afterwards overspends as soon as two calls are in flight. A call that
does not fit waits while others are in flight (they mostly cost less than what was set aside for
them); the budget is used up when a call does not fit and nothing is set aside any more.
"""

import asyncio
from collections import deque

ROUNDING_USD = 1e-12


class Budget:
    """What a run may still spend; None is no limit."""

    def __init__(self, limit_usd: float | None, spent_usd: float) -> None:
        self.limit_usd, self.spent_usd = limit_usd, spent_usd
        self.reserved_usd = 0.0
        self._reservations = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def reserve(self, most_usd: float) -> bool:
        """Set aside what a call may cost; False where the budget is used up."""
        while not self._fits(most_usd):
            if self._reservations == 0:
                return False
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
        self.reserved_usd += most_usd
        self._reservations += 1
        return True

    def settle(self, most_usd: float, cost_usd: float) -> None:
        """A call ended: what was set aside becomes what it cost."""
        self._reservations -= 1
        self.reserved_usd = self.reserved_usd - most_usd if self._reservations else 0.0
        self.spent_usd += cost_usd
        waiting, self._waiting = self._waiting, deque()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _fits(self, most_usd: float) -> bool:
        promised = self.spent_usd + self.reserved_usd + most_usd
        return self.limit_usd is None or promised <= self.limit_usd + ROUNDING_USD
