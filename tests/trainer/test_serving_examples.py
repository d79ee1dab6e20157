"""The examples that can run here do, and give the model's own vectors."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trainer.export.exporting import PROBES, export_for_serving
from trainer.model.tiny import build_tiny_model

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module", params=["bert", "qwen2"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp(request.param)
    build_tiny_model(f"tiny-random-{request.param}").save(
        str(folder / "model"), create_model_card=False
    )
    export_for_serving(str(folder / "model"), folder / "out", formats=["onnx"])
    return folder / "out"


def run(name: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_onnxruntime_without_pytorch_gives_the_models_vectors(exported: Path) -> None:
    from sentence_transformers import SentenceTransformer

    lines = run("serve_onnxruntime.py", str(exported), *PROBES).splitlines()
    own = SentenceTransformer(str(exported)).encode(list(PROBES))
    assert np.abs(np.array([json.loads(line) for line in lines]) - own).max() <= 1e-4


@pytest.mark.long
def test_sentence_transformers_ranks_with_the_exported_folder(exported: Path) -> None:
    lines = run("serve_sentence_transformers.py", str(exported)).splitlines()
    assert len(lines) == 2 and float(lines[0].split()[0]) >= float(lines[1].split()[0])


@pytest.mark.parametrize("name", ["serve_tei.sh", "serve_vllm.sh"])
def test_shell_examples_are_valid_and_ask_for_the_folder(name: str) -> None:
    assert subprocess.run(["sh", "-n", EXAMPLES / name], check=False).returncode == 0
    done = subprocess.run(["sh", EXAMPLES / name], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "give the folder" in done.stderr
