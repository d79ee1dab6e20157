"""Money: a call's greatest cost is reserved before it is sent, so that a budget is never exceeded.

Checking first and charging afterwards overspends as soon as two calls are in flight.
"""

ROUNDING_USD = 1e-12


class Budget:
    """What a run may still spend; None is no limit."""

    def __init__(self, limit_usd: float | None, spent_usd: float) -> None:
        self.limit_usd, self.spent_usd = limit_usd, spent_usd
        self.reserved_usd = 0.0

    def reserve(self, most_usd: float) -> bool:
        """Set aside what a call may cost; False where the budget does not hold that much."""
        promised = self.spent_usd + self.reserved_usd + most_usd
        if self.limit_usd is not None and promised > self.limit_usd + ROUNDING_USD:
            return False
        self.reserved_usd += most_usd
        return True

    def settle(self, most_usd: float, cost_usd: float) -> None:
        """A call ended: what was set aside becomes what it cost."""
        self.reserved_usd -= most_usd
        self.spent_usd += cost_usd
