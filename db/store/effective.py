"""The settings that apply now: each with its value and where it came from.

Sources: `environment`; `file` ($INF_HOME/secrets.toml); `default`. Secrets are masked: the values
of secret variables, and passwords within addresses.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from db.errors import BadInput
from db.home import home
from db.store.environment import VARIABLES
from db.store.secrets import came_from_file, is_secret, redacted
from db.store.settings import database_url

# up to the last @: a password may hold one, and several addresses may share a value
_PASSWORD = re.compile(r"(://[^:/@\s]*:)\S*@")
_PARAMETER = re.compile(r"([?&][^=&\s]*(?:password|token|key|secret)[^=&\s]*=)[^&\s]*", re.I)
MASK = "***"


@dataclass(frozen=True)
class Effective:
    """One setting as it applies; `value` is masked, and None where there is none."""

    name: str
    value: str | None
    source: str
    subject: str
    default: str
    meaning: str


def effective_settings() -> Iterator[Effective]:
    """Every variable of `db.store.environment`, in its order."""
    for subject, variables in VARIABLES.items():
        for each in variables:
            value = os.environ.get(each.name)
            source = "default"
            # an empty one counts as unset, as `home` and `database_url` take it
            if value:
                source = "file" if came_from_file(each.name) else "environment"
            yield Effective(
                name=each.name,
                value=masked(each.name, value) if value else _default(each.name, each.default),
                source=source,
                subject=subject,
                default=each.default,
                meaning=each.meaning,
            )


def masked(name: str, value: str) -> str:
    """The value as it may be shown."""
    if is_secret(name):
        return f"{MASK} ({len(value)} characters)"
    value = _PASSWORD.sub(rf"\1{MASK}@", value)
    return redacted(_PARAMETER.sub(rf"\1{MASK}", value))


def _default(name: str, described: str) -> str | None:
    """What applies without the variable: the folders of this place, else the table's text."""
    if name == "INF_HOME":
        return str(home())
    if name == "INF_DATABASE_URL":
        try:
            return masked(name, database_url())
        except BadInput as error:
            return str(error)
    plain = re.fullmatch(r"`([^`]*)`", described)
    return plain.group(1) if plain else None
