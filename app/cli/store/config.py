"""`inf config`: every setting, its value and where it came from; secrets are masked."""

import difflib
import tomllib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from app.access.identity import owner
from app.cli.kit.report import Result, me, reporting
from app.cli.kit.table import table
from app.operations.overview.status import store_state
from app.text.remedies import in_commands
from curation.recipe.prices import load_prices
from db.errors import BadInput, InfError
from db.store.effective import MASK, Effective, effective_settings
from db.store.settings import home

STREAMLIT = Path(".streamlit") / "secrets.toml"


def _row(name: str, value: object, source: str, subject: str, meaning: str) -> Result:
    shown = None if value is None else str(value)
    return asdict(Effective(name, shown, source, subject, "", meaning))


def _from_files() -> Iterator[Result]:
    """The user's own prices, and the OpenID providers of the folder in which `inf serve` starts."""
    prices = home() / "prices.toml"
    if prices.is_file():
        found = load_prices()  # refuses a table that is no TOML
        own = tomllib.loads(prices.read_text(encoding="utf-8"))
        for model, price in found.items():
            if model in own:
                value = f"{price.input:g} in, {price.output:g} out"
                yield _row(
                    f"price of {model}", value, "file", "Prices", f"USD per million, in {prices}."
                )
    if STREAMLIT.is_file():
        try:
            auth = tomllib.loads(STREAMLIT.read_text(encoding="utf-8")).get("auth", {})
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadInput(
                f"{STREAMLIT.absolute()} is no TOML: {error}",
                "correct it there",
                code="toml_invalid",
            ) from error
        for name in auth if isinstance(auth, dict) else ():
            yield _row(f"auth.{name}", MASK, "file", "OpenID", f"In {STREAMLIT.absolute()}.")


def _from_store() -> Iterator[Result]:
    """What the store says of itself; an error in place of a value that cannot be read."""
    subject = "In the store"
    try:
        state = store_state(owner(me()))
        meaning = f"The schema's revision; this version writes {state.wanted}."
        if state.revision is None:
            meaning = "There is no store: `inf store upgrade`."
        yield _row("revision", state.revision, "store", subject, meaning)
        if state.has_accounts is not None:
            meaning = "`yes` once there are accounts; without any, everyone is the local admin."
            signs_in = "yes" if state.has_accounts else "no"
            yield _row("sign-in required", signs_in, "store", subject, meaning)
    except InfError as error:
        shown = in_commands(str(error))
        yield _row("store", shown, "store", subject, "The store cannot be read.")


def _shown(result: Result) -> str:
    parts: list[str] = []
    by_subject: dict[str, list[Result]] = {}
    for row in result["settings"]:
        by_subject.setdefault(row["subject"], []).append(row)
    for subject, rows in by_subject.items():
        cells = [(row["name"], row["source"], row["value"] or row["default"]) for row in rows]
        listed = table(("setting", "from", "value"), cells, empty="", max_columns=400)
        parts += [subject, *(f"  {line}" for line in listed.splitlines()), ""]
    if len(result["settings"]) == 1:
        parts.append(result["settings"][0]["meaning"])
    return "\n".join(parts).rstrip()


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]…")
@click.option("--changed", is_flag=True, help="Only settings that are not at their default.")
@reporting(_shown)
def config(names: tuple[str, ...], changed: bool) -> Result:
    """Show every setting, its value and where it came from; secrets are masked.

    From: the environment, a file (secrets.toml, prices.toml), the store, or the default.
    """
    rows = [asdict(each) for each in effective_settings()]
    rows += [*_from_files(), *_from_store()]
    known = [row["name"] for row in rows]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name.upper(), known, n=1)
            question = f"did you mean {near[0]!r}? " if near else ""
            raise click.UsageError(f"no setting {name!r}: {question}`inf config` lists all")
    if names:
        rows = [row for row in rows if row["name"] in names]
    if changed:
        rows = [row for row in rows if row["source"] != "default"]
    return {"settings": rows}
