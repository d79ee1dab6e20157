"""Names of our modules in strings, which are the same in a clone and in a wheel."""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from db.modules import PACKAGES, full_name, load, run_module

ROOT = Path(__file__).resolve().parent.parent


def test_names_of_other_packages_stay_as_they_are() -> None:
    assert [full_name(name) for name in ("toy_jobs", "dbm.dumb", "application")] == [
        "toy_jobs",
        "dbm.dumb",
        "application",
    ]


def test_a_named_object_is_loaded_from_its_module() -> None:
    assert load("db.modules:full_name") is full_name


def test_a_module_in_a_process_of_its_own_does_not_see_the_current_folder() -> None:
    assert run_module("curation") == ["-P", "-m", full_name("curation")]


def module_strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Strings that follow "-m" in a list or tuple: a command written by hand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple):
            words = [one.value if isinstance(one, ast.Constant) else None for one in node.elts]
            for before, word in pairwise(words):
                if before == "-m" and isinstance(word, str):
                    yield node.lineno, word


@pytest.mark.parametrize("package", PACKAGES)
def test_no_command_names_a_module_of_ours_without_its_full_name(package: str) -> None:
    """`python -m app.cli.main` is no module of a wheel, and looks into the current folder first."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, word in module_strings(ast.parse(path.read_text()))
        if word.split(".")[0] in PACKAGES
    ]
    assert found == []


def test_the_public_face_promises_the_same_names_to_type_checkers_and_at_run_time() -> None:
    import inf_studio

    tree = ast.parse((ROOT / "inf_studio" / "__init__.py").read_text())
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    names = {
        alias.asname: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(name for name in names if name) == dir(inf_studio)
    for name in dir(inf_studio):
        assert getattr(inf_studio, name) is load(f"{names[name]}:{name}")


def test_a_name_that_is_not_promised_is_no_attribute() -> None:
    import inf_studio

    with pytest.raises(AttributeError, match="promises no name 'engine'"):
        _ = inf_studio.engine
