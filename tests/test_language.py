"""UI texts, help texts, messages and documents are plain technical English, one word per thing.

Sources: string literals of every package (messages, labels, log lines), the first lines of
docstrings, the help that click prints, and the prose of the documents. The words that were worst
are refused in names, docstrings and comments, too.
"""

import ast
import importlib
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from app.cli.main import COMMANDS
from db.modules import load

ROOT = Path(__file__).resolve().parent.parent
APP = ROOT / "app"

# Word of the old dialect → what to write instead.
REFUSED = {
    r"data[ -]sets?\b": "dataset",
    r"\btold\b": "reported, shown",
    r"\btells?\b": "reports, shows",
    r"\bdeeds?\b": "permission, action",
    r"\bvisitors?\b": "user",
    r"\bvisits?\b": "session",
    r"\bas it should be\b": "up to date",
    r"\bnobody (asked|knows|is at)\b": "unknown, not requested",
    r"\bno number\b": "not a number",
    r"\bbur(y|ies|ied)\b": "reap",
    r"\bcontrol items?\b": "gold items",
    r"\bknown items?\b": "gold items",
    r"\bsomebody\b": "someone, or name the role",
    r"\bgoes before\b": "takes precedence",
    r"\bgo(es)? with\b": "requires",
    r"\bput off\b": "postponed",
    r"\bone's\b": "your",
    r"\bprocessors?\b": "CPU cores",
    r"\bdoes as well\b": "also works",
    r"\btoo quick\b": "too fast",
    r"\bmend\b": "fix",
    r"; repeats\b": "repeatable",
    r"\bsay one of\b": "give one of",
    r"\bat most so many\b": "maximum",
    r"\bmade if missing\b": "created if missing",
    r"\bon its way\b": "loading",
    r"\bsaid\b|\bsays (that|the|what|who)\b": "reports, reads",
    r"\bbeside\b": "next to, with",
    r"\bso many\b": "N",
    r"\bNone\b": "a dash or nothing",
}
ANY_REFUSED = re.compile("|".join(REFUSED), re.IGNORECASE)
NAMES_REFUSED = re.compile(r"^_?(MOST|LONGEST|SHORTEST)_|^(Door|look|deed|visitor)$")
NONE_IS_FINE = re.compile(r"\bNone of (them|the|these)\b|\| None\b")


def files(*suffixes: str) -> list[Path]:
    return sorted(path for path in APP.rglob("*.*") if path.suffix in suffixes)


def by_folder(paths: Iterable[Path]) -> list[Any]:
    """A parameter per folder: its files. One test per file would cost more than the check."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        found.setdefault(path.parent.relative_to(ROOT).as_posix(), []).append(path)
    return [pytest.param(files, id=name) for name, files in found.items()]


def texts_of(path: Path) -> list[tuple[int, str]]:
    """Messages and labels of a Python or JavaScript file with their lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".js":
        return [
            (number, found.group(2))
            for number, line in enumerate(text.splitlines(), start=1)
            if not line.lstrip().startswith("//")
            for found in re.finditer(r"""(["`])([^"`]* [^"`]*)\1""", line)
        ]
    return list(literals(ast.parse(text)))


def literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """String literals with a space: messages and labels, not keys. Docstrings are left out."""
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
            and " " in node.value.strip()
        ):
            yield node.lineno, node.value


def hits(text: str) -> list[str]:
    """The refused words in a text."""
    shown = NONE_IS_FINE.sub("", text)
    if not ANY_REFUSED.search(shown):
        return []
    return [
        f"{found.group()!r} (write: {instead})"
        for pattern, instead in REFUSED.items()
        if (found := re.search(pattern, shown, 0 if "None" in pattern else re.IGNORECASE))
    ]


def test_the_check_finds_the_dialect_and_passes_plain_english() -> None:
    assert hits("the data set has no name") and hits("as it should be") and hits("Score: None")
    assert hits("3 Processors") and hits("Too quick: read it") and hits("what was told")
    assert not hits("None of them answers the query")
    assert not hits("The dataset has 3 passages; processing takes a minute.")


def test_docstrings_and_keys_are_not_taken_for_messages() -> None:
    tree = ast.parse('"""What was told."""\nKEY = "told"\nlabel = "it is told"\n')
    assert [text for _, text in literals(tree)] == ["it is told"]


@pytest.mark.parametrize("paths", by_folder(files(".py", ".js")))
def test_no_text_of_the_app_uses_a_refused_word(paths: list[Path]) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {hit} in {text!r:.90}"
        for path in paths
        for line, text in texts_of(path)
        for hit in hits(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("paths", by_folder(files(".py")))
def test_no_name_of_the_app_is_a_refused_one(paths: list[Path]) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {name}"
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in (getattr(node, "id", None), getattr(node, "name", None))
        if isinstance(name, str)
        and NAMES_REFUSED.search(name)
        and (isinstance(node, ast.FunctionDef | ast.ClassDef) or _is_stored(node))
    ]
    assert not found, "\n".join(found)


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Every help text below a command, with where it is shown."""
    yield name, command.help or ""
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield f"{name} {parameter.opts[0]}", parameter.help or ""
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            if found is not None:
                yield from helps(found, f"{name} {child}")


@pytest.mark.parametrize("name", COMMANDS)
def test_no_help_of_the_command_line_uses_a_refused_word(name: str) -> None:
    target, summary = COMMANDS[name][:2]
    importlib.import_module(target.split(":")[0])
    texts = [(f"inf {name}", summary), *helps(load(target), f"inf {name}")]
    found = [f"{where}: {hit}" for where, text in texts for hit in hits(text)]
    assert not found, "\n".join(found)


# Words that no message and no document needs in any sense.
WORST = {
    pattern: REFUSED[pattern]
    for pattern in (
        r"data[ -]sets?\b",
        r"\btold\b",
        r"\bdeeds?\b",
        r"\bvisitors?\b",
        r"\bbur(y|ies|ied)\b",
        r"\bas it should be\b",
        r"\bno number\b",
        r"\bsomebody\b",
        r"\bgoes before\b",
        r"\bdoes as well\b",
        r"\bprocessors?\b",
        r"\bso many\b",
    )
}
BLOCK = re.compile(
    r"^ *```.*?^ *```$|<!--.*?-->|`[^`\n]+`|“[^”]*”|\"[^\"\n]*\"", re.DOTALL | re.MULTILINE
)
DOCUMENTS = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    ]
)


def prose(text: str) -> str:
    """A document without code, comments and quotations; lines stay where they are."""
    return BLOCK.sub(lambda found: "\n" * found.group().count("\n"), text)


def worst(text: str) -> list[tuple[int, str]]:
    """Lines and refused words of a text."""
    return [
        (text.count("\n", 0, found.start()) + 1, f"{found.group()!r} (write: {instead})")
        for pattern, instead in WORST.items()
        for found in re.finditer(pattern, text, re.IGNORECASE)
    ]


def test_quotations_and_code_of_a_document_are_not_its_prose() -> None:
    text = 'One.\n```\nwhat was told\n```\nThe “data set” and `told` of "somebody" were told.\n'
    assert worst(prose(text)) == [(5, "'told' (write: reported, shown)")]


@pytest.mark.parametrize("paths", by_folder(DOCUMENTS))
def test_no_document_uses_a_refused_word(paths: list[Path]) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {hit}"
        for path in paths
        for line, hit in worst(prose(path.read_text(encoding="utf-8")))
    ]
    assert not found, "\n".join(found)


# ---- all rooms: names, docstrings, comments and messages

ROOMS = ["analysis", "app", "bench", "curation", "db", "inf_studio", "trainer"]
WORDS_REFUSED = re.compile(
    r"\bdata[ -]sets?\b|\btold\b|\bdeeds?\b|\bbur(y|ies|ied)\b|\bsomebody\b|\bas it should be\b"
    r"|\bcontrol items?\b|\bknown items?\b|\bvisitors?\b|\bnobody (asked|knows|is at)\b"
    r"|\bwhat would surprise\b|\bwho said\b",
    re.IGNORECASE,
)
PARTS_REFUSED = {"told", "deed", "deeds", "visitor", "buries", "bury", "asked"}
PREFIXES_REFUSED = ("MOST_", "LONGEST_", "SHORTEST_")
# File whose prose is not checked → the reason.
ALLOWED = {
    "curation/offline/aspects.py": "sentences of generated instructions, which are stored",
    "bench/rooms_walked.py": "holds the source of its tracer, with Python's None",
}


def room_files() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def source_prose(source: str) -> Iterator[tuple[int, str]]:
    """Docstrings, other strings with a space, and comments, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def identifiers(source: str) -> Iterator[tuple[int, str]]:
    """Names that the source defines: functions, classes, arguments and variables."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def is_refused_name(name: str) -> bool:
    parts = set(name.lower().split("_"))
    return name.lstrip("_").startswith(PREFIXES_REFUSED) or bool(parts & PARTS_REFUSED)


def test_refused_names_and_words_are_found_in_code() -> None:
    assert is_refused_name("MOST_ROWS") and is_refused_name("_told") and is_refused_name("asked")
    assert not is_refused_name("most_common") and not is_refused_name("MAX_ROWS")
    found = [text for _, text in source_prose('"""A data set."""\nx = 1  # what it was told\n')]
    assert all(WORDS_REFUSED.search(text) for text in found) and len(found) == 2


@pytest.mark.parametrize("paths", by_folder(room_files()))
def test_no_name_docstring_or_comment_of_a_room_uses_a_refused_word(paths: list[Path]) -> None:
    found = [hit for path in paths for hit in refused_in_room(path)]
    assert not found, "\n".join(found)


def refused_in_room(path: Path) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    place = path.relative_to(ROOT).as_posix()
    for line, name in identifiers(source):
        if is_refused_name(name):
            yield f"{place}:{line}: name {name}"
    if place in ALLOWED:
        return
    for line, text in source_prose(source):
        if hit := WORDS_REFUSED.search(text):
            yield f"{place}:{line}: {hit.group()!r} in {text!r:.90}"


def messages_and_first_lines(source: str) -> Iterator[tuple[int, str]]:
    """Messages of a module, and the first line of each docstring, where `None` is Python's."""
    tree = ast.parse(source)
    yield from literals(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node) or ""
            yield getattr(node, "lineno", 1), docstring.partition("\n")[0].replace("None", "")


def test_a_message_is_checked_wherever_it_is_raised_or_logged() -> None:
    source = (
        'def f():\n    """It is told; else None."""\n    log.info("it tells")\n'
        '    raise BadInput(f"{f}: no data set")\n'
    )
    found = [text for _, text in messages_and_first_lines(source) if hits(text)]
    assert found == ["it tells", ": no data set", "It is told; else ."]


@pytest.mark.parametrize("paths", by_folder(room_files()))
def test_no_message_and_no_first_line_of_a_docstring_uses_a_refused_word(
    paths: list[Path],
) -> None:
    found = [
        f"{place}:{line}: {hit} in {text!r:.90}"
        for path in paths
        if (place := path.relative_to(ROOT).as_posix()) not in ALLOWED
        for line, text in messages_and_first_lines(path.read_text(encoding="utf-8"))
        for hit in hits(text)
    ]
    assert not found, "\n".join(found)


COMMAND_NAMED = re.compile(r"\binf [a-z]+|(?<![\w-])--(?!-)")
ERRORS = re.compile(
    "InfError|BadInput|BadRows|NotFound|Refused|StoreBehind|ProviderError|Paused|ServerFailed"
    "|HubError|Lost|Cancelled|MissingColumns"
)


def errors_raised(source: str) -> Iterator[tuple[ast.Call, str]]:
    """Every call that makes an InfError, with its texts, also those of the module's constants."""
    tree = ast.parse(source)
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in ast.walk(tree):
        name = getattr(call, "func", None)
        if not isinstance(call, ast.Call):
            continue
        if ERRORS.fullmatch(getattr(name, "id", getattr(name, "attr", ""))):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            named = [node.id for each in given for node in ast.walk(each) if hasattr(node, "id")]
            places = [*given, *(constants[each] for each in named if each in constants)]
            texts = [node for each in places for node in ast.walk(each)]
            yield call, " ".join(str(one.value) for one in texts if isinstance(one, ast.Constant))


def test_the_texts_of_an_error_are_found_in_its_call_and_in_the_constants_that_it_names() -> None:
    source = 'HOW = "use --x"\nraise BadInput(f"{a}: no", f"{HOW}, or `inf b`", code="c")\n'
    ((call, texts),) = errors_raised(source)
    assert [keyword.arg for keyword in call.keywords] == ["code"]
    assert set(COMMAND_NAMED.findall(texts)) == {"inf b", "--"}


@pytest.mark.parametrize("paths", by_folder(room_files()))
def test_an_error_has_a_code_and_names_no_command_outside_the_command_line(
    paths: list[Path],
) -> None:
    found = []
    for path in paths:
        place = path.relative_to(ROOT).as_posix()
        for call, texts in errors_raised(path.read_text(encoding="utf-8")):
            codes = [each.value for each in call.keywords if each.arg == "code"]
            plain = [each.value for each in codes if isinstance(each, ast.Constant)]
            own = getattr(call.func, "id", "") == "MissingColumns"  # its class has the code
            bad = [code for code in plain if not re.fullmatch(r"[a-z0-9_]+", str(code))]
            if bad or not (codes or own):
                found.append(f"{place}:{call.lineno}: no code")
            if (hit := COMMAND_NAMED.search(texts)) and not place.startswith("app/cli/"):
                found.append(f"{place}:{call.lineno}: {hit.group()!r}: name an operation or field")
    assert not found, "\n".join(found)
