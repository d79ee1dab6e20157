"""The next step after a command names commands and options that there are."""

import re
import shlex
from collections.abc import Callable, Iterator

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


# What these say by themselves, by what they found; they are started for a person who stands by, or
# their output is another program's.
OWN = {
    "connections add",
    "connections change",
    "convert beir",
    "convert leetcode",
    "convert math",
    "convert msmarco",
    "convert msmarco-passages",
    "convert trec",
    "datasets import",
    "evaluations create",
    "evaluations show",
    "import",
    "judgments list",
    "models show",
    "releases create",
    "runs create",
    "runs estimate",
    "runs resume",
    "runs show",
    "store upgrade",
    "studies create",
    "studies show",
    "studies tasks",
    "tokens create",
    "trainings create",
    "trainings show",
    "trainings sweep",
}
PROGRAMS = {"demo", "jobs logs", "jobs work", "mcp", "models serve", "serve"}


def leaves(group: click.Group, *above: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that is no group, by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from leaves(found, *above, name)
        elif found is not None:
            yield " ".join((*above, name)), found


def test_every_command_ends_with_a_next_step() -> None:
    known = {*NEXT, *OWN, *PROGRAMS}
    short = {"curate": "runs create", "train": "trainings create", "tune": "trainings search"}
    for words, command in leaves(commands):
        words = short.get(words, words).replace("users ", "people ")
        is_former = re.search(r"This is `inf .*` now\.", command.help or "")
        assert words in known or is_former, words
    assert not set(NEXT) & (OWN | PROGRAMS)
