"""The remedies of errors in the words of a command and of a page (`db.errors`)."""

from collections.abc import Mapping, Sequence

from db.errors import worded

# Operations whose command has another name than `inf NOUN VERB`; the first argument comes last.
COMMANDS: Mapping[str, str] = {
    "analyses contamination": "analyze contamination",
    "analyses coverage": "analyze coverage",
    "analyses leakage": "analyze leakage",
    "datasets convert": "convert",
    "settings list": "config",
}
# The page of an operation, by its name or its noun; without one it is done in a shell.
PAGES: Mapping[str, str] = {
    "analyses contamination": "Overlaps",
    "analyses coverage": "Coverage",
    "analyses leakage": "Curate",
    "connections": "Connections",
    "datasets": "Datasets",
    "evaluations create": "Evaluations",
    "groups": "Groups",
    "jobs": "Jobs",
    "people": "Accounts",
    "recipes": "Recipes",
    "releases": "Releases",
    "reviews": "Groups",
    "runs": "Curate",
    "studies": "Studies",
    "tokens": "Tokens",
    "trainings": "Train",
    "webhooks": "Tokens",
}
# The button of an operation there, and of one with that field.
BUTTONS: Mapping[str, str] = {
    "analyses leakage": "Check again",
    "jobs resume": "Resume",
    "jobs logs": "Log",
    "runs resume no_guard": "Go on without guard",
    "runs resume retry": "Try these again",
}


def in_commands(text: str) -> str:
    """The text of an error with commands and options for the operations and fields it names."""
    return worded(text, _command, lambda name, value: _option(name, value))


def in_pages(text: str) -> str:
    """The text of an error with pages and fields of forms for the operations and fields in it."""
    return worded(text, _page, _field)


def _command(name: str, arguments: Sequence[str], fields: Mapping[str, str]) -> str:
    command = COMMANDS.get(name, name)
    if not arguments:
        command = command.partition(" --")[0]
    options = [_option(*each) for each in fields.items()]
    return f"`{' '.join(['inf', command, *arguments, *options])}`"


def _option(name: str, value: str) -> str:
    option = f"--{name.replace('_', '-')}"
    return option if value in ("", "yes") else f"{option} {value}"


def _page(name: str, arguments: Sequence[str], fields: Mapping[str, str]) -> str:
    title = PAGES.get(name) or PAGES.get(name.partition(" ")[0])
    keys = (*(f"{name} {field}" for field in fields), name)
    button = next((BUTTONS[key] for key in keys if key in BUTTONS), None)
    if title and button:
        return f"“{button}” on the {title} page"
    return f"the {title} page" if title else _command(name, arguments, fields)


def _field(name: str, value: str) -> str:
    title = f"“{name.replace('_', ' ').capitalize()}”"
    return f"{title} ({value})" if value else title
