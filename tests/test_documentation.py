"""The documents say what is there: variables, commands, options and files exist, examples run."""

import ast
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from app.cli.main import inf
from db.store.environment import VARIABLES
from db.store.schema import known_revisions

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("app", "curation", "trainer", "analysis", "db", "inf_studio")
DOCUMENTS = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if path.name not in ("CHANGELOG.md", "changes.md", "experiments.md")  # what was, not what is
)
NAME = re.compile(r"(?:INF|OPENAI|AZURE_OPENAI|HF|RAY|CUDA|OMP|TOKENIZERS|ACCELERATE)_[A-Z][A-Z_]*")
OTHERS = {  # read by no code of ours: libraries' own, which we set or name in a message
    "RAY_AUTH_TOKEN",
    "RAY_AUTH_MODE",
    *("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"),  # the SDK reads them, and jobs are handed them
    "FORWARDED_ALLOW_IPS",
}
COMMAND = re.compile(r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(inf|make|ray|torchrun)\b ")
WHOLE_FILE = re.compile(r"<!-- blocks not run: .{10,} -->")
# an example is run by tests/test_contributing.py
MARK = re.compile(r"<!-- (run|not run: .{5,}|example: \w+) -->")


def strings_of(path: Path) -> Iterator[str]:
    """The text constants of a file that are no docstrings or messages: a name and nothing else."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def environment_names(path: Path) -> Iterator[str]:
    """Names in `os.environ[…]`, `os.environ.get(…)` and `… in os.environ`, in clear text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        found: list[ast.expr] = []
        if isinstance(node, ast.Subscript) and is_environment(node.value):
            found = [node.slice]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and is_environment(node.func.value)
        ):
            found = node.args[:1]
        elif isinstance(node, ast.Compare) and is_environment(node.comparators[0]):
            found = [node.left]
        for one in found:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                yield one.value


def is_environment(node: ast.expr) -> bool:
    names = ("environ", "environment")
    return (isinstance(node, ast.Attribute) and node.attr in names) or (
        isinstance(node, ast.Name) and node.id in names
    )


def test_every_variable_that_is_read_is_in_the_table_and_no_other() -> None:
    files = [
        path
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        if path != ROOT / "db" / "store" / "environment.py"
    ]
    read = {name for path in files for name in environment_names(path)}
    named = {text for path in files for text in strings_of(path) if NAME.fullmatch(text)}
    table = {one.name for group in VARIABLES.values() for one in group}
    assert (read | named) - OTHERS - table == set(), "read, and not in db/store/environment.py"
    used = {word for path in files for word in re.findall(r"[A-Z_]{4,}", path.read_text())}
    assert table - used == set(), "in the table, and read nowhere"


def test_a_read_in_any_form_is_found(tmp_path: Path) -> None:
    """The finder itself: each way of reading, one name each."""
    source = tmp_path / "reads.py"
    source.write_text(
        "import os\n"
        "os.environ['INF_A']\nos.environ.get('INF_B')\nos.environ.pop('INF_C', None)\n"
        "'INF_D' in os.environ\nos.environ.setdefault('INF_E', '')\n"
    )
    assert sorted(environment_names(source)) == [f"INF_{letter}" for letter in "ABCDE"]


@dataclass(frozen=True)
class Block:
    """A fenced block of a document: its language, its text, and the mark above it."""

    path: Path
    line: int
    language: str
    text: str
    mark: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def blocks_of(path: Path) -> list[Block]:
    lines = path.read_text(encoding="utf-8").splitlines()
    whole = any(WHOLE_FILE.fullmatch(line) for line in lines[:5])
    found, start = [], None
    for number, line in enumerate(lines):
        if not line.lstrip().startswith("```"):
            continue
        if start is None:
            start = number
            continue
        above = next((text for text in reversed(lines[:start]) if text.strip()), "")
        mark = MARK.fullmatch(above.strip())
        found.append(
            Block(
                path,
                start + 1,
                lines[start].strip().removeprefix("```"),
                "\n".join(lines[start + 1 : number]),
                mark.group(1) if mark else ("not run: the whole file" if whole else ""),
            )
        )
        start = None
    assert start is None, f"{path}: a block is not closed"
    return found


BLOCKS = [block for path in DOCUMENTS for block in blocks_of(path)]
RUN = [block for block in BLOCKS if block.mark == "run"]


def command_lines(block: Block) -> list[str]:
    """Its command lines, continued lines joined, comments and prompts gone."""
    joined = block.text.replace("\\\n", " ")
    return [
        line.strip().removeprefix("$ ").split(" #")[0].strip()
        for line in joined.splitlines()
        if COMMAND.match(line)
    ]


def test_every_block_of_commands_is_run_by_a_test_or_says_why_not() -> None:
    unmarked = [
        str(block)
        for block in BLOCKS
        if not block.mark and (command_lines(block) or block.language in ("sh", "python"))
    ]
    assert unmarked == []


def find_command(words: list[str]) -> tuple[click.Command, list[str]]:
    command: click.Command = inf
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        below = command.get_command(click.Context(command), rest[0])
        assert below is not None, f"no command `inf {' '.join(words)}`"
        command, rest = below, rest[1:]
    return command, rest


def require_options(line: str, where: object) -> bool:
    """Whether the line is a call of `inf`; asserts that its command and options exist."""
    words = shlex.split(re.split(r"\s[|>&]|\$\(", line.replace("…", ""))[0])
    places = [number for number, word in enumerate(words) if Path(word).name == "inf"]
    if not places:
        return False
    words = words[places[0] :]
    command, rest = find_command(words[1:])
    params = [*command.params]
    if isinstance(command, click.Group):  # it runs one of its commands by default
        for below in command.list_commands(click.Context(command)):
            params += find_command([*words[1 : len(words) - len(rest)], below])[0].params
    known = {name for one in params for name in (*one.opts, *one.secondary_opts)}
    if command.context_settings.get(
        "ignore_unknown_options"
    ):  # those of the program that it starts
        known |= {one.value for one in command.shell_complete(click.Context(command), "--")}
    unknown = {word.split("=")[0] for word in rest if word.startswith("--")} - known
    assert unknown - {"--help"} == set(), f"{where}: {line}"
    return True


def test_every_command_and_option_in_the_documents_exists() -> None:
    lines = [(line, block) for block in BLOCKS for line in command_lines(block)]
    assert sum(require_options(line, block) for line, block in lines) > 20


def calls_in_prose(path: Path) -> Iterator[str]:
    """Calls of `inf` between backticks, outside of blocks; alternatives as their first one."""
    prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for call in re.findall(r"`(inf [a-z][^`]*)`", prose):
        line = " ".join(call.split())
        yield re.sub(r"(?<=\w)(?:\|[\w-]+)+", "", line).replace("[", "").replace("]", "")


def test_every_command_and_option_in_the_prose_exists() -> None:
    found = [(call, path) for path in DOCUMENTS for call in calls_in_prose(path)]
    assert sum(require_options(call, path.name) for call, path in found) > 50


def test_the_changelog_has_a_page_for_each_version_and_begins_with_ours() -> None:
    pages = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1:]
    assert all(len(page.splitlines()) <= 60 for page in pages)
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version and pages[0].startswith(f"{version[1]}, ")
    assert f"Schema {max(known_revisions())}." in pages[0]
    flow = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    assert "- run: .ci/run" in flow and "path: dist/*.whl" in flow
    gate = (ROOT / ".ci" / "run").read_text("utf-8")
    of_make = re.findall(r"(?:^|run: )make((?: -\S+)*(?: [a-z][\w-]*)+)", flow + gate, re.MULTILINE)
    targets = [word for line in of_make for word in line.split() if word[0] != "-"]
    made = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"wheel-test"} <= set(targets) <= set(made)


def test_every_page_says_first_what_its_reader_can_do_after_it() -> None:
    """Tables of what was decided and the start page, which is a table of such lines, apart."""
    docs = ROOT / "docs"
    pages = [path for path in docs.rglob("*.md") if "decisions" not in path.parts]
    silent = [
        path.relative_to(docs).as_posix()
        for path in pages
        if not re.match(
            r"#[^\n]+\n\nAfter (?:this page|these \w+ steps) you ", path.read_text("utf-8")
        )
    ]
    assert silent == ["index.md"]


def test_every_file_that_the_documents_name_exists() -> None:
    tops = (*ROOMS, "alembic", "bench", "docs", "tests")
    missing = []
    for path in DOCUMENTS:
        for name in re.findall(r"`([a-z_]+/[a-z0-9_./-]+)`", path.read_text(encoding="utf-8")):
            if name.split("/")[0] in tops and not (ROOT / name).exists():
                missing.append(f"{path.relative_to(ROOT)}: {name}")
    assert missing == []


@pytest.mark.long
@pytest.mark.parametrize("path", sorted({block.path for block in RUN}), ids=lambda path: path.name)
def test_what_is_marked_to_run_runs(path: Path, tmp_path: Path) -> None:
    """A document's blocks one after another in one folder, as a reader takes them; a shell finds
    `inf` as somebody with the environment active does."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "HF_HUB_OFFLINE": "1",
    }
    for block in RUN:
        if block.path != path:
            continue
        if block.language == "python":
            words = [sys.executable, "-P", "-c", block.text]
        else:
            words = ["bash", "-euo", "pipefail", "-c", block.text]
        with (tmp_path / "printed.txt").open("w+") as printed:
            process = subprocess.Popen(
                words,
                cwd=tmp_path,
                env=environment,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(timeout=400)
            finally:  # a server that it started does not outlive it
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            printed.seek(0)
            assert code == 0, f"{block}\n{printed.read()}"
