"""Opening a file of rows: its bytes as UTF-8, without compression and byte order mark, or why not.

Compression is in the name (`.gz`, `.bz2`, `.xz`), the encoding is found by the bytes: UTF-8, UTF-16
(with or without a byte order mark), and Windows-1252 (cp1252), which spreadsheets of Western Europe
write. Whatever is not UTF-8 is announced (`encoding_notice`), never read silently.

Position is counted in the bytes on the disk, compressed or not, so that a progress bar is right.
"""

import bz2
import codecs
import errno
import gzip
import hashlib
import io
import lzma
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from db.errors import BadInput

UNPACKED: Mapping[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda disk: gzip.GzipFile(fileobj=disk),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
BINARY = {
    b"\x1f\x8b": "gzip: its name must end in .gz",
    b"BZh": "bzip2: its name must end in .bz2",
    b"\xfd7zXZ\x00": "xz: its name must end in .xz",
    b"PK\x03\x04": "a zip archive or an Excel workbook (.xlsx)",
    b"PAR1": "Parquet: its name must end in .parquet",
    b"%PDF": "PDF",
    b"SQLite format 3": "an SQLite database",
}
CHECKED_BYTES = 8192
CHUNK_BYTES = 1 << 16  # also how far `peek` sees
DECIDED_BYTES = 4 << 20  # without a letter beyond ASCII in them, a file is read as UTF-8
UTF8, CP1252 = "utf-8", "cp1252"
NAMES = {"utf-16-le": "UTF-16", "utf-16-be": "UTF-16", CP1252: "Windows-1252 (cp1252)"}
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")
_OF_UTF8 = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_NOT_IN_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
LETTERS_IN_A_ROW = 2  # longer runs beyond ASCII are another alphabet's, or two bytes a character


def file_sha256(path: Path) -> str:
    """The sha256 of a file's bytes, as they are on the disk."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_file(path: Path) -> None:
    """Raise BadInput with what stands at the path where it is no file."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        code = getattr(error, "errno", None)
        if code == errno.ELOOP:
            raise BadInput(
                f"{path}: a symbolic link that leads back to itself",
                "name what it should lead to",
                code="symbolic_link_loop",
            ) from error
        if code in (errno.ENOENT, errno.ENOTDIR):
            link = path.is_symlink()
            reason = "a symbolic link to nothing" if link else "there is no such file"
            raise BadInput(
                f"{path}: {reason}",
                "Check the path: it is one of the machine that does the work",
                code="file_missing",
            ) from error
        raise BadInput(
            f"{path} cannot be read: {getattr(error, 'strerror', error)}",
            "Let the account that runs this read it",
            code="file_unreadable",
        ) from error
    if stat.S_ISDIR(mode):
        raise BadInput(f"{path} is a folder", "give a file", code="path_is_folder")
    if not stat.S_ISREG(mode):
        raise BadInput(
            f"{path} is neither a file nor a folder",
            "name a file or a folder",
            code="path_not_file",
        )


class Source:
    """The bytes of a text file as UTF-8, with `position` in the bytes on the disk."""

    def __init__(self, path: Path, disk: IO[bytes], plain: io.BufferedReader) -> None:
        self.path, self._disk, self.plain = path, disk, plain

    def position(self) -> int:
        """How many bytes of the file on the disk were read."""
        return self._disk.tell()


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """The text file's bytes as UTF-8, after a byte order mark.

    Raises BadInput where the content is binary, or compressed and damaged or cut off.
    """
    with path.open("rb", buffering=CHUNK_BYTES) as disk, _translated(path):
        unpack = UNPACKED.get(path.suffix.lower())
        content = disk if unpack is None else io.BufferedReader(unpack(disk), CHUNK_BYTES)
        encoding, start = _encoding(path, content)
        content.seek(start)
        if encoding != UTF8:
            content = io.BufferedReader(_AsUtf8(content, encoding), CHUNK_BYTES)
        yield Source(path, disk, cast("io.BufferedReader", content))


def encoding_notice(path: Path) -> str | None:
    """What to report of a text file that is not UTF-8; None for one that is, or is no text."""
    try:
        with path.open("rb") as disk, _translated(path):
            unpack = UNPACKED.get(path.suffix.lower())
            content = disk if unpack is None else io.BufferedReader(unpack(disk), CHUNK_BYTES)
            encoding, _ = _encoding(path, content)
    except (BadInput, OSError):
        return None  # whoever reads it reports why it cannot be read
    if encoding == UTF8:
        return None
    return (
        f"{path.name} is not UTF-8 and is read as {NAMES[encoding]}: compare a few texts, and save "
        "it as UTF-8 if they are wrong"
    )


class _AsUtf8(io.RawIOBase):
    """The content of a file in another encoding, as UTF-8.

    What cannot be decoded becomes bytes that are no UTF-8, so that the row where it stands is bad.
    """

    def __init__(self, content: IO[bytes], encoding: str) -> None:
        self._content, self._left = content, b""
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
        if encoding == CP1252:
            self._decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            raw = self._content.read(CHUNK_BYTES)
            try:
                text = self._decoder.decode(raw, final=not raw)
            except UnicodeDecodeError:  # cut off within a character, or half a surrogate pair
                self._decoder.reset()
                self._left = b"\xff"
                break
            self._left = text.encode(UTF8, "surrogatepass")
            if not raw:
                break
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Translate what damaged compression raises."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise BadInput(
            f"{path.name} is damaged or cut off: {error}",
            "Download or copy it again",
            code="file_damaged",
        ) from error
    except OSError as error:
        if error.errno is None:  # bz2 has no error of its own
            raise BadInput(
                f"{path.name} is damaged or cut off: {error}",
                "Download or copy it again",
                code="file_damaged",
            ) from error
        raise


def _encoding(path: Path, content: IO[bytes]) -> tuple[str, int]:
    """The encoding, and where the text begins. Raises BadInput for what is no text."""
    start = content.read(CHECKED_BYTES)
    if start.startswith(codecs.BOM_UTF8):
        _require_text(path, start)
        return UTF8, 3
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise BadInput(f"{path.name} is UTF-32", "save it as UTF-8", code="text_not_utf8")
    if start.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le", 2
    if start.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be", 2
    for parity, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        # text without a byte order mark: every second byte of most Western text is NUL, no other is
        half, other = start[parity::2], start[1 - parity :: 2]
        if len(start) > 3 and half.count(0) * 2 > len(half) and not other.count(0):
            return name, 0
    _require_text(path, start)
    is_json = any(suffix.lower().startswith(".json") for suffix in path.suffixes)
    return _encoding_of_bytes(content, start, 2 if is_json else 1), 0


def _encoding_of_bytes(content: IO[bytes], start: bytes, least: int) -> str:
    """UTF-8 or cp1252, by the bytes beyond ASCII.

    The first of them within DECIDED_BYTES decides for UTF-8 where it is UTF-8, or where there is
    none: a wrong byte later is a bad row of its own, which names the byte. Else the whole file is
    read: cp1252 is what has more sequences that are no UTF-8 than that are, no byte that cp1252
    lacks, and letters beyond ASCII rarely more than two in a row. `least` is how many wrong
    sequences make another encoding: JSON is UTF-8 by its standard, so that one wrong byte there is
    a bad row.
    """
    chunk, read = start, len(start)
    while chunk.isascii():
        chunk = content.read(CHUNK_BYTES)
        read += len(chunk)
        if not chunk or read > DECIDED_BYTES:
            return UTF8
    chunk += content.read(3)  # a character may be cut in two
    first = _BEYOND_ASCII.search(chunk)
    if first is None or _OF_UTF8.match(chunk, first.start()):
        return UTF8
    good = wrong = long_runs = 0
    while chunk:
        if _NOT_IN_CP1252.search(_OF_UTF8.sub(b"", chunk)):
            return UTF8
        for run in _BEYOND_ASCII.findall(chunk):
            is_utf8 = not _OF_UTF8.sub(b"", run)
            good, wrong = good + is_utf8, wrong + (not is_utf8)
            long_runs += len(run) > LETTERS_IN_A_ROW and not is_utf8
        chunk = content.read(CHUNK_BYTES)
    is_cp1252 = wrong >= least and wrong > good and long_runs * 2 < wrong
    return CP1252 if is_cp1252 else UTF8


def _require_text(path: Path, start: bytes) -> None:
    for magic, kind in BINARY.items():
        if start.startswith(magic):
            raise BadInput(
                f"{path.name} is not text: it looks like {kind}",
                "Convert it to JSONL, CSV or Parquet",
                code="file_not_text",
            )
    control = sum(byte < 9 or 13 < byte < 32 for byte in start)
    if control * 10 > len(start) + 90:  # more than a tenth: no text; single ones are bad rows
        raise BadInput(
            f"{path.name} is not text: it holds binary data",
            "Convert it to JSONL, CSV or Parquet",
            code="file_not_text",
        )
