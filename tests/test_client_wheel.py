"""The second wheel: the remote client alone, from the same modules, with one HTTP client."""

import json
import os
import subprocess
import sys
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest
from curation_runs import pairs_file
from live_server import serving

import hatch_build
from app.access.identity import owner
from app.operations import people, releases
from app.operations.doors import tokens
from app.operations.doors.tokens import TokenCreate
from db.home import home
from db.store.store import Store

ROOT = Path(__file__).resolve().parent.parent
MAX_BYTES = 5_000_000
COMMAND = owner("cli:ada")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as `make wheel` builds it."""
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            out,
            ROOT / "client",
        ],
        check=True,
        capture_output=True,
    )
    return next(out.glob("inf_studio_client-*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel, what it requires and nothing else."""
    place = tmp_path_factory.mktemp("client") / "venv"
    subprocess.run(
        [sys.executable, ROOT / ".ci" / "clean_environment.py", place, wheel],
        check=True,
        capture_output=True,
    )
    return place / "bin" / "python"


def run(python: Path, *words: object, folder: Path, **given: str) -> str:
    done = subprocess.run(
        [str(python), "-P", *map(str, words)],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)} | given,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_requires_one_http_client_and_its_files_are_those_of_the_large_wheel(
    wheel: Path, tmp_path: Path
) -> None:
    hatch_build.write_package(ROOT, tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if ".dist-info/" in name:
                assert name.startswith("inf_studio_client-")
            else:
                assert archive.read(name) == (tmp_path / name).read_bytes(), name
        (about,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        found = BytesParser().parsebytes(archive.read(about))
    assert found.get_all("Requires-Dist") == ["httpx>=0.28"]
    assert f'\nversion = "{found["Version"]}"\n' in (ROOT / "pyproject.toml").read_text()


def test_its_environment_is_small_and_loads_nothing_else(python: Path, tmp_path: Path) -> None:
    program = (
        "import json, sys, sysconfig, inf_studio\n"
        "before = set(sys.modules)\n"
        "for name in dir(inf_studio):\n"
        "    getattr(inf_studio, name)\n"
        "import httpx\n"
        "tops = {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(json.dumps([sysconfig.get_paths()['purelib'], dir(inf_studio), sorted(tops)]))\n"
    )
    place, names, tops = json.loads(run(python, "-c", program, folder=tmp_path))
    size = sum(one.stat().st_size for one in Path(place).rglob("*") if one.is_file())
    assert size < MAX_BYTES, f"{size:,} bytes with what it requires"
    assert {"connect", "evaluate", "judge", "open", "Recipe", "Studio", "ItemView"} <= set(names)
    assert not {"load_model", "open_store", "SourcePair"} & set(names)
    there = {path.name.partition(".")[0] for path in Path(place).iterdir()}
    assert {"inf_studio", "httpx"} <= set(tops) and set(tops) - {"__main__"} <= there


@pytest.mark.long
def test_it_goes_from_pairs_to_a_release(python: Path, sqlite_store: Store, tmp_path: Path) -> None:
    people.add(COMMAND, people.PersonAdd(name="cora", role="curator"), "correct horse battery")
    wanted = {"name": "remote", "rights": ["curate", "review", "release"], "person": "cora"}
    token = tokens.create(COMMAND, TokenCreate.read(wanted)).token
    pairs = pairs_file(tmp_path, 30)
    given = {"INF_HOME": str(home()), "INF_DATABASE_URL": sqlite_store.url}
    with serving(tmp_path / "server", **given) as server:
        journey = ROOT / "tests" / "remote_journey.py"
        said = run(python, journey, server.url, pairs, folder=tmp_path, INF_TOKEN=token)
    found = json.loads(said)
    shown = releases.show(COMMAND, found["release"])
    assert shown.groups == found["groups"] > 0 and (Path(shown.path) / "README.md").is_file()
