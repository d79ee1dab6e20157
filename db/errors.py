"""The exception tree of InF Studio. The app and the command line catch `InfError` once.

InfError                a user error or an expected condition; the message has place, value, remedy
├── BadInput            a file, an argument or a form holds an unusable value
│   └── BadRows         rows of a file are bad; carries each with file, line and reason
├── NotFound            no such dataset, run, study, …
├── Refused             the rule of the study, a role or the state of the store forbids it
├── StoreBehind         the store's schema is not the one this version writes
├── ProviderError       a language-model server cannot be used (wrong key, unknown model, quota)
└── Paused              not a failure: the work stopped at its budget and can be resumed
"""

from collections.abc import Sequence
from dataclasses import dataclass


class InfError(Exception):
    """Base of everything InF Studio raises on purpose.

    `code` and `values` name the message where an annotator reads it in another language
    (`app.text.languages`).
    """

    def __init__(self, message: str = "", *, code: str = "", **values: object) -> None:
        super().__init__(message)
        self.code, self.values = code, values


class BadInput(InfError):
    """A file, an argument or a form holds an unusable value."""


@dataclass(frozen=True)
class BadRow:
    """One row that cannot be imported: where it is and why."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.reason}"


class BadRows(BadInput):
    """Unusable rows of an import; nothing was imported."""

    SHOWN = 10

    def __init__(self, rows: Sequence[BadRow], remedy: str) -> None:
        self.rows = list(rows)
        shown = "\n".join(f"  {row}" for row in self.rows[: self.SHOWN])
        more = len(self.rows) - self.SHOWN
        rest = f"\n  … and {more} more" if more > 0 else ""
        count = f"{len(self.rows)} bad row{'s' if len(self.rows) != 1 else ''}"
        super().__init__(f"{count}:\n{shown}{rest}\n{remedy}")


class NotFound(InfError):
    """The named object is not in the store."""


class Refused(InfError):
    """The rule of the study, a role or the state of the store forbids it."""


class StoreBehind(InfError):
    """The store's schema is not the one this version of InF Studio writes."""


class ProviderError(InfError):
    """A language-model server cannot be used; nothing more is sent to it."""


class Paused(InfError):
    """The work stopped at its budget; its results are stored and it can be resumed."""
