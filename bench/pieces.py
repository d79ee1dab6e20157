"""How large the product is, and in how many pieces: lines, files, files with one reader.

    .venv/bin/python bench/pieces.py [--tree FOLDER] [--list]

FOLDER is a checkout (this one by default). A *single reader* is a file under 75 lines that exactly
one other file of the product imports, in functions and for types too; --list names them.
"""

import argparse
import ast
import re
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
PACKAGES = ("app", "curation", "trainer", "analysis", "db", "inf_studio")
MAX_LINES = 75
LOOSE = re.compile(r"dict\[str, (?:Any|object)\]")


def readers(texts: dict[str, str]) -> dict[str, set[str]]:
    """The modules that import each module."""
    found = defaultdict[str, set[str]](set)
    for name, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            named = set[str]()
            if isinstance(node, ast.ImportFrom) and node.module:
                named = {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
            elif isinstance(node, ast.Import):
                named = {each.name for each in node.names}
            for each in (named & texts.keys()) - {name}:
                found[each].add(name)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tree", type=Path, default=HERE)
    parser.add_argument("--list", action="store_true", help="Name the files with one reader.")
    given = parser.parse_args()
    files = {
        ".".join(path.relative_to(given.tree).with_suffix("").parts): path.read_text("utf-8")
        for package in (*PACKAGES, "alembic")
        for path in (given.tree / package).rglob("*.py")
    }
    texts = {
        name.removesuffix(".__init__"): text
        for name, text in files.items()
        if not name.startswith("alembic.")
    }
    single = {
        name: (texts[name].count("\n"), *of)
        for name, of in sorted(readers(texts).items())
        if len(of) == 1 and texts[name].count("\n") < MAX_LINES and name in files
    }
    lines = sum(text.count("\n") for text in files.values())
    print(f"lines {lines:,}, files {len(files):,}")
    print(f"single readers {len(single)}, {sum(of[0] for of in single.values()):,} lines")
    print(f"dict[str, Any | object] {sum(len(LOOSE.findall(text)) for text in files.values())}")
    if given.list:
        print(*(f"{name} {of[0]} {of[1]}" for name, of in single.items()), sep="\n")


if __name__ == "__main__":
    main()
