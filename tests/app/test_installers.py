"""The wheel installs by uvx and pipx from a local index, under both names of the command.

The extra [demo] is not installed here (2.3 GB): docs/benchmarks.md has its size and time.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(sys.executable).parent


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel, as `--find-links` reads it."""
    folder = tmp_path_factory.mktemp("index")
    build = ("-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    subprocess.run([sys.executable, *build], check=True, capture_output=True, cwd=ROOT)
    return folder


def program(name: str) -> str:
    found = shutil.which(name, path=f"{HERE}:{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"{name} is not installed: pip install {name}")
    return found


def run(*words: object, **more: str) -> str:
    environment = {**os.environ, "UV_CONSTRAINT": str(ROOT / "constraints.txt"), **more}
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, timeout=500,
        env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.long
def test_uvx_runs_both_names_from_the_wheel(index: Path) -> None:
    uvx = (program("uv"), "tool", "run", "--find-links", index, "--from", "inf-studio")
    for name in ("inf", "inf-studio"):
        assert run(*uvx, name, "--version").startswith("inf, version ")
    assert "demo" in run(*uvx, "inf", "demo", "--help")


@pytest.mark.long
def test_pipx_installs_both_names_from_the_wheel(index: Path, tmp_path: Path) -> None:
    given = f"--find-links {index} -c {ROOT / 'constraints.txt'}"
    places = {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    words = (program("pipx"), "install", "--pip-args", given, "inf-studio")
    run(*words, **places)
    for name in ("inf", "inf-studio"):
        assert run(tmp_path / "bin" / name, "--version").startswith("inf, version ")
    assert "demo" in run(tmp_path / "bin" / "inf", "demo", "--help")
