"""`/v1/embeddings` as OpenAI's SDK reads it, with an instruction that reaches the model."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch
from curation_runs import wait_for
from live_server import free_port
from openai import BadRequestError, OpenAI
from starlette.testclient import TestClient

from db.errors import BadInput
from db.modules import run_module
from trainer.model.backbone import load_backbone, load_model
from trainer.model.doors import exported_part, trained_part
from trainer.serve.embeddings_server import Embedder, app
from trainer.settings.settings import parse_settings
from trainer.settings.template import INSTRUCTED

QUERY, ASKED = "how long is the bridge", "Give a figure."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with three doors, whose copy was changed."""
    found = tmp_path_factory.mktemp("model") / "three-doors"
    settings = {"base_model": "tiny-random-bert", "trained_side": "query"}
    model = load_backbone(parse_settings(settings))
    torch.manual_seed(1)
    with torch.no_grad():
        for weights in trained_part(model).parameters():
            weights.add_(torch.randn_like(weights) * 0.1)
    model.save(str(found), create_model_card=False)
    return found


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    with TestClient(app(Embedder(str(folder)))) as found:
        yield found


def post(client: TestClient, **body: Any) -> np.ndarray:
    answer = client.post("/v1/embeddings", json=body)
    assert answer.status_code == 200, answer.text
    return np.array([row["embedding"] for row in answer.json()["data"]], dtype=np.float32)


def test_each_door_gives_the_vectors_of_sentence_transformers(
    client: TestClient, folder: Path
) -> None:
    model = load_model(str(folder))
    passage = post(client, input="a passage")
    assert np.allclose(passage[0], model.encode_document("a passage"), atol=1e-6)
    plain = post(client, input=[QUERY], input_type="query")
    assert np.allclose(plain[0], model.encode_query(QUERY), atol=1e-6)
    asked = post(client, input=QUERY, instruction=ASKED)
    text = f"{ASKED} {QUERY}"
    assert np.allclose(
        asked[0], model.encode(text, task=INSTRUCTED, prompt_name=INSTRUCTED), atol=1e-6
    )
    assert np.abs(asked - model.encode_query(text)).max() > 1e-3, "the copy, not the base"
    two = post(client, input=[QUERY, QUERY], instruction=[ASKED, "Name the builder."])
    assert np.allclose(two[0], asked[0], atol=1e-5) and not np.allclose(two[0], two[1], atol=1e-3)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"input": "x", "instructions": "y"}, "instructions"),
        ({"input": []}, "input"),
        ({"input": "  "}, "input"),
        ({"input": [[1, 2]]}, "input"),
        ({"input": ["a", "b"], "instruction": ["c"]}, "1 instructions for 2 queries"),
        ({"input": ["a", "b"], "instruction": ["c", ""]}, "instruction 2 of 2 is empty"),
        ({"input": ["a", "b"], "instruction": ["c", " "]}, "instruction 2 of 2 is empty"),
        ({"input": ["a", "b"], "instruction": []}, "0 instructions for 2 queries"),
        ({"input": "x", "instruction": "y", "input_type": "document"}, "input_type"),
        ({"input": "x", "dimensions": 7}, "dimensions"),
        ({"input": "x", "encoding_format": "hex"}, "encoding_format"),
        ([], "valid dictionary"),
    ],
)
def test_a_request_that_would_be_misread_is_refused_at_its_field(
    client: TestClient, body: Any, place: str
) -> None:
    answer = client.post("/v1/embeddings", json=body)
    assert answer.status_code == 400 and place in answer.json()["error"]["message"]


def test_a_blank_instruction_is_none(client: TestClient) -> None:
    query = {"input": QUERY, "input_type": "query"}
    assert np.array_equal(post(client, **query, instruction="  "), post(client, **query))


def test_an_exported_copy_reads_nothing_but_instructed_queries(
    folder: Path, tmp_path: Path
) -> None:
    part = exported_part(load_model(str(folder)))
    part.save(str(tmp_path / "copy"), create_model_card=False)
    memory = {"template": "{instruction} {query}", "settings": {"trained_side": "query"}}
    (tmp_path / "copy" / "inf_embed.json").write_text(json.dumps(memory))
    with TestClient(app(Embedder(str(tmp_path / "copy")))) as copy:
        query = {"input": "x", "input_type": "query"}
        for body in ({"input": "x"}, query, query | {"instruction": [""]}):
            answer = copy.post("/v1/embeddings", json=body)
            assert answer.status_code == 400 and "trained copy" in answer.json()["error"]["message"]
        found = post(copy, input=QUERY, instruction=ASKED)
    model: Any = load_model(str(folder))
    assert np.allclose(found[0], model.encode_query(QUERY, instruction=ASKED), atol=1e-6)
    with pytest.raises(BadInput, match="would not fit the index"):  # an evaluation, a search
        load_model(str(tmp_path / "copy")).encode_document(["a passage"])


def test_vectors_have_the_length_that_the_index_has(tmp_path: Path) -> None:
    """An index of inner products by a base whose vectors are not of length one."""
    from sentence_transformers import SentenceTransformer

    unit = load_model("tiny-random-bert")
    base = SentenceTransformer(modules=list(unit)[:2])
    base.save(str(tmp_path / "base"), create_model_card=False)
    settings = {"base_model": str(tmp_path / "base"), "trained_side": "query"}
    load_backbone(parse_settings(settings)).save(str(tmp_path / "doors"), create_model_card=False)
    with TestClient(app(Embedder(str(tmp_path / "doors")))) as client:
        served = post(client, input="a passage")[0]
    own = np.asarray(base.encode_document("a passage"))
    assert abs(np.linalg.norm(own) - 1) > 0.1 and np.allclose(served, own, atol=1e-6)


def test_what_is_no_json_is_refused_and_the_server_goes_on(client: TestClient) -> None:
    assert client.post("/v1/embeddings", content=b"{").status_code == 400
    assert client.get("/v1/models").json()["data"][0]["id"] == "three-doors"


def test_a_token_is_required_where_one_is_set(folder: Path) -> None:
    client = TestClient(app(Embedder(str(folder)), "secret"))
    assert client.post("/v1/embeddings", json={"input": "x"}).status_code == 401
    assert client.get("/v1/models").status_code == 401
    headers = {"Authorization": "Bearer secret"}
    assert client.post("/v1/embeddings", json={"input": "x"}, headers=headers).status_code == 200


def is_healthy(url: str) -> bool:
    try:
        return bool(httpx.get(f"{url}/health").json() == {"status": "ok"})
    except httpx.ConnectError:
        return False


@pytest.mark.long
def test_openais_own_client_reads_a_served_model(folder: Path) -> None:
    port = free_port()
    words = [*run_module("app.cli.main"), "models", "serve", str(folder), "--port", str(port)]
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's `&` ignores it
    with subprocess.Popen([sys.executable, *words], preexec_fn=heard) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(lambda: is_healthy(url))
            client = OpenAI(base_url=f"{url}/v1", api_key="none")
            more = {"instruction": ASKED}
            found = client.embeddings.create(model="any", input=[QUERY], extra_body=more)
            own = load_model(str(folder)).encode_query([QUERY], instruction=ASKED)
            assert np.allclose(found.data[0].embedding, own[0], atol=1e-6)
            assert found.usage.prompt_tokens > 0
            with pytest.raises(BadRequestError, match="dimensions"):
                client.embeddings.create(model="any", input="x", dimensions=3)
        finally:
            process.send_signal(signal.SIGINT)
    assert process.returncode == 0


@pytest.mark.long
def test_an_address_beyond_this_machine_needs_a_token(folder: Path) -> None:
    words = [*run_module("app.cli.main"), "models", "serve", str(folder), "--host", "0.0.0.0"]
    kept = {name: of for name, of in os.environ.items() if name != "INF_EMBEDDINGS_TOKEN"}
    done = subprocess.run(
        [sys.executable, *words], env=kept, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1 and "INF_EMBEDDINGS_TOKEN" in done.stderr
