"""The catalogue of the annotators' pages: every text by its key, in each language.

A language is a module here, named by its code, and nothing else: `NAME`, `DIRECTION`, and `TEXTS`
with the same keys and the same placeholders as English. Keys with a dot before `refused.` are
errors of the store by their code.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from app.text.remedies import in_pages
from db.errors import InfError

DEFAULT = "en"
COOKIE = "inf_language"


@dataclass(frozen=True)
class Language:
    """A language of the interface: its name in itself, the direction of its script, its texts."""

    name: str
    direction: str
    texts: Mapping[str, str]


def found() -> dict[str, Language]:
    """The languages that have a module here, English first."""
    codes = sorted((each.name for each in iter_modules(__path__)), key=lambda code: code != DEFAULT)
    modules = {code: import_module(f"{__name__}.{code}") for code in codes}
    return {code: Language(one.NAME, one.DIRECTION, one.TEXTS) for code, one in modules.items()}


LANGUAGES: Mapping[str, Language] = found()


def text(language: str, key: str, **values: object) -> str:
    """The text of a key, its placeholders filled; raises KeyError for a key that does not exist."""
    return LANGUAGES[language].texts[key].format(**values)


def error_text(language: str, error: InfError) -> str:
    """The error in the language; in English where the catalogue has no text for it.

    Its remedy is in the words of pages.
    """
    if not is_translated(error):
        return in_pages(str(error))
    return text(language, f"refused.{error.code}", **error.values)


def is_translated(error: InfError) -> bool:
    """Whether the catalogue has a text for the error."""
    return f"refused.{error.code}" in LANGUAGES[DEFAULT].texts


def best_language(chosen: str, accepted: str) -> str:
    """The language chosen before (a cookie), else the first that the browser accepts, else English.

    `accepted` is an Accept-Language header or one locale.
    """
    for wanted in (chosen, *_by_preference(accepted)):
        code = wanted.strip().lower().replace("_", "-").split("-")[0]
        if code in LANGUAGES:
            return code
    return DEFAULT


def _by_preference(accepted: str) -> Iterable[str]:
    found = []
    for part in accepted.split(",")[:20]:
        name, _, quality = part.partition(";q=")
        try:
            weight = float(quality) if quality else 1.0
        except ValueError:
            weight = 0.0
        found.append((-weight, name))
    return [name for weight, name in sorted(found, key=lambda one: one[0]) if weight < 0]
