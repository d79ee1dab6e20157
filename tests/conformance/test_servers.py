"""A run against servers that others wrote: llama.cpp's, and LiteLLM's proxy before it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import programs
import pytest
from programs import INF, free_port

MODEL = "smollm2-135m"
PAIRS = 4
LLAMA = Path(__file__).parents[1] / "real_server.py"
KEY = "sk-conformance"


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    with programs.program([sys.executable, "-P", str(LLAMA)]) as running:
        assert running.stdout is not None
        yield f"{running.stdout.readline().strip()}/v1"


@pytest.fixture(scope="module")
def litellm(llama: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    config = tmp_path_factory.mktemp("litellm") / "config.yaml"
    route = {"model": f"openai/{MODEL}", "api_base": llama, "api_key": "none"}
    config.write_text(json.dumps({"model_list": [{"model_name": MODEL, "litellm_params": route}]}))
    command = Path(sys.executable).with_name("litellm")
    words = [str(command), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    alive = f"http://127.0.0.1:{port}/health/liveliness"
    with programs.server(words, alive, LITELLM_MASTER_KEY=KEY):
        yield f"http://127.0.0.1:{port}/v1"


def inf(home: Path, *words: object, **environment: str) -> tuple[int, Any]:
    """Exit status and JSON of a command."""
    done = subprocess.run(
        [INF, *map(str, words), "--json"],
        env=os.environ | {"INF_HOME": str(home)} | environment,
        stdout=subprocess.PIPE,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def home(material: Path, tmp_path: Path) -> Path:
    """A store with a few pairs of the demo set."""
    demo = Path(__file__).parents[2] / "curation" / "demo"
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text("".join((demo / "pairs.jsonl").read_text().splitlines(True)[:PAIRS]))
    found = tmp_path / "home"
    inf(found, "store", "upgrade")
    files = (f"--pairs={pairs}", f"--passages={demo / 'passages.jsonl'}", "--licence=cc0-1.0")
    code, _ = inf(found, "datasets", "import", "few", *files)
    assert code == 0
    return found


def ended(home: Path, url: str, key: str) -> Any:
    settings = ("--set", f"model={MODEL}", "--set", "max_output_tokens=48")
    code, result = inf(
        home,
        *("curate", "few", "--provider", "openai", *settings, "--no-guard"),
        OPENAI_BASE_URL=url,
        OPENAI_API_KEY=key,
    )
    return code, result


@pytest.mark.parametrize("server", ["llama", "litellm"])
def test_a_run_ends_with_every_group_decided(
    request: pytest.FixtureRequest, home: Path, server: str
) -> None:
    """The model is far too weak to keep much: what is tried is the way there and back."""
    code, result = ended(home, request.getfixturevalue(server), KEY)
    assert code == 0 and result["status"] == "done", result
    assert result["kept"] + sum(result["dropped"].values()) == PAIRS
    assert not {"server_error", "request_refused"} & set(result["dropped"])
    assert result["calls"]["made"] >= PAIRS


def test_a_key_that_the_proxy_refuses_pauses_the_run(home: Path, litellm: str) -> None:
    code, result = ended(home, litellm, "sk-wrong")
    assert code != 0
    assert result["code"] not in ("", None) and result["remedy"], result
