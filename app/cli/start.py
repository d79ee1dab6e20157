"""Where the program `inf` begins: Ctrl-C ends it in one sentence, also while modules are loaded.

Loads only what Python has loaded already: the time before the handler is set must be short.
"""

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

INTERRUPTED = 130  # 128 and the number of SIGINT, as shells report it
MESSAGE = "Interrupted."


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process here, without a traceback and without clean-up.

    For the loading of modules: a KeyboardInterrupt in one may reach us as another error, and
    nothing has begun that would need clean-up. Other threads than the main one have no handlers.
    """
    try:
        before = signal.signal(signal.SIGINT, _end)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def without_collection() -> Iterator[None]:
    """Load modules without garbage collection, then exempt what they made from it.

    Modules make some hundred thousand objects that stay: the collector traverses them again and
    again for a fifth of the CPU time of a start, and finds nothing.
    """
    if not gc.isenabled():  # within another one
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _end(_number: int, _frame: FrameType | None) -> None:
    with suppress(OSError):  # standard error is closed
        os.write(2, f"\n{MESSAGE}\n".encode())
    os._exit(INTERRUPTED)


def main() -> None:
    """Load the command line and run it; ends the process."""
    with ending_at_once(), without_collection():
        from app.cli.main import main as run
    try:
        run()
    finally:
        # Python's own shutdown would print a traceback on a late Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
