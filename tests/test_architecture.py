"""The rules of the house that no linter knows."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("app", "curation", "trainer", "analysis", "db")


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def imports(path: Path) -> set[str]:
    """The top-level names of the packages a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("folder", ["alembic", "tests"])
def test_no_package_marker_where_it_would_shadow(folder: str) -> None:
    assert list((ROOT / folder).rglob("__init__.py")) == []


def test_no_file_beside_the_entry_script_is_named_like_a_package() -> None:
    """Streamlit puts the entry script's folder first on the path: a `db.py` replaces `db`."""
    taken = {*PACKAGES, "alembic", "tests", "streamlit", "openai", "pandas", "torch", "plotly"}
    names = {
        path.stem for path in (ROOT / "app" / "server").glob("*") if path.suffix in ("", ".py")
    }
    names -= {"__init__", "__pycache__"}
    assert names & (taken | set(sys.stdlib_module_names)) == set()


def test_only_the_room_of_providers_imports_openai() -> None:
    found = {str(path.parent.relative_to(ROOT)) for path in sources() if "openai" in imports(path)}
    assert found == {"curation/providers"}


def test_only_the_store_writes_statements_by_dialect() -> None:
    found = {
        path.relative_to(ROOT).parts[0]
        for path in sources()
        if "sqlalchemy.ext.compiler" in path.read_text(encoding="utf-8")
    }
    assert found == {"db"}


def test_one_writer_writes_csv_and_no_formula_passes_it() -> None:
    wrote = re.compile(r"csv\.(writer|DictWriter)\b|\.to_csv\(")
    found = [path for path in sources() if wrote.search(path.read_text(encoding="utf-8"))]
    assert found == [ROOT / "analysis" / "files" / "csv_writer.py"]


def test_tables_show_a_dash_for_a_missing_value_as_all_are_drawn_in_one_place() -> None:
    found = [path for path in sources() if ".dataframe(" in path.read_text()]
    assert found == [ROOT / "app" / "kit" / "page.py"]


def test_all_figures_are_drawn_in_one_place() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in sources()}
    drawing = re.compile(r"\b(?:plotly|vega_lite|altair|line|area|bar|scatter|pydeck)_chart\(")
    found = [path for path, text in texts.items() if drawing.search(text)]
    assert found == [ROOT / "app" / "kit" / "figure.py"]


def test_a_download_leaves_the_page_as_it_is() -> None:
    """A page that is drawn anew meanwhile loses the next click, which may be for the next file."""
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "st.download_button":
                given = {each.arg: ast.unparse(each.value) for each in node.keywords}
                assert given.get("on_click") == "'ignore'", f"{path}:{node.lineno}"


# Told apart by names in strings elsewhere: the table of commands, and a type of the other file.
KNOWN_CIRCLES = [
    {"app.cli.main", "app.cli.start"},
    {"trainer.evaluate.benchmarks", "trainer.evaluate.following"},
]


def imported_files() -> dict[str, set[str]]:
    """The modules of ours that each module imports, in functions and for types too."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sources()
    }
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        named: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                full = {f"{node.module}.{each.name}" for each in node.names}
                named |= {each if each in files else node.module for each in full}
            elif isinstance(node, ast.Import):
                named |= {each.name for each in node.names}
        found[name] = (named & files.keys()) - {name}
    return found


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for each in graph[waiting.pop()] - found:
            found.add(each)
            waiting.append(each)
    return found


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = imported_files()
    assert len(graph) > 400
    reach = {name: reachable(graph, name) for name in graph}
    circles = {
        frozenset(other for other in of if name in reach[other]) for name, of in reach.items()
    }
    assert sorted(map(sorted, circles - {frozenset()})) == sorted(map(sorted, KNOWN_CIRCLES))


MAX_FILES = 15


def files_of_code(folder: Path) -> list[Path]:
    """Python, JavaScript and CSS of a folder, without what lies deeper and `__init__.py`."""
    return [
        path
        for path in folder.iterdir()
        if path.suffix in (".py", ".js", ".css") and path.name != "__init__.py"
    ]


def test_no_folder_holds_more_files_than_a_reader_takes_in() -> None:
    counts = {
        folder.relative_to(ROOT).as_posix(): len(files_of_code(folder))
        for folder in {path.parent for path in sources()}
    }
    assert len(counts) > 60
    assert {folder: count for folder, count in counts.items() if count > MAX_FILES} == {}


def test_every_folder_of_code_is_a_package() -> None:
    """Import-linter does not see another: its contracts would not hold there."""
    folders = {path.parent for path in sources()}
    assert [str(one) for one in sorted(folders) if not (one / "__init__.py").is_file()] == []


def test_nothing_is_pickled() -> None:
    dangerous = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    assert {str(path) for path in sources() if imports(path) & dangerous} == set()


def test_no_error_is_swallowed() -> None:
    """An `except` whose body is only `pass` hides what went wrong."""
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler):
                only_pass = len(node.body) == 1 and isinstance(node.body[0], ast.Pass)
                assert not only_pass, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_the_command_line_loads_no_heavy_library() -> None:
    """`inf` and the app share their process rules: no torch, no umap, no sentence-transformers."""
    program = (
        "import importlib, sys\n"
        "from app.cli.main import COMMANDS\n"
        "for target, _ in COMMANDS.values():\n"
        "    importlib.import_module(target.split(':')[0])\n"
        "heavy = {'torch', 'umap', 'sentence_transformers', 'transformers', 'datasets', 'numba'}\n"
        "sys.exit(' '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Who the user is, the HTTP routes, the commands: these read and write the store by themselves.
ROOMS_WITH_THE_STORE = ("operations", "access", "server", "cli")
OPENERS = re.compile(r"\bopen_store\b|\.(?:read|write)\(\) as session\b")


def pages_and_components() -> list[Path]:
    """Every module of a subject's room, and of the kit that all pages share."""
    return [
        path
        for path in sorted((ROOT / "app").rglob("*.py"))
        if path.relative_to(ROOT / "app").parts[0] not in ROOMS_WITH_THE_STORE
    ]


def imports_streamlit(path: Path) -> bool:
    return "streamlit" in imports(path)


def test_what_draws_a_page_does_not_open_the_store() -> None:
    """Pages and actions read and write; a component takes what it shows, or calls an action."""
    components = [
        path
        for path in pages_and_components()
        if imports_streamlit(path) and not path.stem.endswith(("page", "actions"))
    ]
    assert len(components) > 40
    opening = [path for path in components if OPENERS.search(path.read_text())]
    assert [str(path.relative_to(ROOT)) for path in opening] == []


def test_outside_of_jobs_only_pages_and_actions_open_the_store() -> None:
    """A module that draws nothing could open it unseen and pass what it read to a component."""
    opening = {
        str(path.relative_to(ROOT / "app"))
        for path in pages_and_components()
        if not path.stem.endswith(("page", "actions")) and OPENERS.search(path.read_text())
    }
    assert {name for name in opening if not name.startswith("jobs/")} == set()


def test_actions_keep_their_name_where_they_are_imported() -> None:
    for path in pages_and_components():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                renamed = [n for n in node.names if n.name.endswith("actions") and n.asname]
                assert not renamed, path.relative_to(ROOT)


# A capability is written once, in `app/operations`; pages and commands are doors to it.
DOORS = re.compile(r"\bopen_store\(|\bready_store\(|\.commit\(\)|\bselect\(")
# What gives a session, under whatever name it is imported.
SESSIONS = ("sqlalchemy", "db.store.store", "db.store.scope", "inf_studio")
GIVING = {"reading", "writing", "admitted", "record_read", "*"}


def own_work(source: str) -> bool:
    """Whether a door opens a session, or has what opens one."""
    if DOORS.search(source):
        return True
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
            if any(name in SESSIONS or name.startswith("sqlalchemy.orm") for name in names):
                return True
            if "app.operations.acting" in names:
                return True
        if isinstance(node, ast.ImportFrom):
            names = [each.name for each in node.names]
            whole = {f"{node.module}.{name}" for name in names}
            if node.module in (*SESSIONS, "sqlalchemy.orm") or whole & set(SESSIONS):
                return True
            if node.module == "app.operations.acting" and GIVING & set(names):
                return True
            if "app.operations.acting" in whole:
                return True
    return False


def doors() -> list[Path]:
    """Commands, pages and what pages call."""
    below = ("operations", "jobs", "access", "text", "server")
    return [
        path
        for path in sorted((ROOT / "app").rglob("*.py"))
        if path.relative_to(ROOT / "app").parts[0] not in below
    ]


def test_pages_and_commands_open_no_store_and_commit_nothing() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in doors() if own_work(path.read_text())}
    assert found == set(), "work of an operation: move it to app/operations"


@pytest.mark.parametrize(
    "source",
    [
        "from sqlalchemy import select as pick",
        "import sqlalchemy as sa",
        "from sqlalchemy.orm import Session",
        "from db.store.store import open_store as opened",
        "from db.store import store",
        "import db.store.store",
        "from db.store.scope import unscoped",
        "from app.operations.acting import writing as w",
        "from app.operations import acting",
        "import app.operations.acting as acting",
        "from inf_studio import open_store",
        "def draw(session):\n    session.commit()",
    ],
)
def test_a_session_of_a_door_s_own_is_found_under_any_name(source: str) -> None:
    assert own_work(source)


def test_what_doors_need_of_operations_is_no_own_work() -> None:
    assert not own_work("from app.operations.acting import Launch, queued, store_address")
    assert not own_work("from sqlalchemy.exc import NoResultFound")
