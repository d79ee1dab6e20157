"""Pages of the reference that are written from the tables they document.

    python tests/reference_pages.py PAGE > docs/…

PAGE: `requests` (docs/reference/requests.md), `schemas` (docs/reference/requests.json) or
`training-settings` (docs/training-settings.md), which tests hold to the tables; the pages of
environment variables and of a recipe's settings are written when the site is built (docs/hooks.py).
"""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from typing import Any

import operation_requests

from curation.recipe.settings import (
    FORMER_FILTERS,
    HEAD,
    PARAMETERS,
    REQUIRED,
    SERVERS,
    TRANSPORT,
    Filters,
    Validation,
)
from db.requests import Request, bounds_of, choices_of, metavar_of, options_of
from db.store.environment import VARIABLES
from trainer.settings.table import GROUPS, settings_of


def request_schemas() -> str:
    """The JSON Schemas, as `docs/reference/requests.json`."""
    found = {name: model.model_json_schema() for name, model in operation_requests.models().items()}
    return json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def requests_page() -> str:
    """The page `reference/requests.md`."""
    lines = [
        "# Requests of operations\n",
        "After this page you know every key that a command, a route or a job takes.\n",
        "Generated from the models that commands, pages and jobs share: a key of a job's config "
        "and of JSON is a field here, and so is an option of the command. As JSON Schemas: "
        "[requests.json](requests.json).\n",
    ]
    for name, model in operation_requests.models().items():
        lines += [
            f"## {name}\n",
            f"{(model.__doc__ or '').strip().splitlines()[0]}\n",
            "| key | on the command line | default | may be | |",
            "|---|---|---|---|---|",
        ]
        for key, field in model.model_fields.items():
            option = _on_the_command_line(model, key)
            default = "required" if field.is_required() else _cell(field.get_default())
            may_be = ", ".join(map(str, choices_of(model, key))) or _bounds(bounds_of(model, key))
            about = str(field.description).replace("|", "\\|")
            lines.append(f"| `{key}` | {option} | {default} | {may_be} | {about} |")
        lines.append("")
    return "\n".join(lines)


def _on_the_command_line(model: type[Request], key: str) -> str:
    """Its option, the argument that it is, or nothing."""
    if options := options_of(model, key):
        return f"`{options[0]}`"
    metavar = metavar_of(model, key)
    return f"`{metavar}`" if metavar else ""


def _cell(default: Any) -> str:
    return "" if default in (None, "", (), {}) else f"`{json.dumps(default)}`"


def _bounds(bounds: Mapping[str, Any]) -> str:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    return ", ".join(f"{signs[bound]} {value}" for bound, value in bounds.items())


def environment_page() -> str:
    """The page `reference/environment.md`."""
    lines = [
        "# Environment variables\n",
        "After this page you know every variable that is read, its default and what it is for.\n",
        "This page is generated from `db/store/environment.py`. Secrets may also stand in "
        "`$INF_HOME/secrets.toml` ([Keys and tokens](../secrets.md)).\n",
    ]
    for subject, variables in VARIABLES.items():
        lines += [f"## {subject}", "| variable | default | meaning |", "|---|---|---|"]
        lines += [f"| `{one.name}` | {one.default} | {one.meaning} |" for one in variables]
        lines.append("")
    return "\n".join(lines)


def training_settings_page() -> str:
    """The page `training-settings.md`."""
    parts = [
        "# Training settings",
        "",
        "After this page you can choose the few settings that matter and look up the rest.",
        "",
        "Given to `inf train` as KEY=VALUE, in a TOML file (`--experiment`) or on the Train page. "
        "This page is",
        "generated from `trainer/settings/table.py`.",
    ]
    for group in GROUPS:
        parts += ["", f"## {group}", "| setting | label | default | allowed | meaning |"]
        parts.append("|---|---|---|---|---|")
        for each in settings_of(group):
            default = "empty" if each.default == "" else f"`{each.default}`"
            cells = (f"`{each.name}`", each.label, default, each.range_text, each.help)
            parts.append("| " + " | ".join(cells) + " |")
    return "\n".join(parts) + "\n"


def recipe_settings_page() -> str:
    """The page `reference/recipe-settings.md`."""
    parts = (
        ("Top of the file", {**HEAD, **SERVERS}),
        ("Every stage", {**REQUIRED, **PARAMETERS, **TRANSPORT}),
        ("[validation]", _rows_of_fields(fields(Validation))),
        ("[filters]", _rows_of_fields(fields(Filters))),
    )
    lines = [
        "# Recipe settings\n",
        "After this page you can set each number and name of a recipe, and know what it changes.\n",
        "A recipe is a TOML file for `inf curate --recipe FILE`; `inf recipes show NAME` shows "
        "one. A table `[stages.TASK]` holds the settings of a task. `inf curate --set PLACE=VALUE` "
        "overrides a setting of a stage or of `[validation]` and `[filters]`: "
        "`--set query_negative.temperature=0.7`, `--set filters.max_query_words=80`; without a "
        "place it is set in every stage: `--set model=NAME`. This page is generated from "
        "`curation/recipe/settings.py`.\n",
        "Files with the former names "
        + ", ".join(f"`{name}`" for name in FORMER_FILTERS)
        + " are still read.",
    ]
    for title, rows in parts:
        lines += [f"\n## {title}\n", "| setting | default | meaning |", "|---|---|---|"]
        lines += [f"| `{name}` | {default} | {text} |" for name, (default, text) in rows.items()]
    return "\n".join(lines) + "\n"


def _rows_of_fields(listed: Iterable[Field[Any]]) -> dict[str, tuple[str, str]]:
    return {
        each.name: (f"`{str(each.default).lower()}`", each.metadata["meaning"]) for each in listed
    }


PAGES = {
    "requests": requests_page,
    "schemas": request_schemas,
    "training-settings": training_settings_page,
}

if __name__ == "__main__":
    sys.stdout.write(PAGES[sys.argv[1]]())
