"""Which revision this version of InF Studio writes: that of its migrations.

They are in `alembic/` of a clone and in `db/migrations` of an installed wheel, and are read as
text: every process asks, and loading Alembic takes a tenth of a second.
"""

import re
from functools import cache
from pathlib import Path

VERSION_TABLE = "alembic_version"
READ_REVISION = f"SELECT version_num FROM {VERSION_TABLE}"
LINE = re.compile(r'^(revision|down_revision) = (?:"(\w+)")?', re.MULTILINE)


def migrations() -> Path:
    """The folder of the migrations, in a clone or in a wheel."""
    packaged = Path(__file__).parents[1] / "migrations"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "alembic"


@cache
def head() -> str:
    """The revision that this process writes: the one that no other comes after.

    It is read when the process opens its first store, and stays: a newer version may be installed
    over one that runs.
    """
    later = revisions_before()
    (last,) = later.keys() - set(later.values())
    return last


def revisions_before() -> dict[str, str]:
    """Every revision with the one it follows ("" for the first)."""
    found = {}
    for path in (migrations() / "versions").glob("*.py"):
        named = dict(LINE.findall(path.read_text(encoding="utf-8")))
        found[named["revision"]] = named["down_revision"]
    return found
