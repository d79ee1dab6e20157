"""`inf connections`: model servers that runs name. Keys are never read from the arguments."""

import click

from app.cli.kit.doors import Noun
from app.cli.kit.password import secret_option
from app.cli.kit.report import Result, lines
from app.operations import connections as operations
from app.text.remedies import in_commands

key_option = secret_option(
    *("--key", "key", "Key"),
    other="",
    about="Read the key itself, from the terminal or standard input; it is stored encrypted.",
)


connections = Noun("connections")


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
            ("JSON schema", tested["supports_schema"]),
            ("reasoning", tested["supports_reasoning"]),
            ("batches", tested["supports_batch"]),
        ]
    return lines(*facts)


def _added(result: Result) -> str:
    name = result["name"]
    then = f"inf connections test {name}, then inf curate DATASET --connection {name}"
    return f"{_shown(result)}\nnext: {then}"


connections.door(
    operations.add, key_option, text=_added, about="Add a connection to a model server."
)
connections.door(
    operations.change,
    key_option,
    text=_shown,
    about="Change a connection's key, prices or reach; its address stays.",
)
connections.door(
    operations.test,
    click.option("--model", default="", help="The model to call; default: the first of the list."),
    text=_shown,
)
connections.listed(
    operations.list_all,
    columns=(
        *("id", ("connection", "name"), "kind", "url", "secret"),
        ("models", lambda row: len(row["tested"]["models"]) if row["tested"] else None),
        ("problem", lambda row: in_commands(row["problem"]) if row["problem"] else None),
    ),
    empty="no connections",
)
connections.door(operations.show, text=_shown)
connections.door(operations.remove, text=lambda result: f"removed {result['name']}")
