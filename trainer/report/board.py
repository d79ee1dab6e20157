"""TensorBoard's log of a training: the same numbers as the store's, for those who look there.

`tensorboard --logdir <INF_HOME>/tensorboard` shows all trainings, each under its job's number. The
package is optional (extra `tensorboard`).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from db.errors import BadInput

Write = Callable[[int, Mapping[str, float]], None]


def require_tensorboard() -> None:
    """Raise BadInput where the package is missing."""
    if find_spec("tensorboard") is None:
        raise BadInput(
            "tensorboard=on needs the package tensorboard: pip install 'inf-studio[tensorboard]'"
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
