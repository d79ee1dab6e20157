"""The progress bar of commands that work in this process."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def progress_bar(title: str, unit: str = "B") -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal, in bytes or `unit`; yields the callback for (done, total)."""
    with tqdm(
        desc=title,
        unit=unit,
        unit_scale=unit == "B",
        leave=False,
        disable=not sys.stderr.isatty(),
        file=sys.stderr,
    ) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield show
