"""How long work waits for a model server or a store that is away: the options of every request."""

from typing import Any

from db.patience import PATIENCE_MINUTES, patience_of
from db.requests import Request, option


class Patient(Request):
    """How long work waits for a model server or store that is away."""

    patience_minutes: float = option(
        PATIENCE_MINUTES,
        "Wait as long for a model server or store that went away; then the work stops.",
        names=("--patience",),
        metavar="MINUTES",
        ge=0,
    )
    fail_fast: bool = option(
        False, "Wait for neither: a server that is away stops the work.", names=("--fail-fast",)
    )

    @property
    def patience_seconds(self) -> float:
        """How long it waits."""
        return patience_of(self.patience())

    def patience(self) -> dict[str, Any]:
        """Its fields, for the work that follows from it."""
        return {"patience_minutes": self.patience_minutes, "fail_fast": self.fail_fast}
