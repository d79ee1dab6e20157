"""MkDocs hooks: pages that are generated when the site is built, and so are never out of date.

`reference/cli.md` from the commands, `reference/environment.md` from the table of variables,
`reference/rights.md` from the permissions, `reference/recipe-settings.md` from their table,
`changelog.md` and the guide in `contributing.md` from the files at the top of the repository.
"""

import sys
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import rights_table  # noqa: E402
from reference_pages import environment_page, recipe_settings_page  # noqa: E402

from app.cli.main import inf  # noqa: E402

GUIDE = "<!-- CONTRIBUTING.md -->"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")
    for path, content in {
        "reference/cli.md": commands_page(),
        "reference/environment.md": environment_page(),
        "reference/rights.md": rights_table.as_markdown(),
        "reference/recipe-settings.md": recipe_settings_page(),
        "changelog.md": changes,
    }.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put CONTRIBUTING.md where a page asks for it."""
    if GUIDE not in markdown:
        return markdown
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").replace("](docs/", "](")
    return markdown.replace(GUIDE, guide.partition("\n")[2])


def commands_page() -> str:
    """Every command with its help as `inf COMMAND --help` prints it."""
    lines = [
        "# Commands\n",
        "After this page you know every command: what `inf COMMAND --help` prints.\n",
    ]
    for words, command in commands_of(inf, ("inf",)):
        context = click.Context(command, info_name=" ".join(words), terminal_width=100)
        lines += [f"{'#' * min(len(words) + 1, 4)} `{' '.join(words)}`", "```text"]
        lines += [command.get_help(context), "```\n"]
    return "\n".join(lines)


def commands_of(
    command: click.Command, words: tuple[str, ...]
) -> list[tuple[tuple[str, ...], click.Command]]:
    """A command and all below it, in the order of their names."""
    found = [(words, command)]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            found += commands_of(below, (*words, name))
    return found
