"""Files as one zip, made while it is sent: nothing of a release is held in memory or on disk."""

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.files.storage import place_of
from curation.hub.folder import files_to_push, require_as_exported
from curation.release.plan import MANIFEST
from db.tables import Release

CHUNK_BYTES = 1 << 20
PACKED = (".parquet", ".png", ".gz")  # compressed already


def archive_of(release: Release) -> tuple[Iterator[bytes], int]:
    """The bytes of a zip of the release, and the size of its files.

    Raises NotFound or Refused, before the first byte, if the folder is not what was exported.
    """
    require_as_exported(release, lambda: None)
    files = files_to_push(place_of(release.path).fetch(manifest=MANIFEST))
    return zipped(files), sum(path.stat().st_size for path in files.values())


def zipped(files: Mapping[str, Path | str]) -> Iterator[bytes]:
    """A zip of files, or of texts, under these names, a chunk at a time.

    Of texts, its bytes follow from them alone: it has no time.
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", allowZip64=True) as out:
        for name, path in files.items():
            if isinstance(path, str):
                out.writestr(zipfile.ZipInfo(name), path, zipfile.ZIP_DEFLATED)
                continue
            entry = zipfile.ZipInfo.from_file(path, name, strict_timestamps=False)
            entry.compress_type = (
                zipfile.ZIP_STORED if path.suffix in PACKED else zipfile.ZIP_DEFLATED
            )
            with path.open("rb") as source, out.open(entry, "w", force_zip64=True) as target:
                for chunk in iter(_reader(source), b""):
                    target.write(chunk)
                    yield sink.taken()
    yield sink.taken()


def _reader(source: io.BufferedReader) -> Callable[[], bytes]:
    return lambda: source.read(CHUNK_BYTES)


class _Sink(io.RawIOBase):
    """Takes what is written until it is fetched; it cannot seek, so that a zip needs no end."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._waiting += data
        return len(memoryview(data))

    def taken(self) -> bytes:
        """What was written since the last call."""
        found = bytes(self._waiting)
        self._waiting.clear()
        return found
