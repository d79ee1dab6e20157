"""Passwords of commands: from the terminal or standard input, never from the arguments."""

import sys

import click

from db.errors import BadInput


def ask_password(*, confirm: bool = True) -> str:
    """The password: prompted on a terminal (twice to confirm), else a line of standard input."""
    if sys.stdin.isatty():
        answer: str = click.prompt(
            "Password", hide_input=True, confirmation_prompt=confirm, err=True
        )
        return answer
    line = sys.stdin.readline().rstrip("\n")
    if not line:
        raise BadInput(
            "no password", "pass it as one line on standard input", code="password_missing"
        )
    return line
