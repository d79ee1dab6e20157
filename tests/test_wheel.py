"""The wheel: one name in site-packages, whatever lies in the folder in which it is used."""

import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from base_folders import save_base
from hub_server import Hub
from openai_server import Server
from trainer_jobs import claim, config_for

import hatch_build
from db.store.store import Store

ROOT = Path(__file__).resolve().parent.parent
HOSTILE = ("app", "db", "analysis", "trainer", "curation")


@pytest.mark.parametrize(
    ("clone", "wheel"),
    [
        ("from db.tables import Job", "from inf_studio.db.tables import Job"),
        ("from  db import tables", "from  inf_studio.db import tables"),
        ("from app.kit import (\n    page,\n)", "from inf_studio.app.kit import (\n    page,\n)"),
        ("import db", "import inf_studio.db as db"),
        ("import os, db, app.kit as k", "import os, inf_studio.db as db, inf_studio.app.kit as k"),
        ("if 'é':\n    import db as d", "if 'é':\n    import inf_studio.db as d"),
        ("x = 'é'; from db import a", "x = 'é'; from inf_studio.db import a"),
        ("def f():\n\tfrom db import a\r\n", "def f():\n\tfrom inf_studio.db import a\r\n"),
        ("from db.a import b; from db.c import d", None),
        ("import dbm, application", "import dbm, application"),
        ("from . import db", "from . import db"),
        ("from .db import x", "from .db import x"),
        ("x = 'from db import y'  # import db", "x = 'from db import y'  # import db"),
    ],
)
def test_imports_of_ours_move_and_nothing_else_does(clone: str, wheel: str | None) -> None:
    if wheel is None:
        wheel = clone.replace("from db", "from inf_studio.db")
    assert hatch_build.rewritten(clone) == wheel
    assert len(hatch_build.rewritten(clone).splitlines()) == len(clone.splitlines())


def test_an_import_that_cannot_be_moved_is_refused_by_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("import os\nimport db.tables\n")
    with pytest.raises(ValueError, match=r"one\.py: line 2: `import db\.tables` cannot be moved"):
        hatch_build.rewrite_folder(tmp_path)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as `make wheel` does but with what is installed here."""
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT],
        check=True,
        capture_output=True,
    )
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process in which the wheel is installed and the clone is not.

    `-S` in `run` leaves out the editable install's path file; the packages come by PYTHONPATH.
    """
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    packages = str(distribution("sqlalchemy").locate_file(""))
    return {"PYTHONPATH": os.pathsep.join((str(site), packages)), "HOME": str(site)}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A user's folder with modules of their own that are named like ours."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for name in HOSTILE:
        (folder / f"{name}.py").write_text(f'raise SystemExit("{name}.py of the user")\n')
    return folder


def run(*words: str, folder: Path, environment: dict[str, str], seconds: int = 300) -> str:
    done = subprocess.run(
        [sys.executable, "-S", *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "INF_HOME": str(folder / "home")} | environment,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_the_wheel_puts_one_name_into_site_packages(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "inf_studio",
        f"{wheel.name.rsplit('-py3', 1)[0]}.dist-info",
    }
    assert not [name for name in names if "/tests/" in name or "/alembic/" in name]
    migrations = {path.name for path in (ROOT / "alembic" / "versions").glob("*.py")}
    there = {Path(name).name for name in names if "/db/migrations/versions/" in name}
    assert there == migrations


def test_a_notebook_beside_files_named_like_our_rooms_imports_inf_studio(
    installed: dict[str, str], hostile: Path
) -> None:
    program = (
        "import sys, inf_studio\n"
        "for name in dir(inf_studio):\n"
        "    getattr(inf_studio, name)\n"
        f"print(sorted({set(HOSTILE)!r} & set(sys.modules)))\n"
    )
    assert run("-c", program, folder=hostile, environment=installed).strip() == "[]"


def test_the_wheel_makes_and_checks_a_store_and_runs_a_job_in_that_folder(
    installed: dict[str, str], hostile: Path
) -> None:
    inf = ("-m", "inf_studio")
    run(*inf, "db", "upgrade", folder=hostile, environment=installed)
    run(*inf, "db", "check", folder=hostile, environment=installed)
    (hostile / "pairs.csv").write_text("query_id,query,passage_id\nq1,how far is the moon,p1\n")
    (hostile / "passages.csv").write_text("passage_id,text\np1,It is 384 400 km away.\n")
    words = ("--dataset", "moon", "--pairs", "pairs.csv", "--passages", "passages.csv")
    words += ("--source", "ours", "--licence", "cc0-1.0", "--json")
    assert '"imported": 1' in run(*inf, "import", *words, folder=hostile, environment=installed)
    done = run(*inf, "backup", "--json", "all.zip", folder=hostile, environment=installed)
    assert "all.zip" in done


@pytest.mark.long
@pytest.mark.parametrize(
    "mode",
    [
        {"template": "{instruction} > {query}"},
        {"interaction": "II"},
        {"template": "{instruction} > {query}", "trained_side": "query", "learning_rate": "1e-2"},
    ],
    ids=["I", "II", "index-stays"],
)
def test_the_snippets_of_a_pushed_card_run_where_the_wheel_alone_is_installed(
    mode: dict[str, str],
    installed: dict[str, str],
    sqlite_store: Store,
    tmp_path: Path,
    hub: Hub,
    there: dict[str, str],
    inf: Any,
    hostile: Path,
) -> None:
    """The template is not the default: a snippet that lost it would give other vectors."""
    from trainer.launch.here import train
    from trainer.model.backbone import load_model

    given = {"max_steps": "1", "query_prefix": "query: "} | mode
    result = train(claim(sqlite_store, config_for(tmp_path, **given)))
    pushed = inf("hub", "push", "--checkpoint", 1, "--repo", "ada/mini", "--json", **there)
    assert pushed.code == 0, pushed.out + pushed.err
    files = hub.files("models/ada/mini")
    snippets = re.findall(r"```python\n(.*?)```", files["README.md"].decode(), re.S)
    assert len(snippets) == (1 if "interaction" in mode else 2)
    model = load_model(result["path"])
    own = model.encode_query(
        ["how tall is the tower"], instruction="Prefer passages with a figure."
    )
    for snippet in snippets:
        program = f"{snippet}\nprint([float(each) for each in query[0]])"
        printed = run("-c", program, folder=hostile, environment=installed | there)
        found = [float(each) for each in re.findall(r"[-\d.e]+", printed.splitlines()[-1])]
        assert found == pytest.approx(own[0].tolist(), abs=1e-6)
    for name, data in files.items():
        assert str(tmp_path).encode() not in data, name


@pytest.mark.long
def test_the_lines_of_the_documentation_run_as_they_stand_there(
    installed: dict[str, str], tmp_path: Path, hub: Hub, there: dict[str, str]
) -> None:
    """A model's server and the Hub are stand-ins; the base on it is a tiny one with that name."""
    page = (ROOT / "docs" / "how-to" / "notebook.md").read_text(encoding="utf-8")
    (lines,) = (one for one in re.findall(r"```python\n(.*?)```", page, re.S) if "qwen3-32b" in one)
    (tmp_path / "lines.py").write_text(lines)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "prices.toml").write_text('["qwen3-32b"]\ninput = 0.1\noutput = 0.3\n')
    hub.publish("intfloat/e5-base-v2", save_base("bert", tmp_path / "base"), "models")
    hub.whoami = {"orgs": [{"name": "lab", "roleInOrg": "admin"}]}
    hub.owners.add("lab")
    with Server(models=("qwen3-32b",)) as server:
        environment = installed | there | {"HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": "hf_writer"}
        environment |= {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "any"}
        program = str(ROOT / "tests" / "door_lines.py")
        words = ("-P", program, str(tmp_path / "lines.py"))
        printed = run(*words, folder=tmp_path, environment=environment, seconds=580)
    assert "<Estimate: 120 pairs" in printed and "120 checking for leakage" in printed
    assert "release.json" in hub.files("datasets/lab/mine")
