"""The wheel: our folders under one name, `inf_studio`, with their imports rewritten to match.

In the clone the folders lie at the top (`app`, `curation`, …) and import each other as such, so an
editable install is a plain path, mypy and tracebacks show the files as they are. In the wheel they
would collide with a user's own `db.py` or `app`; there they are `inf_studio.app`, … . The hook
rewrites import statements by their position in the syntax tree, line for line, and nothing else:
modules that strings name go through `db/modules.py`. See docs/decisions/0005.
"""

import ast
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PUBLIC = "inf_studio"
PACKAGES = ("app", "curation", "trainer", "analysis", "db")
PLACES = {PUBLIC: PUBLIC, "alembic": f"{PUBLIC}/db/migrations"} | {
    package: f"{PUBLIC}/{package}" for package in PACKAGES
}


def is_ours(module: str) -> bool:
    """Whether a module of the clone moves under `inf_studio`."""
    return module.split(".")[0] in PACKAGES


def insertions(source: str) -> Iterator[tuple[int, int, str]]:
    """(line from 1, byte column, text to insert) for each import of a module of ours.

    `import db` becomes `import inf_studio.db as db`. Raises ValueError for `import db.store`: it
    binds `db` and fills its attribute, which no single line does under another name.
    """
    lines = source.encode().splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and is_ours(node.module or ""):
            after = lines[node.lineno - 1][node.col_offset + len("from") :]
            spaces = len(after) - len(after.lstrip())
            yield node.lineno, node.col_offset + len("from") + spaces, f"{PUBLIC}."
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if not is_ours(alias.name):
                    continue
                if alias.asname is None and "." in alias.name:
                    raise ValueError(
                        f"line {node.lineno}: `import {alias.name}` cannot be moved under "
                        f"{PUBLIC}: write `from … import` or `import … as`"
                    )
                yield alias.lineno, alias.col_offset, f"{PUBLIC}."
                if alias.asname is None and alias.end_col_offset is not None:
                    yield alias.lineno, alias.end_col_offset, f" as {alias.name}"


def rewritten(source: str) -> str:
    """The source as it stands in the wheel: same lines, imports of ours under `inf_studio`."""
    lines = source.encode().splitlines(keepends=True)
    for number, column, text in sorted(insertions(source), reverse=True):
        line = lines[number - 1]
        lines[number - 1] = line[:column] + text.encode() + line[column:]
    return b"".join(lines).decode()


def write_package(root: Path, out: Path) -> None:
    """Write the package as the wheel has it, `out/inf_studio`, from the clone at `root`."""
    for source, place in PLACES.items():
        shutil.copytree(
            root / source,
            out / place,
            ignore=shutil.ignore_patterns("__pycache__", "*.pyc"),
            dirs_exist_ok=True,
        )
    rewrite_folder(out)


def write_modules(root: Path, modules: Iterable[str], out: Path) -> None:
    """Write these files alone as `write_package` does: the wheel of `client/pyproject.toml`."""
    for module in modules:
        room, _, rest = module.partition("/")
        target = out / PLACES[room] / rest
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / module, target)
    rewrite_folder(out)


def rewrite_folder(folder: Path) -> None:
    """Rewrite every Python file under `folder` in place. Raises ValueError, naming the file."""
    for path in sorted(folder.rglob("*.py")):
        try:
            path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
        except (ValueError, SyntaxError) as error:
            raise ValueError(f"{path.relative_to(folder)}: {error}") from error


if "hatchling" in sys.modules:  # tests use the functions above without it
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class InfStudioHook(BuildHookInterface[Any]):
        """Give hatch the rewritten files; an editable install is left as it is."""

        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            if self.target_name != "wheel" or version == "editable":
                return
            self._folder = tempfile.mkdtemp(prefix="inf-studio-wheel-")
            if modules := self.config.get("modules"):
                write_modules(Path(__file__).parent, modules, Path(self._folder))
            else:
                write_package(Path(self.root), Path(self._folder))
            build_data["force_include"][f"{self._folder}/{PUBLIC}"] = PUBLIC

        def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
            if folder := getattr(self, "_folder", None):
                shutil.rmtree(folder)


if __name__ == "__main__":  # `python hatch_build.py FOLDER`: the tests, to run against the wheel
    rewrite_folder(Path(sys.argv[1]))
