"""`inf connections`: model servers that runs name. Keys are never read from the arguments."""

from typing import Any

import click

from app.cli.kit.listing import listing
from app.cli.kit.options import request_options
from app.cli.kit.password import ask_secret
from app.cli.kit.report import Result, command_actor, lines, reporting
from app.operations import connections as operations
from app.operations.connections import ConnectionAdd, ConnectionChange, ConnectionRow
from app.text.remedies import in_commands
from db.rows import Listed

key_option = click.option(
    "--key",
    "takes_key",
    is_flag=True,
    help="Read the key itself, from the terminal or standard input; it is stored encrypted.",
)


@click.group()
def connections() -> None:
    """Add, test, list, show, change and remove connections to model servers."""


def _key(is_given: bool) -> str:
    return ask_secret("Key", confirm=False).strip() if is_given else ""


def _said(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


def _shown(result: Result) -> str:
    facts: list[tuple[str, object]] = [
        ("connection", result["name"]),
        ("kind", result["kind"]),
        ("url", result["url"] or "–"),
        ("secret", result["secret"] or "none"),
        ("private network", "allowed" if result["private"] else "refused"),
    ]
    facts += [
        ("price", f"{model}: {price['input']:g} in, {price['output']:g} out, USD per 1M tokens")
        for model, price in result["prices"].items()
    ]
    if result["problem"]:
        facts.append(("problem", in_commands(result["problem"])))
    if tested := result["tested"]:
        models = tested["models"]
        shown = ", ".join(models[:12]) + (f", … ({len(models):,})" if len(models) > 12 else "")
        name = tested["model"]
        if tested["answered_as"] != name:
            name += f" (answers as {tested['answered_as']})"
        facts += [
            ("tested", f"{tested['at']}"),
            ("models", shown or "not listed"),
            ("one call", f"{tested['seconds']:.2f} s by {name}"),
            ("JSON schema", _said(tested["supports_schema"])),
            ("reasoning", _said(tested["supports_reasoning"])),
            ("batches", _said(tested["supports_batch"])),
        ]
    return lines(*facts)


def _added(result: Result) -> str:
    name = result["name"]
    then = f"inf connections test {name}, then inf curate DATASET --connection {name}"
    return f"{_shown(result)}\nnext: {then}"


@connections.command()
@click.argument("name")
@request_options(ConnectionAdd)
@key_option
@reporting(_added)
def add(request: ConnectionAdd, takes_key: bool) -> ConnectionRow:
    """Add a connection to a model server."""
    return operations.add(command_actor(), request, _key(takes_key))


@connections.command()
@click.argument("name")
@request_options(ConnectionChange)
@click.option("--private/--public", "private", default=None, help="May it be in a private network?")
@key_option
@reporting(_shown)
def change(request: ConnectionChange, takes_key: bool) -> ConnectionRow:
    """Change a connection's key, prices or reach; its address stays."""
    return operations.change(command_actor(), request, _key(takes_key))


@connections.command()
@click.argument("name")
@click.option("--model", default="", help="The model to call; default: the first of the list.")
@reporting(_shown)
def test(name: str, model: str) -> ConnectionRow:
    """List a server's models, time one call, find what it supports (three small calls)."""
    return operations.test(command_actor(), name, model)


@connections.command("list")
@listing(
    *("id", ("connection", "name"), "kind", "url", "secret"),
    ("models", lambda row: len(row["tested"]["models"]) if row["tested"] else None),
    ("problem", lambda row: in_commands(row["problem"]) if row["problem"] else None),
    empty="no connections",
)
def list_(**page: Any) -> Listed[ConnectionRow]:
    """List connections; the environment variables are the one called environment."""
    return operations.list_all(command_actor()).part(**page)


@connections.command()
@click.argument("name")
@reporting(_shown)
def show(name: str) -> ConnectionRow:
    """Show one connection."""
    return operations.show(command_actor(), name)


@connections.command()
@click.argument("name")
@reporting(lambda result: f"removed {result['name']}")
def remove(name: str) -> ConnectionRow:
    """Remove a connection that no unfinished run uses."""
    return operations.remove(command_actor(), name)
