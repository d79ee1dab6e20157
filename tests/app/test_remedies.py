"""An error is worded by the door that shows it: commands and options, or pages and fields."""

import ast
import copy
import pickle
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from app_pages import open_page
from operation_requests import models

from app.cli.main import inf
from app.home.quality import leakage_light
from app.kit.menu import MENU
from app.text.remedies import COMMANDS, PAGES, in_commands, in_pages
from curation.importing.columns import Lacking, MissingColumns
from db.errors import NAMED, BadInput, BadRow, BadRows, InfError, NotFound
from db.jobs import jobs
from db.store.store import Store

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("analysis", "app", "curation", "db", "trainer")
NO_RELEASE = NotFound(
    "no release 7", "`releases create NAME out=DIR` makes one", code="release_unknown"
)


def elsewhere(error: InfError) -> InfError:
    """The error as another process gets it."""
    return pickle.loads(pickle.dumps(error))  # type: ignore[no-any-return]  # noqa: S301


def test_message_code_and_remedy_are_apart_and_survive_another_process() -> None:
    for error in (NO_RELEASE, elsewhere(NO_RELEASE), copy.copy(NO_RELEASE)):
        assert (error.message, error.code) == ("no release 7", "release_unknown")
        assert error.remedy == "`releases create NAME out=DIR` makes one"
        assert str(error) == "no release 7: `releases create NAME out=DIR` makes one"
    bad = BadRows([BadRow("a.csv", 3, "no text")], "correct it", code="rows_invalid")
    assert str(bad) == "1 bad row:\n  a.csv, line 3: no text\ncorrect it"
    assert vars(elsewhere(bad)) == vars(bad)


def test_a_command_and_a_page_word_the_same_remedy_in_their_own_terms() -> None:
    text = str(NO_RELEASE)
    assert in_commands(text).endswith("`inf releases create NAME --out DIR` makes one")
    assert in_pages(text).endswith("the Releases page makes one")
    lacking = [Lacking("pairs", "a.csv", ["`query`"], ["frage"])]
    missing = str(MissingColumns(lacking, several_files=False))
    assert "name the file's own with --column query=NAME" in in_commands(missing)
    assert "name the file's own with “Column” (query=NAME)" in in_pages(missing)
    flags = "go on with `runs resume 3 no_guard=yes`, or omit `batch=`"
    assert "--no-guard`, or omit --batch" in in_commands(flags)
    shell = str(BadInput("the store is empty", "run `store upgrade`", code="store_empty"))
    assert "inf " in in_pages(shell)  # no page does that: the command is named there, too


def test_code_that_only_looks_like_a_remedy_stays_as_it_is() -> None:
    text = "no column `a b`, no `x`, run `pip install y`, see `data/` and `Runs Resume`"
    assert in_commands(text) == in_pages(text) == text


def operations_named() -> set[str]:
    """Every operation that a text of the product names, values as X."""
    found = set()
    for path in (path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))):
        if path.name == "remedies.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [
                    each.value if isinstance(each, ast.Constant) else "X" for each in node.values
                ]
                text = "".join(str(part) for part in parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            found |= {hit.group() for hit in NAMED.finditer(text) if hit.group(1)}
    return found


@pytest.mark.parametrize("named", sorted(operations_named()))
def test_the_command_that_a_remedy_names_exists_with_its_options(named: str) -> None:
    words = shlex.split(in_commands(named).strip("`"))[1:]
    command: click.Command = inf
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        context = click.Context(command)
        inner = command.get_command(context, words[0])
        if inner is None:
            break
        command, words = inner, words[1:]
    assert command is not inf, named
    options = {name for each in command.params for name in [*each.opts, *each.secondary_opts]}
    assert {word for word in words if word.startswith("--")} <= options, named


@pytest.mark.long
def test_every_page_that_a_remedy_may_name_is_in_the_menu_and_every_operation_is_named() -> None:
    assert set(PAGES.values()) <= {view.title for view in MENU}
    named = {NAMED.fullmatch(one).group(1) for one in operations_named()}  # type: ignore[union-attr]
    assert set(COMMANDS) <= named
    assert not [name for name in named if not re.fullmatch(r"[a-z]+ [a-z]+", name)]


def test_pages_word_sentences_that_are_no_errors_too(sqlite_store: Store) -> None:
    """Home's light of an outdated check, and the list of jobs, whose rows keep the message."""
    old = "too old; measure it again: `analyses leakage run=1`"
    light = leakage_light(1, {"comparisons": {}}, old)
    assert light.why == "Outdated: too old; measure it again: “Check again” on the Curate page."
    with sqlite_store.write() as session:
        job = jobs.enqueue_job(session, "curate", {"run_id": 1}, started_by="ada")
        job.status, job.error = "failed", "stopped; continue with `runs resume 1`"
        session.commit()
    (drawn,) = open_page("jobs").dataframe[0].value.to_dict("records")
    assert drawn["summary"] == job.error
    assert drawn["outcome"] == "stopped; continue with the Curate page"


def test_the_description_of_a_field_names_operations_and_fields_and_each_door_words_them() -> None:
    """It is a command's help, a form's, a route's and an agent's."""
    shells = re.compile(r"\binf [a-z]|(?<![\w-])--[a-z]|torchrun --")
    for name, model in models().items():
        for key, field in model.model_fields.items():
            assert not shells.search(field.description or ""), f"{name}: {key}"
    runs = inf.get_command(click.Context(inf), "runs")
    assert isinstance(runs, click.Group)
    helped = {each.name: getattr(each, "help", "") for each in runs.commands["create"].params}
    assert "--seed fixes" in helped["sample"] and "`inf connections list`" in helped["connection"]


# What a person can do about an error is its remedy. Those without one are listed with the reason:
# a message that says itself what a value may be, or nothing is left to do.
WITHOUT = ROOT / "tests" / "data" / "errors_without_remedy.txt"
ERRORS = (
    *("InfError", "BadInput", "BadRows", "NotFound", "Refused", "StoreBehind", "ProviderError"),
    *("ServerFailed", "Paused", "HubError", "Lost", "Cancelled"),
)


def raised() -> Iterator[tuple[str, bool]]:
    """Each error that the rooms raise: its room and code, and whether it has a remedy."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ERRORS:
                    named = {each.arg: each.value for each in node.keywords}
                    if "code" in named:
                        code = ast.unparse(named["code"]).strip("'").removeprefix("f'")
                        both = len(node.args) > 1 or isinstance(node.args[0], ast.Starred)
                        yield f"{room} {code}", both or "remedy" in named


@pytest.mark.long
def test_errors_without_a_remedy_are_those_that_are_listed() -> None:
    found = list(raised())
    without = {name for name, has_remedy in found if not has_remedy}
    lines = WITHOUT.read_text(encoding="utf-8").splitlines()
    listed = {name for name, _, why in (line.partition(": ") for line in lines) if why}
    assert len(listed) == len(lines), "say why nothing can be done"
    assert without - listed == set(), "give a remedy, or list it"
    assert listed - without == set(), "these have a remedy now: take them off the list"
    assert sum(has_remedy for _, has_remedy in found) > 0.9 * len(found)
