"""Standard output of a command: a full disk and a closed pipe end it in one sentence."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from db.home import FULL


class OutputFailed(Exception):
    """What a command prints cannot be written; the message has the reason.

    Not an InfError: no command catches it, since there is nowhere to report to but standard error.
    """

    def __init__(self, error: OSError) -> None:
        if error.errno == errno.EPIPE:
            reason = "its reader closed it before everything was written"
        elif error.errno in FULL:
            reason = "no space is left on its disk"
        else:
            reason = os.strerror(error.errno) if error.errno else str(error)
        super().__init__(f"standard output is incomplete: {reason}")


class CheckedOutput:
    """A text stream whose failures to write are OutputFailed; all else is the stream's own.

    Characters that its encoding lacks are written as `\\uXXXX`: names may be in any language.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text. Returns how many characters it has; raises OutputFailed."""
        try:
            try:
                self._stream.write(text)
            except UnicodeEncodeError:
                encoding = self._stream.encoding
                self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        except OSError as error:
            raise OutputFailed(error) from error
        return len(text)

    def flush(self) -> None:
        """Write what is buffered. Raises OutputFailed."""
        try:
            self._stream.flush()
        except OSError as error:
            raise OutputFailed(error) from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def checked_output() -> Iterator[None]:
    """Check what is written to standard output within, the rest of it at the end included."""
    before: TextIO | None = sys.stdout
    if before is None:  # closed by the caller (`>&-`): click prints nothing then
        yield
        return
    sys.stdout = cast(TextIO, CheckedOutput(before))
    try:
        yield
        sys.stdout.flush()
    finally:
        sys.stdout = before


def drop_output() -> None:
    """Send the rest of standard output nowhere, or Python would fail on it once more at its end."""
    with suppress(OSError, ValueError):  # it has no descriptor, or is closed
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
