"""The best model so far on the held-out groups, and when to stop because none came after it.

Everything lives in the work folder, so that a training that is killed and goes on has forgotten
nothing: `scores.json` lists every evaluation, `best-<step>` holds the weights of the best.
"""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor


class Best:
    """Keeps the weights with the highest score; of equal scores the earliest."""

    def __init__(self, work: Path, *, patience: int) -> None:
        self.work, self.patience = work, patience
        self.file = work / "scores.json"
        self.scores: list[tuple[int, float]] = (
            [(int(step), float(value)) for step, value in json.loads(self.file.read_text())]
            if self.file.exists()
            else []
        )

    def forget_after(self, step: int) -> None:
        """Training goes on from this step: what came later will come again."""
        self.scores = [(at, value) for at, value in self.scores if at <= step]

    @property
    def step(self) -> int | None:
        """The step of the best score; None before the first."""
        return max(self.scores, key=lambda pair: (pair[1], -pair[0]))[0] if self.scores else None

    def record(
        self,
        weights: "Callable[[], Mapping[str, Tensor]]",
        step: int,
        value: float,
        *,
        writes: bool = True,
    ) -> bool:
        """Note a score; keep the weights where it is the best. Returns whether it is.

        weights: called only for the best; where weights are sharded, every process calls this with
        the same value, and only the one that `writes` keeps them.
        """
        self.forget_after(step - 1)
        self.scores.append((step, value))
        is_best = self.step == step
        state = weights() if is_best else {}
        if not writes:
            return is_best
        if is_best:
            self._keep(state, step)
        self.work.mkdir(parents=True, exist_ok=True)
        partial = self.file.with_suffix(".partial")
        partial.write_text(json.dumps(self.scores))
        partial.replace(self.file)
        return is_best

    @property
    def should_stop(self) -> bool:
        """Whether the last `patience` evaluations were no better than the best; 0: never."""
        since = sum(step > (self.step or 0) for step, _ in self.scores)
        return 0 < self.patience <= since

    @property
    def folder(self) -> Path | None:
        """The folder with the best weights; None where none are kept."""
        folder = self.work / f"best-{self.step}"
        return folder if self.step is not None and folder.is_dir() else None

    def _keep(self, state: "Mapping[str, Tensor]", step: int) -> None:
        from trainer.model.weights import write_weights

        partial = self.work / "best.partial"
        shutil.rmtree(partial, ignore_errors=True)
        write_weights(state, partial)
        place = self.work / f"best-{step}"
        shutil.rmtree(place, ignore_errors=True)
        partial.rename(place)
        # The one before stays: a training that is killed may go on from before this step.
        steps = sorted(int(old.name.removeprefix("best-")) for old in self.work.glob("best-*"))
        for old_step in steps[:-2]:
            shutil.rmtree(self.work / f"best-{old_step}")


# The saved states of a training in its work folder, and the history that they hold.
STATE = "trainer_state.json"


def newest_state(work: Path) -> tuple[int, Path] | None:
    """(step, folder) of the newest complete state; an incomplete one is skipped.

    The trainer writes `trainer_state.json` last.
    """
    found = []
    for folder in work.glob("checkpoint-*"):
        try:
            found.append((int(json.loads((folder / STATE).read_text())["global_step"]), folder))
        except (OSError, ValueError, KeyError):
            continue
    return max(found, default=None)


def ends_of(losses: list[float]) -> tuple[float, float]:
    """Mean loss of the first and of the last fifth of the steps (at most ten each)."""
    count = max(1, min(10, len(losses) // 5))
    first, last = losses[:count], losses[-count:]
    return sum(first) / len(first), sum(last) / len(last)
