"""The next step after a command names commands and options that there are."""

import re
import shlex
from collections.abc import Callable

import click
import pytest
from conftest import Ran
from records_world import make_run

from app.cli.main import inf as commands
from app.text.next_steps import NEXT, next_step
from db.store.store import Store


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command of these words, and what is left of them."""
    found: click.Command = commands
    while isinstance(found, click.Group) and words:
        below = found.get_command(click.Context(found), words[0])
        assert below is not None, words
        found, words = below, words[1:]
    return found, words


@pytest.mark.parametrize("command", NEXT)
def test_a_next_step_is_a_command_with_its_options(command: str) -> None:
    assert not isinstance(command_of(command.split())[0], click.Group)
    found, rest = command_of(shlex.split(re.sub(r"\{\w+\}", "1", NEXT[command]))[1:])
    assert not isinstance(found, click.Group)
    known = {option for each in found.params for option in each.opts}
    assert {word for word in rest if word.startswith("--")} <= known


def test_it_ends_the_report_of_a_command_and_no_other_output(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    make_run(sqlite_store)
    told = inf("datasets", "show", "books")
    assert told.out.splitlines()[-1] == "next: inf runs create books --provider NAME"
    assert "next" not in inf("datasets", "show", "books", "--json").json
    assert inf("groups", "show", 1).out.splitlines()[-1] == "next: inf reviews set 1 --approve"
    assert next_step("inf analyze leakage", {"job_id": 3}) == ""  # it is queued
    assert next_step("inf datasets show", {"name": "two words"}).endswith(
        "inf runs create 'two words' --provider NAME"
    )
