"""Files that an operation or a command writes into a folder that is named."""

from collections.abc import Mapping
from pathlib import Path

from db.errors import BadInput


def write_files(
    folder: Path, files: Mapping[str, str | bytes], *, replace: bool = False
) -> list[str]:
    """Write files into a folder; unless to `replace`, none where one is there. Raises BadInput."""
    taken = [name for name in files if (folder / name).exists() and not replace]
    if taken:
        raise BadInput(f"{folder / taken[0]} exists", "name another folder", code="file_exists")
    try:
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            written = content.encode("utf-8") if isinstance(content, str) else content
            (folder / name).write_bytes(written)
    except OSError as error:
        raise BadInput(
            f"{folder} cannot be written: {error.strerror}",
            "name a folder that this account can write",
            code="file_unwritable",
        ) from error
    return list(files)
