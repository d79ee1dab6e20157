"""The task file in a checkpoint and in a release: mteb's figures are the product's, without us."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from exporting import export
from hub_server import Hub
from records_world import make_run
from trainer_jobs import claim, config_for

from analysis.files.rows import MTEB_TASK
from db.errors import Refused
from db.store.store import Store
from db.values import HELD_OUT_FILE
from trainer.evaluate.benchmarks import held_out_benchmark
from trainer.evaluate.job import evaluate
from trainer.launch.here import train
from trainer.model.tiny import build_tiny_model

MEASURES = {
    "ndcg@10": "ndcg_at_10",
    "strict": "strict",
    "instruction-flip": "instruction_flip",
    "query-flip": "query_flip",
}
WITHOUT_US = """
import importlib.util, pathlib, runpy, sys
sys.path[:] = [p for p in sys.path if not (pathlib.Path(p or ".") / "trainer").is_dir()]
assert not any(map(importlib.util.find_spec, ("trainer", "db", "inf_studio")))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def scores_of_task(*words: str | Path) -> dict[str, float]:
    """What the task file prints where nothing of this repository can be imported."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_US, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def same(ours: dict[str, Any], theirs: dict[str, float]) -> None:
    """mteb rounds nDCG to five digits."""
    for name, key in MEASURES.items():
        assert theirs[key] == pytest.approx(ours[name], abs=1e-5), name


@pytest.mark.long
@pytest.mark.parametrize("side", ["both", "query"])
def test_a_checkpoint_carries_what_reproduces_its_card(
    sqlite_store: Store, tmp_path: Path, side: str
) -> None:
    given = {"trained_side": side, "objective": "P", "held_out": "0.4", "max_steps": "3"}
    given |= {"template": "{query} ({instruction})", "learning_rate": "1e-2"}
    given |= {"query_prefix": "query: "}
    result = train(claim(sqlite_store, config_for(tmp_path, 25, **given)))
    folder = tmp_path / "moved"
    shutil.move(result["path"], folder)
    same(result["held_out"]["after"], scores_of_task(folder / MTEB_TASK.name))
    assert MTEB_TASK.name in (folder / "README.md").read_text()
    assert len((folder / HELD_OUT_FILE).read_text().splitlines()) == result["held_out"]["groups"]


@pytest.mark.long
@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_release_with_a_held_out_split_carries_its_task(
    sqlite_store: Store, tmp_path: Path, format: str
) -> None:
    make_run(sqlite_store, kept=12, dropped=3)
    out = tmp_path / "out"
    export(sqlite_store, out, held_out=0.5, format=format, include_dropped=True)
    model = str(tmp_path / "model")
    build_tiny_model("tiny-random-bert").save(model, create_model_card=False)
    wanted = {"models": [model], "release": str(out), "with_base": False}
    ours = evaluate(claim(sqlite_store, wanted, kind="evaluate"))["models"][0]["metrics"]
    same(ours, scores_of_task(out / MTEB_TASK.name, model))


def test_a_release_without_a_held_out_split_has_no_task(
    sqlite_store: Store, tmp_path: Path
) -> None:
    make_run(sqlite_store, kept=4, dropped=0)
    export(sqlite_store, tmp_path / "out")
    assert not (tmp_path / "out" / MTEB_TASK.name).exists()


def test_a_changed_task_is_not_pushed(sqlite_store: Store, tmp_path: Path) -> None:
    from curation.hub.folder import require_as_exported
    from db.release.releases import get_release

    make_run(sqlite_store, kept=6, dropped=0)
    export(sqlite_store, tmp_path / "out", held_out=0.5)
    with sqlite_store.read() as session:
        release = get_release(session, 1)
        require_as_exported(release, lambda: None)
        with (tmp_path / "out" / MTEB_TASK.name).open("a") as file:
            file.write("print('added')\n")
        with pytest.raises(Refused, match=r"mteb_task\.py differs"):
            require_as_exported(release, lambda: None)


@pytest.mark.long
def test_the_task_asks_what_our_evaluation_asks(sqlite_store: Store, tmp_path: Path) -> None:
    from trainer.data.release_files import read_release

    make_run(sqlite_store, kept=12, dropped=0)
    export(sqlite_store, tmp_path / "out", held_out=0.5)
    data = task_of(tmp_path / "out").dataset["default"]["test"]
    groups = [each for each in read_release(tmp_path / "out").groups if each.set_aside]
    ours = held_out_benchmark("own", groups)
    assert {row["id"]: row["text"] for row in data["corpus"]} == ours.corpus
    assert data["relevant_docs"] == ours.judgments
    asked = {row["id"]: (row["instruction"], row["text"]) for row in data["queries"]}
    assert asked == {name: (one.instruction, one.query) for name, one in ours.questions.items()}


def task_of(folder: Path) -> Any:
    """The task of a release's folder, loaded."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("task", folder / MTEB_TASK.name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    task = module.HeldOutGroups()
    task.load_data()
    return task


def require_same_questions(folder: Path) -> None:
    """What the task asks is what our evaluation asks, its passages and judgments by text."""
    from trainer.data.release_files import read_release

    groups = [each for each in read_release(folder).groups if each.set_aside]
    ours, data = held_out_benchmark("own", groups), task_of(folder).dataset["default"]["test"]
    text_of = {row["id"]: row["text"] for row in data["corpus"]}
    assert set(text_of.values()) == set(ours.corpus.values())
    asked = {row["id"]: (row["instruction"], row["text"]) for row in data["queries"]}
    assert asked == {name: (one.instruction, one.query) for name, one in ours.questions.items()}
    for name in asked:
        right = {text_of[document] for document in data["relevant_docs"][name]}
        assert right == {ours.corpus[document] for document in ours.judgments[name]}
        ranked = (data["top_ranked"] or {}).get(name, text_of)
        left_out = set(text_of.values()) - {text_of[document] for document in ranked}
        assert left_out == {ours.corpus[one] for one in ours.excluded.get(name, ())}


@pytest.mark.long
@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_release_of_promptrievers_shape_carries_a_task_that_mteb_reads(
    sqlite_store: Store, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from curation_runs import add_dataset, run_curation
    from openai_server import Server

    add_dataset(sqlite_store, pairs=16)
    with Server(schema="taken") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        asked = {"provider": "openai", "recipe": "promptriever", "settings": ["model=small"]}
        run_id = run_curation(sqlite_store, dataset="small", **asked)["run_id"]
    out = tmp_path / "out"
    export(sqlite_store, out, dataset="small", runs=[run_id], held_out=0.4, format=format)
    require_same_questions(out)
    model = str(tmp_path / "model")
    build_tiny_model("tiny-random-bert").save(model, create_model_card=False)
    wanted = {"models": [model], "release": str(out), "with_base": False}
    ours = evaluate(claim(sqlite_store, wanted, kind="evaluate"))["models"][0]["metrics"]
    theirs = scores_of_task(out / MTEB_TASK.name, model)
    assert set(theirs) == {"ndcg_at_10"}
    assert theirs["ndcg_at_10"] == pytest.approx(ours["ndcg@10"], abs=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", ["five", "reordered", "with lists"])
def test_the_task_of_another_shape_has_its_questions_and_measures(
    sqlite_store: Store, tmp_path: Path, name: str
) -> None:
    from listed_release import SHAPE, released
    from shaped_recipes import SHAPES

    shape = SHAPE if name == "with lists" else SHAPES[name]
    out = released(tmp_path / "out", shape, held_out=True)
    shutil.copy(MTEB_TASK, out)
    require_same_questions(out)
    model = str(tmp_path / "model")
    build_tiny_model("tiny-random-bert").save(model, create_model_card=False)
    wanted = {"models": [model], "release": str(out), "with_base": False}
    ours = evaluate(claim(sqlite_store, wanted, kind="evaluate"))["models"][0]["metrics"]
    theirs = scores_of_task(out / MTEB_TASK.name, model)
    assert set(theirs) == {key for measure, key in MEASURES.items() if measure in ours}
    for measure, key in MEASURES.items():
        if measure in ours:
            assert theirs[key] == pytest.approx(ours[measure], abs=1e-5), measure


@pytest.mark.long
def test_held_out_groups_go_to_the_hub_only_with_their_release(
    sqlite_store: Store, tmp_path: Path, hub: Hub, there: dict[str, str], inf: Any
) -> None:
    make_run(sqlite_store, kept=12, dropped=0)
    export(sqlite_store, tmp_path / "release")
    given = {"base_model": "tiny-random-bert", "max_steps": "1", "held_out": "0.4"}
    given |= {"natural_probe": "off", "precision": "fp32"}
    wanted = {"release": "1", "out": str(tmp_path / "out"), "settings": given}
    train(claim(sqlite_store, wanted))
    push = ("hub", "push", "--checkpoint", 1, "--repo", "ada/model", "--json")
    assert inf(*push, **there).code == 0
    assert HELD_OUT_FILE not in hub.files("models/ada/model")
    for public, repo in ((), "ada/other"), (("--public",), "ada/third"):
        released = inf("releases", "push", 1, "--repo", f"{repo}-set", *public, "--json", **there)
        assert released.code == 0, released.out + released.err
        # the tag of the first names other files
        again = ("models", "push", 1, "--repo", repo, "--public", "--json")
        assert inf(*again, **there).code == 0
    assert HELD_OUT_FILE not in hub.files("models/ada/other")
    found = hub.files("models/ada/third")[HELD_OUT_FILE]
    assert found == (tmp_path / "out" / HELD_OUT_FILE).read_bytes()
