"""The examples that can run here do, and give the model's own vectors."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from trainer_jobs import claim, config_for

from db.store.store import Store
from trainer.export.exporting import PROBES, export_for_serving
from trainer.launch.here import train
from trainer.model.backbone import load_model
from trainer.model.doors import passage_modules
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
    lines = run("serve_onnxruntime.py", str(exported), *PROBES).splitlines()
    own = SentenceTransformer(str(exported)).encode(list(PROBES))
    assert np.abs(np.array([json.loads(line) for line in lines]) - own).max() <= 1e-4


@pytest.mark.long
def test_sentence_transformers_ranks_with_the_exported_folder(exported: Path) -> None:
    lines = run("serve_sentence_transformers.py", str(exported)).splitlines()
    assert len(lines) == 2 and float(lines[0].split()[0]) >= float(lines[1].split()[0])


BLOCKED = """
import importlib.abc, runpy, sys
class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "sentence_transformers", "trainer"):
            raise ImportError(name)
sys.meta_path.insert(0, Block())
sys.argv = sys.argv[1:]
sys.path[0] = sys.argv[0].rpartition("/")[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@contextmanager
def served(*words: object) -> Iterator[Callable[..., Any]]:
    """Ask the example's server, which can import neither PyTorch nor anything of ours."""
    script = str(EXAMPLES / "serve_instruction_onnx.py")
    command = [sys.executable, "-c", BLOCKED, script, *map(str, words), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        try:
            yield lambda **body: httpx.post(url, json=body, timeout=60, trust_env=False)
        finally:
            process.kill()


def vectors_of(answer: Any) -> np.ndarray:
    assert answer.status_code == 200, answer.text
    return np.array([row["embedding"] for row in answer.json()["data"]])


@pytest.mark.long
@pytest.mark.parametrize("side", ["query", "both"])
def test_the_exported_network_is_served_with_an_instruction_without_us(
    sqlite_store: Store, tmp_path: Path, side: str
) -> None:
    pytest.importorskip("onnxruntime")
    given = {"trained_side": side, "objective": "P", "held_out": "0", "max_steps": "2"}
    given |= {"template": "{query} ({instruction})", "query_prefix": "query: "}
    given |= {"learning_rate": "1e-2"}
    given |= {"passage_prefix": "passage: "} if side == "both" else {}
    out = train(claim(sqlite_store, config_for(tmp_path, **given)))["path"]
    own: Any = load_model(out)
    exported, folders = tmp_path / "exported", []
    export_for_serving(out, exported, formats=["onnx"])
    if side == "query":  # the base's own folder, as its server has it
        base = SentenceTransformer(modules=list(passage_modules(own)), prompts=own.prompts)
        base.save(str(tmp_path / "base"), create_model_card=False)
        export_for_serving(str(tmp_path / "base"), tmp_path / "base-out", formats=["onnx"])
        folders = [tmp_path / "base-out"]
    queries, instructions = ["how long is it", "who built it"], ["In metres.", "A name."]
    with served(exported, *folders) as ask:
        found = vectors_of(ask(input=queries, instruction=instructions))
        wanted = own.encode_query(queries, instruction=instructions)
        assert np.abs(found - wanted).max() <= 1e-4
        found = vectors_of(ask(input=queries, instruction="In metres."))
        assert np.abs(found - own.encode_query(queries, instruction="In metres.")).max() <= 1e-4
        plain = vectors_of(ask(input=queries, input_type="query"))
        assert np.abs(plain - own.encode_query(queries)).max() <= 1e-4
        passages = vectors_of(ask(input="it is long"))
        assert np.abs(passages - own.encode_document(["it is long"])).max() <= 1e-4
        refused = ask(input="it is long", instruction="x", input_type="document")
        assert refused.status_code == 400 and "passages" in refused.json()["error"]["message"]
    if side == "query":
        with served(exported) as ask:
            assert "base model" in ask(input="it is long").json()["error"]["message"]
            assert ask(input="it is long", instruction="x").status_code == 200


@pytest.mark.parametrize("name", ["serve_tei.sh", "serve_vllm.sh"])
def test_shell_examples_are_valid_and_ask_for_the_folder(name: str) -> None:
    assert subprocess.run(["sh", "-n", EXAMPLES / name], check=False).returncode == 0
    done = subprocess.run(["sh", EXAMPLES / name], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "give the folder" in done.stderr
