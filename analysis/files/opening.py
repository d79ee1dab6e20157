"""Opening a file of rows: its bytes without compression and byte order mark, or why not.

Position is counted in the bytes on the disk, compressed or not, so that a progress bar is right.
"""

import errno
import gzip
import io
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from db.errors import BadInput

BINARY = {
    b"\x1f\x8b": "gzip: its name must end in .gz",
    b"PK\x03\x04": "a zip archive or an Excel workbook (.xlsx)",
    b"PAR1": "Parquet: its name must end in .parquet",
    b"%PDF": "PDF",
    b"SQLite format 3": "an SQLite database",
}
CHECKED_BYTES = 8192


def require_file(path: Path) -> None:
    """Raise BadInput with what stands at the path where it is no file."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise BadInput(f"{path}: a symbolic link that leads back to itself") from error
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            link = path.is_symlink()
            reason = "a symbolic link to nothing" if link else "there is no such file"
            raise BadInput(f"{path}: {reason}") from error
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    if stat.S_ISDIR(mode):
        raise BadInput(f"{path} is a folder: give a file, or a BEIR folder with --beir")
    if not stat.S_ISREG(mode):
        raise BadInput(f"{path} is neither a file nor a folder")


class Source:
    """The bytes of a text file, with `position` in the bytes on the disk.

    `plain` is the uncompressed content as a binary file.
    """

    def __init__(self, path: Path, disk: IO[bytes], plain: IO[bytes]) -> None:
        self.path, self._disk, self.plain = path, disk, plain

    def position(self) -> int:
        """How many bytes of the file on the disk were read."""
        return self._disk.tell()


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """The text file's bytes, after a UTF-8 byte order mark.

    Raises BadInput where the content is UTF-16, binary, or gzip that is damaged or cut off.
    """
    with path.open("rb") as disk:
        packed = path.suffix.lower() == ".gz"
        plain: IO[bytes] = io.BufferedReader(gzip.GzipFile(fileobj=disk)) if packed else disk
        try:
            start = plain.read(CHECKED_BYTES)
            _require_text(path, start)
            plain.seek(3 if start.startswith(b"\xef\xbb\xbf") else 0)
            yield Source(path, disk, plain)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise BadInput(f"{path.name} is damaged or cut off: {error}") from error


def _require_text(path: Path, start: bytes) -> None:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise BadInput(f"{path.name} is UTF-16, not UTF-8: save it as UTF-8")
    for magic, kind in BINARY.items():
        if start.startswith(magic):
            raise BadInput(f"{path.name} is not text: it looks like {kind}")
    control = sum(byte < 9 or 13 < byte < 32 for byte in start)
    if control * 10 > len(start) + 90:  # more than a tenth: no text; single ones are bad rows
        raise BadInput(f"{path.name} is not text: it holds binary data")
