"""A client that openapi-python-client makes of the document goes from pairs to a release.

`.ci/run` installs the generator in an environment of its own (its typer is not ours) and names its
Python in INF_CLIENT_PYTHON.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from curation_runs import pairs_file
from live_server import serving
from sqlalchemy import func, select

from app.access.identity import owner
from app.operations import people, releases
from app.operations.doors import tokens
from app.operations.doors.tokens import TokenCreate
from db.home import home
from db.store.store import Store
from db.tables import Group, Pair, StudyItem

PYTHON = os.environ.get("INF_CLIENT_PYTHON", "")
TESTS = Path(__file__).resolve().parents[2]
COMMAND = owner("cli:ada")
# The generator knows no JSON lines; it sends them as they are, under their own content type.
CONFIG = """
content_type_overrides:
  application/x-ndjson: application/octet-stream
post_hooks: []
"""
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not PYTHON, reason="INF_CLIENT_PYTHON names no Python with the generator"),
]


def run(*arguments: object, **given: str) -> str:
    done = subprocess.run(
        [PYTHON, *map(str, arguments)],
        env=os.environ | given,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_generated_client_goes_from_pairs_to_a_release(
    sqlite_store: Store, tmp_path: Path
) -> None:
    people.add(COMMAND, people.PersonAdd(name="cora", role="curator"), "correct horse battery")
    wanted = {"name": "generated", "rights": ["curate", "review", "release"], "person": "cora"}
    token = tokens.create(COMMAND, TokenCreate.read(wanted)).token
    pairs, config = pairs_file(tmp_path, 30), tmp_path / "config.yml"
    config.write_text(CONFIG, encoding="utf-8")
    given = {"INF_HOME": str(home()), "INF_DATABASE_URL": sqlite_store.url}
    with serving(tmp_path / "server", **given) as server:
        document = tmp_path / "openapi.json"
        document.write_bytes(httpx.get(f"{server.url}/api/v1/openapi.json", timeout=120).content)
        run(  # a warning is an operation that it could not read: all are generated
            *("-m", "openapi_python_client", "generate", "--path", document, "--config", config),
            *("--meta", "none", "--output-path", tmp_path / "generated", "--fail-on-warning"),
        )
        said = run(
            *(TESTS / "generated_journey.py", server.url, pairs),
            **{"INF_TOKEN": token, "PYTHONPATH": str(tmp_path)},
        )
    found: dict[str, Any] = json.loads(said)
    with sqlite_store.read() as session:
        assert session.scalar(select(func.count()).select_from(Pair)) == 30
        made = session.scalar(select(func.count()).where(Group.run_id == found["run"]))
        assert made == found["groups"] == 20
        assert session.scalar(select(func.count()).select_from(StudyItem)) == 5
    (row,) = releases.list_all(COMMAND).data
    shown = releases.show(COMMAND, row.id)
    del found["release"]["created_at"]  # a time of its own kind, which ends in +00:00
    assert found["release"].items() < shown.as_json().items() and shown.groups > 0
    assert (Path(shown.path) / "README.md").is_file()
