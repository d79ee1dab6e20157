"""The exception tree of InF Studio. The app and the command line catch `InfError` once.

InfError                a user error or an expected condition; the message has place and value
├── BadInput            a file, an argument or a form holds an unusable value
│   └── BadRows         rows of a file are bad; carries each with file, line and reason
├── NotFound            no such dataset, run, study, …
├── Refused             the rule of the study, a role or the state of the store forbids it
├── StoreBehind         the store's schema is not the one this version writes
├── ProviderError       a language-model server cannot be used (wrong key, unknown model, quota)
└── Paused              not a failure: the work stopped at its budget and can be resumed

A remedy knows no door. It names an operation as `` `runs resume 3` ``, with fields as
`` `releases create NAME out=DIR` ``, and a field of the request at hand as `` `column=` `` or
`` `column=query=MINE` ``. A command writes `inf runs resume 3` and `--column` for them, a page
its own name and the title of the field (`worded`).
"""

import copyreg
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

# What an operation may be of: the first word of its name.
NOUNS = (
    "analyses|connections|datasets|evaluations|groups|jobs|judgments|models|people|recipes|"
    "releases|reviews|runs|settings|store|studies|tokens|trainings|webhooks"
)
NAMED = re.compile(rf"`(?:((?:{NOUNS}) [a-z]+)((?: [^`]*)?)|([a-z_]+)=([^`]*))`")
FIELD = re.compile(r"([a-z_]+)=(.*)")


class InfError(Exception):
    """Base of everything InF Studio raises on purpose: what is wrong, and what to do about it.

    `code` and `values` name the message for programs, and where an annotator reads it in another
    language (`app.text.languages`). `str` is message and remedy, for logs.
    """

    def __init__(self, message: str, remedy: str = "", *, code: str, **values: object) -> None:
        self.message, self.remedy, self.code, self.values = message, remedy, code, values
        super().__init__(self._joined())

    @property
    def details(self) -> dict[str, Any]:
        """What the error of a program's answer has besides message, code and remedy."""
        return {}

    def as_reason(self, what: str) -> "InfError":
        """The error of what did not happen because of this one: `what`, its reason, its remedy."""
        return InfError(f"{what}: {self.message}", self.remedy, code=self.code)

    def _joined(self) -> str:
        if not self.remedy:
            return self.message
        stop = "\n" if "\n" in self.message else ". " if self.remedy[0].isupper() else ": "
        return f"{self.message}{stop}{self.remedy}"

    def __reduce__(self) -> tuple[Any, ...]:  # to another process, without a call of `__init__`
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


def worded(
    text: str,
    operation: Callable[[str, Sequence[str], Mapping[str, str]], str],
    field: Callable[[str, str], str],
) -> str:
    """The text of an error with the words of a door for the operations and fields it names.

    operation: of its name, its arguments and its fields; field: of its name and value.
    """

    def word(found: re.Match[str]) -> str:
        name, rest, key, value = found.groups()
        if name is None:
            return field(key, value)
        given = [FIELD.fullmatch(one) or one for one in rest.split()]
        arguments = [one for one in given if isinstance(one, str)]
        fields = {one[1]: one[2] for one in given if not isinstance(one, str)}
        return operation(name, arguments, fields)

    return NAMED.sub(word, text)


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

    def __init__(self, rows: Sequence[BadRow], remedy: str, *, code: str) -> None:
        self.rows = list(rows)
        shown = "\n".join(f"  {row}" for row in self.rows[: self.SHOWN])
        more = len(self.rows) - self.SHOWN
        rest = f"\n  … and {more} more" if more > 0 else ""
        count = f"{len(self.rows)} bad row{'s' if len(self.rows) != 1 else ''}"
        super().__init__(f"{count}:\n{shown}{rest}", remedy, code=code)

    @property
    def details(self) -> dict[str, Any]:
        """All bad rows."""
        return {"bad_rows": list(map(asdict, self.rows))}


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
