"""Secrets: from the environment or from `$INF_HOME/secrets.toml`, never in a row or a log.

The file holds `NAME = "value"` lines, for instance `OPENAI_API_KEY = "…"`; the environment takes
precedence. It is refused if anyone but its owner may read it. A secret is any value of the file,
and any variable of the environment whose name ends like one (`…_KEY`, `…_TOKEN`, …). Note: values
of fewer than eight characters are not redacted from texts: they would match everywhere.
"""

import io
import os
import re
from typing import Any, BinaryIO

from db.errors import BadInput, Refused
from db.home import FULL, home

FILE = "secrets.toml"
ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
MIN_SECRET_CHARACTERS = 8
_of_the_file: set[str] = set()
_put_here: dict[str, str] = {}  # by `load_secrets` into the environment of this process
_used_here: dict[str, str] = {}  # value: what it is, of keys that were looked up or opened


def load_secrets() -> None:
    """Put the file's secrets into the environment unless set there.

    Raises BadInput for a file that others may read, or that is not a list of names and texts.
    """
    for name, value in _read().items():
        if name not in os.environ:
            os.environ[name] = _put_here[name] = value


def came_from_file(name: str) -> bool:
    """Whether the value of a variable is the file's: the environment had none."""
    return name in _put_here and os.environ.get(name) == _put_here[name]


def inherited() -> dict[str, str]:
    """The environment for a child process, without what came from the file.

    The child reads the file itself, as it is by then: an old value would take precedence over it.
    """
    return {name: value for name, value in os.environ.items() if not came_from_file(name)}


def secret_now(name: str) -> str | None:
    """The value of a secret as it is now: the environment's, else the file's, which is read anew.

    None where neither has it. Raises BadInput as `load_secrets`.
    """
    value = None if came_from_file(name) else os.environ.get(name)
    value = value or _read().get(name)
    return redact_from_now_on(value, name) if value else None


def redact_from_now_on(value: str, name: str) -> str:
    """The value, which texts of this process show as `[name]` from now on."""
    if len(value) >= MIN_SECRET_CHARACTERS:
        _used_here[value] = name
    return value


def is_secret(name: str) -> bool:
    """Whether a variable holds a secret: by its name, or because the file has it."""
    return name.endswith(ENDINGS) or name in _of_the_file


def is_secret_now(name: str) -> bool:
    """As `is_secret`, with what was written to the file since this process began."""
    return is_secret(name) or name in _read()


def _read() -> dict[str, str]:
    """The file's secrets, whose names are known from now on; none without a file."""
    import tomllib  # here: every command starts with this module, and few have a file

    path = home() / FILE
    if not path.exists():
        return {}
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise BadInput(
            f"{path} can be read by others (mode {mode:o})",
            f"chmod 600 {path}",
            code="secrets_file_exposed",
        )
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        place = error if isinstance(error, tomllib.TOMLDecodeError) else type(error).__name__
        raise BadInput(
            f"{path} cannot be read ({place})",
            'write lines like NAME = "…"',
            code="file_unreadable",
        ) from None
    for name, value in found.items():
        if not isinstance(value, str) or not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
            raise BadInput(
                f'{path}: {name} is not a line like NAME = "…", in capitals with a text',
                "correct that line",
                code="secrets_line_invalid",
            )
    _of_the_file.update(found)
    return found


def known_secrets() -> dict[str, str]:
    """Name by value of every secret of this process, the longest value first."""
    found = {
        value: name
        for name, value in os.environ.items()
        if len(value) >= MIN_SECRET_CHARACTERS and is_secret(name)
    } | _used_here
    return dict(sorted(found.items(), key=lambda pair: -len(pair[0])))


def redacted(text: str) -> str:
    """The text with every secret's value replaced by its name, as in `[OPENAI_API_KEY]`."""
    for value, name in known_secrets().items():
        text = text.replace(value, f"[{name}]")
    return text


def refuse_secrets(config: dict[str, Any]) -> None:
    """Raise Refused if a config holds a secret: it would be stored and shown."""
    import json  # here, as above

    text = json.dumps(config, ensure_ascii=False, default=str)
    for value, name in known_secrets().items():
        if value in text or json.dumps(value, ensure_ascii=False)[1:-1] in text:
            raise Refused(
                f"the config holds the secret {name}",
                f"omit it, jobs read it from the environment or from {FILE}",
                code="config_holds_secret",
            )


class RedactedStream(io.TextIOWrapper):
    """A text stream that redacts secrets from what is written to it, without buffering.

    When the disk of a log is full the work continues: what cannot be written is dropped, and the
    log states how much is missing once there is space again.
    """

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(stream, encoding="utf-8", errors="replace", write_through=True)
        self._left_out = 0

    def write(self, text: str) -> int:
        """Returns the length of the text before redaction."""
        text_out = redacted(text)
        if self._left_out:
            text_out = f"[{self._left_out} characters are missing: the disk was full]\n{text_out}"
        try:
            super().write(text_out)
        except OSError as error:
            if error.errno not in FULL:
                raise
            self._left_out += len(text)
        else:
            self._left_out = 0
        return len(text)
