"""The progress of commands that wait: a bar on a terminal, elsewhere a line every ten seconds."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import click
from tqdm import tqdm

LINE_SECONDS = 8.0  # a look every 2 s at most misses it: a line every ten
LOOK_SECONDS = 0.5  # between two looks whether the work hangs
BAR_SECONDS = 0.1


class Show(Protocol):
    """Shows that `done` of `total` is done, with what the work says of itself."""

    def __call__(self, done: int, total: int | None, message: str = "", /) -> None:
        """Show it, unless something was shown a moment ago."""
        ...


@contextmanager
def progress_bar(title: str, unit: str = "B", bar_format: str | None = None) -> Iterator[Show]:
    """Progress on standard error, in bytes or `unit`; yields what to call with it.

    A log, a pipe, a terminal without a width and a scheduler's file get the first line after
    LINE_SECONDS: short work none. Where the work hangs, as for half a minute where a database host
    vanished, a thread repeats the last one.
    """
    is_terminal = _is_terminal()
    with tqdm(
        desc=title,
        unit=unit,
        unit_scale=unit == "B",
        leave=False,
        disable=not is_terminal,
        file=sys.stderr,
        bar_format=bar_format,
    ) as bar:
        heard_at = time.monotonic()
        shown_at = 0.0 if is_terminal else heard_at
        line, is_over = f"{title}: {_amount(0, None, unit)}", threading.Event()

        def show(done: int, total: int | None, message: str = "", /) -> None:
            nonlocal heard_at, shown_at, line
            heard_at = now = time.monotonic()
            if not is_terminal:
                after = f", {message}" if message else ""
                line = f"{title}: {_amount(done, total, unit)}{after}"
            if now - shown_at < (BAR_SECONDS if is_terminal else LINE_SECONDS):
                return
            shown_at = now
            if not is_terminal:
                click.echo(line, err=True)
                return
            bar.total, bar.n = total, done
            bar.set_postfix_str(message, refresh=False)
            bar.refresh()

        def repeat() -> None:
            nonlocal shown_at
            while not is_over.wait(LOOK_SECONDS):
                now = time.monotonic()
                if now - shown_at >= LINE_SECONDS + LOOK_SECONDS:
                    shown_at = now
                    click.echo(f"{line}, nothing new for {now - heard_at:.0f} s", err=True)

        thread = threading.Thread(target=repeat, daemon=True)
        if not is_terminal:
            thread.start()
        try:
            yield show
        finally:
            is_over.set()
            if not is_terminal:
                thread.join(1)  # no line of it comes after the command's last one


def _is_terminal() -> bool:
    """Whether a bar can be drawn: a pseudo-terminal without a width shows none."""
    try:
        return sys.stderr.isatty() and os.get_terminal_size(sys.stderr.fileno()).columns > 0
    except (OSError, ValueError):  # a stream of another kind
        return False


def _amount(done: int, total: int | None, unit: str) -> str:
    if unit == "B":
        parts = [f"{tqdm.format_sizeof(each)}B" for each in (done, total) if each is not None]
    else:
        parts = [f"{each:,}" for each in (done, total) if each is not None]
    share = f" ({done / total:.0%})" if total else ""
    return f"{' of '.join(parts)}{unit if unit != 'B' else ''}{share}"
