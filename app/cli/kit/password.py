"""Passwords and keys of commands: from the terminal or standard input, never from the arguments."""

import sys

import click

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
