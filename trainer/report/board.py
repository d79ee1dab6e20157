"""Curves outside the store: TensorBoard's log, Weights & Biases, trackio; the same numbers.

`tensorboard --logdir <INF_HOME>/tensorboard` shows all trainings, each under its job's number. The
package is optional (extra `tensorboard`).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from db.errors import BadInput

PROJECT = "inf-studio"
OWN = ("store", "tensorboard")  # where `report_to` sends the curves without a tracker's calls

Write = Callable[[int, Mapping[str, float]], None]


def require_tensorboard() -> None:
    """Raise BadInput where the package is missing."""
    if find_spec("tensorboard") is None:
        raise BadInput(
            "tensorboard=on needs the package tensorboard",
            "pip install 'inf-studio[tensorboard]'",
            code="package_missing",
        )


@contextmanager
def tensorboard_log(folder: Path | None) -> Iterator[Write]:
    """A function that writes the numbers of a step; without a folder it writes nothing."""
    if folder is None:
        yield lambda step, values: None
        return
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder))

    def write(step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(name.replace("@", "_at_"), value, step)
        writer.flush()

    try:
        yield write
    finally:
        writer.close()


def require_tracker(name: str) -> None:
    """Raise BadInput where the tracker's package is missing."""
    if name not in OWN and find_spec(name) is None:
        raise BadInput(
            f"report_to={name} needs the package {name}",
            f"pip install {name}",
            code="package_missing",
        )


@contextmanager
def tracker_log(name: str, run: str, settings: Mapping[str, Any]) -> Iterator[Write]:
    """A function that sends the numbers of a step; those that need no tracker send nothing here.

    wandb and trackio have the same three calls. Keys and servers are their own settings
    (WANDB_API_KEY, WANDB_MODE=offline, …). A training that goes on after a kill continues its run.
    """
    if name in OWN:
        yield lambda step, values: None
        return
    tracker: Any = import_module(name)
    again = {"id": run} if name == "wandb" else {}
    tracker.init(project=PROJECT, name=run, config=dict(settings), resume="allow", **again)
    try:
        yield lambda step, values: tracker.log(dict(values), step=step)
    finally:
        tracker.finish()
