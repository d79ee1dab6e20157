"""Passwords and keys of commands: from the terminal or standard input, never from the arguments."""

import sys
from collections.abc import Callable
from typing import Any

import click

from app.cli.kit.report import errors_translated
from db.errors import BadInput


def ask_secret(what: str = "Password", *, confirm: bool = True) -> str:
    """The secret: prompted for on a terminal (twice to confirm), else a line of standard input."""
    if sys.stdin.isatty():
        answer: str = click.prompt(what, hide_input=True, confirmation_prompt=confirm, err=True)
        return answer
    line = sys.stdin.readline().rstrip("\n")
    if not line.strip():
        name = what.lower()
        raise BadInput(
            f"no {name}", "pass it as one line on standard input", code=f"{name}_missing"
        )
    return line


def secret_option(
    flag: str, name: str, what: str, *, about: str, with_flag: bool = True, other: str | None = None
) -> Callable[..., Any]:
    """An option whose value is a secret, prompted for where the flag is given (not `with_flag`:
    where it is not); otherwise it is `other`."""

    def prompt(ctx: click.Context, _: click.Parameter, is_given: bool) -> str | None:
        if is_given != with_flag or ctx.resilient_parsing:  # as completion parses
            return other
        with errors_translated():
            return ask_secret(what, confirm=not with_flag)

    return click.option(flag, name, is_flag=True, callback=prompt, help=about)
