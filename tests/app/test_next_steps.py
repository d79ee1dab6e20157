"""The next step after a command names commands and options that there are."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from conftest import Ran
from full_store import fill
from records_world import make_run

from app.cli.main import inf as commands
from app.jobs import supervisors
from app.text.next_steps import EMPTY, FORMER, NEXT, SAID, next_step
from curation.sources.registry import SOURCES
from db.store.store import Store
from db.tables import Run


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command of these words, and what is left of them."""
    found: click.Command = commands
    while isinstance(found, click.Group) and words:
        below = found.get_command(click.Context(found), words[0])
        assert below is not None, words
        found, words = below, words[1:]
    return found, words


@pytest.mark.parametrize(
    ("command", "then"), [*NEXT.items(), *EMPTY.items()], ids=[*NEXT, *(f"{n} []" for n in EMPTY)]
)
def test_a_next_step_is_a_command_with_its_arguments_and_options(command: str, then: str) -> None:
    before, left = command_of(command.split())
    assert not isinstance(before, click.Group) and not left
    found, rest = command_of(shlex.split(re.sub(r"\{[^}]+\}", "1", then))[1:])
    assert not isinstance(found, click.Group)
    options = {name: each for each in found.params for name in each.opts if name[0] == "-"}
    given = 0
    while rest:
        word = rest.pop(0)
        if word.startswith("--"):
            option = options[word]
            rest = rest[0 if isinstance(option, click.Option) and option.is_flag else 1 :]
        else:
            given += 1
    arguments = [each for each in found.params if isinstance(each, click.Argument)]
    at_least = sum(each.required for each in arguments)
    at_most = 99 if any(each.nargs < 0 for each in arguments) else len(arguments)
    assert at_least <= given <= at_most, [each.name for each in arguments]


FILLED: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], str]] = {
    "studies work": ({"data": [{"study_id": 3}]}, {"study_id": 1}, "inf studies people 3"),
    "webhooks deliveries": ({"data": [{"id": 9}]}, {"webhook_id": 2}, "inf webhooks test 2"),
    "releases diff": ({"data": [{"change": "added"}]}, {"after": 4}, "inf releases show 4"),
    "recipes new": ({"recipe": "f/f.toml"}, {"folder": "f"}, "inf recipes check f/f.toml"),
    "recipes check": ({"name": "f"}, {"recipe": "f/f.toml"}, "--recipe f/f.toml"),
    "analyze coverage": ({"known": True}, {"datasets": ("a b",)}, "--dataset 'a b'"),
    "analyze diversity": ({"known": True}, {"datasets": ()}, "--dataset DATASET"),
    "analyze agreement": ({"judgments_file": "a.csv"}, {"study": None}, "inf studies show STUDY"),
}


@pytest.mark.parametrize("command", FILLED)
def test_it_has_the_values_of_the_result_and_of_what_was_given(command: str) -> None:
    result, given, end = FILLED[command]
    assert next_step(f"inf {command}", result, given).endswith(end)


def test_it_ends_the_report_of_a_command_and_no_other_output(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    make_run(sqlite_store)
    told = inf("datasets", "show", "books")
    assert told.err == "next: inf runs create books --provider NAME\n" and "next" not in told.out
    assert "next" not in inf("datasets", "show", "books", "--json").json
    assert inf("db", "check").err.endswith("\nnext: inf store backup FILE\n")  # by a former name
    assert inf("groups", "show", 1).err == "next: inf reviews set 1 --approve\n"
    assert next_step("inf analyze leakage", {"job_id": 3}) == ""  # it is queued
    assert next_step("inf datasets show", {"name": "two words"}).endswith(
        "inf runs create 'two words' --provider NAME"
    )


# What these say by themselves, by what they found; `{}` is a folder. They are run in this order.
SMALL = ("max_steps=1", "natural_probe=off", "precision=fp32")
IMPORTED = ("--pairs", "{}/converted/pairs.jsonl", "--passages", "{}/converted/passages.jsonl")
OWN: Mapping[str, tuple[object, ...]] = {
    "connections add": ("own", "--url", "https://a.example/v1"),
    "convert beir": ("{}/beir", "--out", "{}/converted"),
    "datasets import": ("new", *IMPORTED),
    "import": ("newer", *IMPORTED),
    "runs estimate": ("world", "--provider", "offline"),
    "runs create": ("world", "--provider", "offline", "--limit", 2),
    "runs resume": (2,),
    "runs show": (2,),
    "releases create": ("world", "--run", 1, "--out", "{}/release"),
    "studies create": ("world", "--items", 4, "--overlap", 1, "--run", 1),
    "studies show": (2,),
    "studies tasks": (2, "--for", "doccano", "--out", "{}/tasks"),
    "trainings create": ("--release", "{}/release", "--out", "{}/model", *SMALL),
    "trainings show": (2,),
    "trainings sweep": ("--release", "{}/release", "--name", "one", "--objective", "P", *SMALL),
    "models show": (2,),
    "evaluations create": ("--model", "bm25", "--release", "{}/release"),
    "evaluations show": (3,),
}
# Other formats, which end as `convert beir` does.
CONVERTED = {f"convert {name}" for name in SOURCES.names()} - {"convert beir"}
# They are started for a person who stands by, or their output is another program's.
BEIR = {
    "corpus.jsonl": '{"_id": "p1", "title": "", "text": "green tea"}\n',
    "queries.jsonl": '{"_id": "q1", "text": "which tea"}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\tp1\t1\n",
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
    known = {*NEXT, *OWN, *CONVERTED, *PROGRAMS}
    short = {"curate": "runs create", "train": "trainings create", "tune": "trainings search"}
    for words, command in leaves(commands):
        words = short.get(words, words).replace("users ", "people ")
        is_former = re.search(r"This is `inf .*` now\.", command.help or "")
        assert words in known or is_former, words
    assert not set(NEXT) & {*OWN, *CONVERTED, *PROGRAMS}


@pytest.mark.long
def test_reports_with_a_step_of_their_own_end_with_it(
    sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_store)
    monkeypatch.setattr(supervisors, "ensure_taken", lambda store, launcher: None)
    (tmp_path / "beir" / "qrels").mkdir(parents=True)
    for name, text in BEIR.items():
        (tmp_path / "beir" / name).write_text(text, encoding="utf-8")
    without = {}
    for command, words in OWN.items():
        if command == "runs resume":
            with sqlite_store.write() as session:
                session.get_one(Run, 2).status = "paused"
                session.commit()
        ran = inf(*command.split(), *(str(word).replace("{}", str(tmp_path)) for word in words))
        ends = (text.strip().rpartition("\n")[2] for text in (ran.out, ran.err))
        if ran.code or not any(map(SAID.search, ends)):
            without[command] = ran.out + ran.err
    assert not without, "\n".join(f"{name}: {said}" for name, said in without.items())


def test_every_list_has_a_next_step_where_it_is_empty(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    context = click.Context(commands)
    lists = {
        f"{noun} {name}"
        for noun in commands.list_commands(context)
        if isinstance(group := commands.get_command(context, noun), click.Group)
        and noun not in FORMER
        for name, each in group.commands.items()
        if any(option.name == "offset" for option in each.params)
    }
    assert lists - EMPTY.keys() <= {"runs compare-versions"}  # its groups are a part of it
    told = inf("studies", "list")
    assert (told.out, told.err) == (
        "no studies yet\n",
        "next: inf studies create DATASET --items N --overlap 3\n",
    )
    assert next_step("inf groups list", {"data": []}, {"run_id": 3}) == "next: inf runs show 3"
