"""`inf gpu-check`: check and measure this machine's training; one JSON and one Markdown report."""

import subprocess
import sys

import click
from click.shell_completion import CompletionItem

from db.extras import require_modules
from db.modules import run_module
from trainer.check.gpu_check import options


class OfProgram(click.Command):
    """A command whose options are those of the program that it starts."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The options that begin so."""
        words = options().format_usage().replace("[", " ").replace("]", " ").split()
        known = [each for each in words if each.startswith("--")]
        return [CompletionItem(each) for each in known if each.startswith(incomplete)]


@click.command(
    cls=OfProgram, add_help_option=False, context_settings={"ignore_unknown_options": True}
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def gpu_check(words: tuple[str, ...]) -> None:
    """Check and measure training on this machine: GPU or CPU, no network, no store."""
    require_modules("torch")
    command = [sys.executable, *run_module("trainer.check.gpu_check"), *words]
    sys.exit(subprocess.run(command, check=False).returncode)
