"""The command line as a whole: wrong arguments, broken output, Ctrl-C, completion."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click
import pytest
from conftest import Ran
from full_store import fill

from app.cli.main import inf as whole
from app.cli.main import main
from db.modules import run_module
from db.store.store import Store

FULL = Path("/dev/full")


def commands(
    command: click.Command = whole, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, with the words that call it."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, (*words, name))
    else:
        yield words, command


COMMANDS = dict(commands())


def wrong_arguments() -> Iterator[list[str]]:
    """For every command: an unknown option, an argument too many, and for each value a bad one."""
    for words, command in COMMANDS.items():
        yield [*words, "--no-such-option"]
        arguments = [one for one in command.params if isinstance(one, click.Argument)]
        given = ["1"] * len(arguments)
        if all(one.nargs == 1 for one in arguments):
            yield [*words, *given, "too", "many", "words"]
        if any(one.required for one in command.params):
            yield [*words]
        for place, argument in enumerate(arguments):
            if is_checked(argument.type):
                bad = [*given[:place], "no such value", *given[place + 1 :]]
                yield [*words, *bad]
        for option in command.params:
            if isinstance(option, click.Option) and not option.is_flag and is_checked(option.type):
                yield [*words, *given, option.opts[0], "no such value"]


def is_checked(kind: click.ParamType) -> bool:
    """Whether a text can be wrong for it."""
    numbers = (click.types.IntParamType, click.types.FloatParamType)
    return isinstance(kind, (*numbers, click.Choice, click.DateTime))


def called(words: list[str], out: Any = None) -> tuple[int, str]:
    """The exit status of a command in this process, and what it printed."""
    with redirect_stdout(out or io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) as stream:
        with pytest.raises(SystemExit) as ended:
            main(words)
        if out is None:
            stream.seek(0)
            return int(ended.value.code or 0), stream.read()
    return int(ended.value.code or 0), ""


def test_wrong_arguments_end_with_2_whatever_the_command(own_home: Path) -> None:
    """Before anything is opened: the home of the test stays empty."""
    tried = list(wrong_arguments())
    assert len(tried) > 250 and len(COMMANDS) > 70
    assert [(words, code) for words in tried if (code := called(words)[0]) != 2] == []
    assert not (own_home / "inf.db").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["dataset"],
        ["datasets", "lst"],
        ["datasets", "delete", "x", "--backup", "b.zip"],
        ["runs", "delete", "1", "--admin", "me"],
        ["recipes", "show"],
        ["recipes", "show", "offline", "--run", "1"],
        ["config", "NO_SUCH"],
        ["users", "add", "anna", "--no-password"],
        ["train", "--release", "x", "--out", "y", "batch_size=8"],
        ["curate", "--worker", "1", "--dataset", "x"],
    ],
)
def test_arguments_that_contradict_each_other_end_with_2(words: list[str], own_home: Path) -> None:
    assert called(words)[0] == 2
    code, out = called([*words, "--json"])
    assert code == 2
    if out:  # those without it know no --json
        assert all(json.loads(out)[key] for key in ("error", "code", "remedy")), out


def test_a_command_that_nearly_exists_is_suggested(inf: Callable[..., Ran]) -> None:
    assert "Did you mean 'datasets'?" in inf("dataset").err
    assert "'INF_HOME'" in inf("config", "inf_hom").err


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a store with something of everything."""
    from db.store import schema
    from db.store.store import open_store

    url = f"sqlite:///{tmp_path_factory.mktemp('filled') / 'inf.db'}"
    store = open_store(url)
    schema.upgrade(store)
    fill(store)
    store.close()
    return url


PRINTING = [
    ["--help"],
    ["--version"],
    ["curate", "--help"],
    ["config"],
    ["config", "--json"],
    ["datasets", "list"],
    ["datasets", "list", "--json"],
    ["datasets", "show", "world"],
    ["store", "check"],
    ["groups", "list", "1"],
    ["groups", "show", "1"],
    ["jobs", "list"],
    ["jobs", "show", "1"],
    ["recipes", "list"],
    ["recipes", "show", "offline"],
    ["recipes", "check", "msmarco"],
    ["releases", "list"],
    ["runs", "list"],
    ["runs", "show", "1"],
    ["studies", "list"],
    ["studies", "show", "1"],
    ["studies", "work"],
    ["people", "list"],
    ["people", "members"],
    ["evaluate", "--help"],
    ["datasets", "show", "missing", "--json"],  # an error that is printed as JSON
]


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_a_full_disk_on_standard_output_ends_in_one_sentence(
    words: list[str], filled: str, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setenv("INF_DATABASE_URL", filled)
    with FULL.open("w") as out:
        code, _ = called(words, out)
    assert code == 1
    assert capfd.readouterr().err.splitlines() == [
        "Error: standard output is incomplete: no space is left on its disk"
    ]


@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_a_closed_pipe_ends_in_one_sentence(
    words: list[str], filled: str, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setenv("INF_DATABASE_URL", filled)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out:
        code, _ = called(words, out)
    assert code == 1
    assert capfd.readouterr().err.splitlines() == [
        "Error: standard output is incomplete: its reader closed it before everything was written"
    ]


def program(*words: str) -> list[str]:
    return [sys.executable, *run_module("app.cli.start"), *words]


def test_a_process_with_broken_output_ends_as_quietly(own_home: Path) -> None:
    """Python flushes standard output once more at its end, and would print a traceback then."""
    if FULL.exists():
        with FULL.open("w") as out:
            done = subprocess.run(program("config"), stdout=out, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    line = " ".join(program("config")) + " | head -1 > /dev/null; exit ${PIPESTATUS[0]}"
    done = subprocess.run(["bash", "-c", line], stderr=subprocess.PIPE, text=True)
    assert done.returncode in (0, 1)  # 0: head was slow enough to take it all
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) <= 1


INTERRUPTING = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["inf", *{words!r}]
from app.cli.start import main
main()
"""


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("click", ["config"]),
        ("db.errors", ["config"]),
        ("app.cli.main", ["--help"]),
        ("app.cli.store.config", ["config"]),
        ("app.cli.data.import_", ["import", "--help"]),
    ],
)
def test_ctrl_c_while_modules_are_loaded_ends_in_one_sentence(
    module: str, words: list[str], own_home: Path
) -> None:
    script = INTERRUPTING.format(module=module, words=words)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr.split() == ["Interrupted."] and done.stdout == ""


def test_ctrl_c_in_a_command_ends_in_one_sentence(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("app.operations.overview.settings.effective_settings", interrupted)
    assert called(["config"])[0] == 130
    assert capsys.readouterr().err.split() == ["Interrupted."]
    monkeypatch.setattr("app.cli.main.load_secrets", interrupted)
    assert called(["config"])[0] == 130
    assert capsys.readouterr().err.split() == ["Interrupted."]


def test_names_that_the_terminal_cannot_show_are_escaped(
    sqlite_store: Store, own_home: Path
) -> None:
    from db.tables import Dataset

    with sqlite_store.write() as session:
        session.add(Dataset(name="世界 ü", licence="cc0-1.0"))
        session.commit()
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    assert called(["datasets", "list"], out)[0] == 0
    out.seek(0)
    assert "\\u4e16\\u754c ü" in out.read()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_that_completes(shell: str) -> None:
    done = subprocess.run(
        program(),
        env=os.environ | {"_INF_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "_INF_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("inf dat", {"datasets"}),
        ("inf datasets ", {"list", "show", "delete", "unarchive"}),
        ("inf runs list --sta", {"--status"}),
        ("inf runs list --status pa", {"paused"}),
    ],
)
def test_commands_options_and_choices_are_completed(
    line: str, found: set[str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("_INF_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    code, out = called([])
    assert code == 0
    assert {row.split(",")[1] for row in out.splitlines()} >= found
