"""Keys that were typed, encrypted before they are stored (Fernet: AES-128-CBC with HMAC-SHA256).

The key of keys is the file `$INF_HOME/connections.key`, which only its owner may read: who has the
store alone, or a copy of it, has no key of a server. Several servers of one store need that file on
each of them.
"""

import os
import tempfile
from pathlib import Path

from db.errors import BadInput, InfError
from db.home import home

FILE = "connections.key"


def seal(text: str) -> str:
    """The text encrypted. Raises BadInput as `_key_of_keys`."""
    from cryptography.fernet import Fernet  # takes a tenth of a second to import

    return Fernet(_key_of_keys(create=True)).encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """What was encrypted. Raises InfError where that was done with another file."""
    from cryptography.fernet import Fernet, InvalidToken

    try:
        return Fernet(_key_of_keys(create=False)).decrypt(sealed).decode()
    except (InvalidToken, FileNotFoundError) as error:
        raise InfError(
            f"what was sealed cannot be opened on this machine: it was sealed with another file "
            f"{home() / FILE}",
            "copy that file, or give the key again",
            code="connection_key_sealed_elsewhere",
        ) from error


def _key_of_keys(*, create: bool) -> bytes:
    """The content of the key file, which is made where there is none and `create` is set.

    Raises FileNotFoundError, and BadInput for a file that others can read or that is no key.
    """
    from cryptography.fernet import Fernet

    path = home() / FILE
    if create and not path.exists():
        _create(path, Fernet.generate_key())
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise BadInput(
            f"{path} can be read by others (mode {mode:o})",
            f"chmod 600 {path}",
            code="secrets_file_exposed",
        )
    content = path.read_bytes()
    try:
        Fernet(content)
    except ValueError as error:
        raise BadInput(
            f"{path} is damaged",
            "put it back from your own copy, or delete it and give the keys of connections again",
            code="file_unreadable",
        ) from error
    return content


def _create(path: Path, content: bytes) -> None:
    """Write the file whole or not at all; of two processes that do so at once the first stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    opened, name = tempfile.mkstemp(dir=path.parent)  # readable by its owner only
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)
    except FileExistsError:
        return
    finally:
        Path(name).unlink()
