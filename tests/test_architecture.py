"""The rules of the house that no linter knows."""

import ast
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


def test_only_one_module_imports_openai() -> None:
    found = [str(path.relative_to(ROOT)) for path in sources() if "openai" in imports(path)]
    assert found == ["curation/providers/openai_server.py"]


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


ROOMS_OF_PURE_COMPONENTS = (
    *("jobs", "groups", "curate"),
    *("judge", "studies", "agreement", "corpora", "releases", "training", "models", "people"),
)


def test_what_draws_a_page_does_not_open_the_store() -> None:
    """Pages and actions read and write; a component takes what it shows, or asks an action."""
    for room in ROOMS_OF_PURE_COMPONENTS:
        for path in (ROOT / "app" / room).glob("*.py"):
            if not path.stem.endswith(("page", "actions")):
                assert "open_store" not in path.read_text(), path.relative_to(ROOT)


def test_actions_keep_their_name_where_they_are_imported() -> None:
    for path in (ROOT / "app").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and path.parent.name in ROOMS_OF_PURE_COMPONENTS:
                renamed = [n for n in node.names if n.name.endswith("actions") and n.asname]
                assert not renamed, path.relative_to(ROOT)
