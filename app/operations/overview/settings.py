"""Every setting with its value and where it came from: environment, files, the store, default.

Secrets are masked.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from app.access.identity import Actor
from app.access.permissions import require
from app.operations.overview.status import store_state
from curation.recipe.prices import load_prices
from db.errors import BadInput, InfError, NotFound
from db.home import database_url, home
from db.requests import meant
from db.rows import Listed, Row
from db.store.environment import VARIABLES
from db.store.secrets import came_from_file, is_secret, redacted

RIGHT = "server"
STREAMLIT = Path(".streamlit") / "secrets.toml"


class SettingRow(Row):
    """A setting; `value` is masked, `source` is environment, file, store or default."""

    name: str
    value: str | None
    source: str
    subject: str
    default: str = ""
    meaning: str


def list_all(
    actor: Actor, names: Sequence[str] = (), *, changed: bool = False
) -> Listed[SettingRow]:
    """All settings or those of these names; `changed`: only those that are not at their default.

    Raises NotFound for a name that is none, BadInput for a file that is no TOML.
    """
    require(actor, RIGHT)
    stored = (SettingRow(**asdict(each)) for each in effective_settings())
    rows = [*stored, *_from_files(), *_from_store(actor)]
    known = {row.name.lower(): row.name for row in rows}
    for name in names:
        if name not in known.values():
            near = known.get(meant(name, known), "")
            raise NotFound(
                f"no setting {name!r}",
                f"did you mean {near!r}? `settings list` lists all"
                if near
                else "`settings list` lists all",
                code="setting_unknown",
            )
    wanted = (row for row in rows if not names or row.name in names)
    return Listed[SettingRow].all([row for row in wanted if not changed or row.source != "default"])


def _from_files() -> Iterator[SettingRow]:
    """The user's own prices, and the OpenID providers of the folder in which the app is served."""
    prices = home() / "prices.toml"
    if prices.is_file():
        found = load_prices()  # refuses a table that is no TOML
        own = tomllib.loads(prices.read_text(encoding="utf-8"))
        about = {"source": "file", "subject": "Prices", "meaning": f"USD per million, in {prices}."}
        for model, price in found.items():
            if model in own:
                value = f"{price.input:g} in, {price.output:g} out"
                yield SettingRow(name=f"price of {model}", value=value, **about)
    if STREAMLIT.is_file():
        try:
            auth = tomllib.loads(STREAMLIT.read_text(encoding="utf-8")).get("auth", {})
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadInput(
                f"{STREAMLIT.absolute()} is no TOML: {error}",
                "correct it there",
                code="toml_invalid",
            ) from error
        about = {"source": "file", "subject": "OpenID", "meaning": f"In {STREAMLIT.absolute()}."}
        for name in auth if isinstance(auth, dict) else ():
            yield SettingRow(name=f"auth.{name}", value=MASK, **about)


def _from_store(actor: Actor) -> Iterator[SettingRow]:
    """What the store says of itself; an error in place of a value that cannot be read."""
    subject = "In the store"
    try:
        state = store_state(actor)
    except InfError as error:
        meaning = "The store cannot be read."
        yield SettingRow(
            name="store", value=str(error), source="store", subject=subject, meaning=meaning
        )
        return
    meaning = f"The schema's revision; this version writes {state.wanted}."
    if state.revision is None:
        meaning = "There is no store: `store upgrade`."
    of_store = {"source": "store", "subject": subject}
    yield SettingRow(name="revision", value=state.revision, meaning=meaning, **of_store)
    if state.has_accounts is not None:
        meaning = "`yes` once there are accounts; without any, everyone is the local admin."
        signs_in = "yes" if state.has_accounts else "no"
        yield SettingRow(name="sign-in required", value=signs_in, meaning=meaning, **of_store)


# The settings that apply now: each with its value and where it came from.
#
# Sources: `environment`; `file` ($INF_HOME/secrets.toml); `default`. Secrets are masked: the values
# of secret variables, and passwords within addresses.

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
