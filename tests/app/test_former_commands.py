"""Every command and option that there was before the layer is there, under its name of then.

`tests/data/former_commands.txt` lists them as of the commit before (`git show d64fb84`).
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from conftest import Ran

from app.cli.gpu_check import OfProgram
from app.cli.kit.formerly import FormerlyOne
from app.cli.main import inf as commands
from db.store.store import Store

FORMER = Path(__file__).parents[1] / "data" / "former_commands.txt"
# Called as before without an id that exists: what the note on standard error names.
RENAMED = {
    "backup {file}": "inf store backup",
    "curate --resume 7": "inf runs resume",
    "curate --estimate --dataset x --provider offline": "inf runs estimate",
    "datasets delete x": "inf datasets archive | purge",
    "db check": "inf store check",
    "db upgrade": "inf store upgrade --no-copy",
    "evaluate list": "inf evaluations list",
    "evaluate --model x --benchmark y": "inf evaluations create",
    "export --dataset x --out y": "inf releases create DATASET",
    "groups list --run 1": "inf groups list RUN_ID",
    "judgments list --study 1": "inf judgments list STUDY_ID",
    "hub push --release 1 --repo a/b --dry-run": "inf releases push | models push",
    "review --group 1 --approve": "inf reviews set GROUP",
    "review many --run 1 --approve": "inf reviews bulk RUN",
    "review verdicts --run 1": "inf reviews verdicts RUN",
    "runs delete 7": "inf runs archive | purge",
    "study list": "inf studies list",
    "study show --study 1": "inf studies show STUDY_ID",
    "study people --study 1": "inf studies people STUDY_ID",
    "users list": "inf people",
}


def former() -> Iterator[tuple[str, set[str]]]:
    for line in FORMER.read_text(encoding="utf-8").splitlines():
        words, _, options = line.partition(":")
        yield words, set(options.split())


def options_of(command: click.Command) -> set[str]:
    """Its options, and those of the commands that it becomes by one of them."""
    found = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    if isinstance(command, FormerlyOne):
        for other, _ in command._others.values():
            found |= options_of(other)
    return found


@pytest.mark.parametrize("words", dict(former()))
def test_a_command_of_before_is_there_with_its_options(words: str) -> None:
    options = dict(former())[words]
    command: click.Command | None = commands
    for word in words.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None, words
    if isinstance(command, OfProgram):  # whose options are another program's
        found = {each.value for each in command.shell_complete(click.Context(command), "")}
        assert options <= found
        return
    left_out = set(command._left_out) if isinstance(command, FormerlyOne) else set()
    assert options - left_out <= options_of(command)


@pytest.mark.parametrize("words", [*RENAMED])
def test_a_former_name_says_what_it_is_now(
    words: str, sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = inf(*words.format(file=tmp_path / "b.zip").split(), "--json")
    assert f"is `{RENAMED[words]}` now" in ran.err, ran.err
    assert ran.code in (0, 1), ran.out + ran.err


def test_the_help_of_a_command_that_was_several_has_the_options_of_each(
    inf: Callable[..., Ran],
) -> None:
    for noun in ("datasets", "runs"):
        said = inf(noun, "delete", "--help")
        assert said.code == 0 and "--purge" in said.out and f"inf {noun} purge" in said.out


def test_an_id_that_was_an_option_is_an_argument_and_one_of_them_is_needed(
    inf: Callable[..., Ran], sqlite_store: Store
) -> None:
    missing = inf("groups", "list", "--json")
    assert missing.code == 2 and "RUN_ID" in missing.json["message"]
    assert "note" not in inf("groups", "list", 1).err


def test_a_former_command_ends_with_the_next_step_of_what_it_is_now(
    inf: Callable[..., Ran], sqlite_store: Store
) -> None:
    assert "next: inf status" in inf("db", "upgrade").err
