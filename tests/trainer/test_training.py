"""Training from a release to a checkpoint folder, with tiny random models and with MiniLM."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Ran
from job_metrics import metric_points
from trainer_jobs import claim, config_for, train_until
from trainer_release import write_release

from app.access.identity import owner
from app.jobs import launching
from db.errors import BadInput, InfError, Refused
from db.jobs import jobs
from db.jobs.runner import JobHandle
from db.outcome.checkpoints import get_checkpoint, list_checkpoints
from db.outcome.evaluations import list_evaluations
from db.store.store import Store
from trainer.launch.here import train
from trainer.loop.best import newest_state
from trainer.model.backbone import load_model
from trainer.model.weights import read_weights, write_weights


def losses(store: Store, job_id: int) -> dict[int, float]:
    with store.read() as session:
        points = metric_points(session, job_id)
    return {point.step: point.value for point in points if point.name == "loss"}


def test_a_training_gives_a_folder_a_row_and_a_curve(store: Store, tmp_path: Path) -> None:
    handle = claim(store, config_for(tmp_path, epochs="2"))
    result = train(handle)
    out = Path(result["path"])
    assert {"model.safetensors", "inf_embed.json", "README.md"} <= {f.name for f in out.iterdir()}
    assert not [f for f in out.rglob("*") if f.suffix in (".bin", ".pt", ".pkl")]
    assert result["steps"] == 4 and result["held_out"]["groups"] == 2
    following = {"strict", "instruction-flip", "query-flip", "right-first"}
    controls = {f"{half}-alone:{name}" for half in ("query", "instruction") for name in following}
    assert set(result["held_out"]["after"]) == {
        *("ndcg@10", "map", "mrr", "p-mrr", "plain-ndcg@10", "sicr", "wise"),
        *(following | controls),
    }
    assert set(result["held_out"]["bm25"]) == following | controls | {"plain-ndcg@10"}
    assert list(losses(store, handle.id)) == [1, 2, 3, 4]
    with store.read() as session:
        checkpoint = get_checkpoint(session, result["checkpoint_id"])
        names = {(p.name, p.step) for p in metric_points(session, handle.id)}
    assert checkpoint.path == str(out) and checkpoint.config["epochs"] == 2.0
    assert {("learning_rate", 1), ("ndcg@10", 0), ("ndcg@10", 4)} <= names
    assert not (tmp_path / "inf-home" / "training" / handle.key).exists()


def test_the_card_states_the_models_origin(sqlite_store: Store, tmp_path: Path) -> None:
    result = train(claim(sqlite_store, config_for(tmp_path, max_steps="1")))
    card = (Path(result["path"]) / "README.md").read_text()
    for message in (
        "ℓ_P",
        "{instruction} {query}",
        "bridges",
        "CC0-1.0",
        "**Offline data.**",
        "ndcg@10",
    ):
        assert message in card
    memory = json.loads((Path(result["path"]) / "inf_embed.json").read_text())
    assert memory["split"] == {
        "fraction": 0.2,
        "seed": 42,
        "choice": "kept",
        "judge": "",
        "training_groups": 8,
        "held_out_groups": 2,
        "kept_away": 0,
    }


@pytest.mark.long
def test_a_fresh_process_loads_the_model_and_finds_the_same_vectors(
    sqlite_store: Store, tmp_path: Path
) -> None:
    config = config_for(tmp_path, max_steps="2", query_prefix="query: ", query_tokens="16")
    out = train(claim(sqlite_store, config))["path"]
    here = load_model(out).encode_query(["In metres. how long is the bridge"])
    code = (
        "import sys, numpy; from sentence_transformers import SentenceTransformer as S;"
        "v = S(sys.argv[1]).encode_query(['In metres. how long is the bridge']);"
        "numpy.save(sys.argv[2], v)"
    )
    subprocess.run(
        [sys.executable, "-c", code, out, str(tmp_path / "v.npy")], check=True, capture_output=True
    )
    assert np.array_equal(here, np.load(tmp_path / "v.npy"))
    model = load_model(out)
    assert model.prompts["query"] == "query: " and model[0].query_length == 16


@pytest.mark.parametrize("objective", ["P,I:multi", "P,I,IQ:uni"])
def test_other_objectives_train_too(sqlite_store: Store, tmp_path: Path, objective: str) -> None:
    config = config_for(
        tmp_path, objective=objective, max_steps="2", held_out="0", instructions_sampled="2"
    )
    result = train(claim(sqlite_store, config))
    assert result["loss_last"] > 0 and result["held_out"]["after"] == {}


def test_a_stopped_training_resumes_with_the_same_losses(
    sqlite_store: Store, tmp_path: Path
) -> None:
    given = {"epochs": "3", "save_steps": "1"}
    whole = claim(sqlite_store, config_for(tmp_path / "a", **given))
    train(whole)
    again = train_until(sqlite_store, config_for(tmp_path / "b", **given), step=2)
    assert not (tmp_path / "b" / "out").exists()
    half_written = tmp_path / "inf-home" / "training" / again.key / "checkpoint-99"
    half_written.mkdir()
    result = train(again)
    assert result["steps"] == 6
    assert losses(sqlite_store, again.id) == losses(sqlite_store, whole.id)


def test_a_training_stopped_before_an_upgrade_resumes_from_its_state_of_all_weights(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """States written before 24 November 2026 hold the frozen weights too, of a pooler at least."""
    given = {"max_steps": "5", "save_steps": "1", "evaluate_steps": "1", "best_by": "mrr"}
    whole = claim(sqlite_store, config_for(tmp_path / "a", **given))
    train(whole)
    again = train_until(sqlite_store, config_for(tmp_path / "b", **given), step=2)
    work = tmp_path / "inf-home" / "training" / again.key
    states = [path.parent for path in work.rglob("weights.safetensors")]
    assert states
    for state in states:
        older = load_model("tiny-random-bert").state_dict() | read_weights(state)
        assert len(older) > len(read_weights(state))
        write_weights(older, state)
    by_number = work.rename(work.with_name(f"job-{again.id}"))  # as its folder was called
    train(again)
    assert not by_number.exists(), "it went on from there"
    assert losses(sqlite_store, again.id) == losses(sqlite_store, whole.id)


def test_states_older_than_their_job_are_those_of_another_before_a_restore(
    sqlite_store: Store, tmp_path: Path
) -> None:
    job = claim(sqlite_store, config_for(tmp_path, max_steps="1"))
    older = tmp_path / "inf-home" / "training" / f"job-{job.id}"
    older.mkdir(parents=True)
    os.utime(older, (0, 0))
    train(job)
    assert older.is_dir()


def test_a_state_without_a_trained_weight_is_refused_by_the_weights_name(
    sqlite_store: Store, tmp_path: Path
) -> None:
    given = {"max_steps": "5", "save_steps": "1", "lora_rank": "2"}
    again = train_until(sqlite_store, config_for(tmp_path, **given), step=2)
    newest = newest_state(tmp_path / "inf-home" / "training" / again.key)
    assert newest is not None
    state = newest[1]
    older = {  # adapters as they were named before PEFT
        name.replace("lora_A.default.weight", "down").replace("lora_B.default.weight", "up"): value
        for name, value in read_weights(state).items()
    }
    write_weights(older, state)
    with pytest.raises(BadInput, match=r"has no 0\.model\S*lora_A.* Start the training anew"):
        train(again)


def test_the_best_weights_are_kept_and_patience_stops_the_training(
    sqlite_store: Store, tmp_path: Path
) -> None:
    config = config_for(
        tmp_path, epochs="50", evaluate_steps="1", best_by="mrr", patience="3", learning_rate="1e-9"
    )
    handle = claim(sqlite_store, config)
    result = train(handle)
    with sqlite_store.read() as session:
        points = metric_points(session, handle.id)
    scores = {point.step: point.value for point in points if point.name == "mrr" and point.step}
    best = max(scores, key=lambda step: (scores[step], -step))
    assert result["best_step"] == best and result["steps"] == best + 3
    assert result["held_out"]["after"]["mrr"] == pytest.approx(scores[best], abs=1e-6)


@pytest.mark.long
def test_a_killed_training_resumes_with_the_losses_of_an_uninterrupted_one(
    sqlite_store: Store, tmp_path: Path
) -> None:
    kept = {"epochs": "8", "save_steps": "2", "evaluate_steps": "4", "best_by": "mrr"}
    whole = claim(sqlite_store, config_for(tmp_path / "a", **kept))
    wanted = train(whole)
    with sqlite_store.write() as session:
        job = jobs.enqueue_job(session, "train", config_for(tmp_path / "b", **kept))
        claimed = jobs.claim_job(session, job.id)
        assert claimed is not None
        session.commit()
    child = launching.start_process(sqlite_store, claimed)
    deadline = time.monotonic() + 240
    while child.poll() is None and time.monotonic() < deadline:
        with sqlite_store.write() as session:
            session.connection()  # the lock of the writer: the child stores nothing and cannot end
            if max(losses(sqlite_store, claimed.id), default=0) >= 5:
                child.kill()
                child.wait()
        time.sleep(0.05)
    done = max(losses(sqlite_store, claimed.id))
    assert 5 <= done < 16
    result = train(JobHandle(sqlite_store, claimed.id, claimed.attempt))
    assert losses(sqlite_store, claimed.id) == losses(sqlite_store, whole.id)
    assert result["held_out"]["after"] == wanted["held_out"]["after"]
    assert result["best_step"] == wanted["best_step"]


def test_max_seconds_stops_cleanly_and_writes_the_model(
    sqlite_store: Store, tmp_path: Path
) -> None:
    result = train(claim(sqlite_store, config_for(tmp_path, epochs="10000", max_seconds="2")))
    assert result["seconds"] >= 2 and result["steps"] < 20000
    assert (Path(result["path"]) / "model.safetensors").exists()


def test_a_nan_loss_stops_and_names_the_step(sqlite_store: Store, tmp_path: Path) -> None:
    config = config_for(tmp_path, learning_rate="1e30", held_out="0", epochs="5")
    with pytest.raises(BadInput, match=r"the loss is nan at step \d"):
        train(claim(sqlite_store, config))
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten(sqlite_store: Store, tmp_path: Path) -> None:
    config = config_for(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(Refused, match="is not empty"):
        train(claim(sqlite_store, config))


@pytest.mark.parametrize("below", ["", "deeper/model"])
def test_a_file_as_the_checkpoints_place_is_refused_before_the_first_step(
    sqlite_store: Store, tmp_path: Path, below: str
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    config = config_for(tmp_path) | {"out": str(tmp_path / "mine.txt" / below)}
    with pytest.raises(Refused, match=r"mine\.txt is a file: a checkpoint is a folder"):
        train(claim(sqlite_store, config))
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_full_disk_leaves_nothing_half_written(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers import SentenceTransformer

    def full(self: object, path: str, **_: object) -> None:
        Path(path).mkdir()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SentenceTransformer, "save", full)
    with pytest.raises(BadInput, match="no space left on the disk"):
        train(claim(sqlite_store, config_for(tmp_path, max_steps="1", held_out="0")))
    assert [f.name for f in tmp_path.iterdir() if "out" in f.name] == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base_model": "./nowhere"}, "no model folder"),
        ({"base_model": "nobody/nothing-at-all"}, "cannot be loaded"),
        ({"base_model": "tiny-random-abacus"}, "there are tiny-random-bert"),
        ({"passage_tokens": "5000"}, "passage_tokens=1024 or less"),
    ],
)
def test_an_unusable_model_is_refused_with_the_remedy(
    sqlite_store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    message: str,
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadInput) as refused:
        train(claim(sqlite_store, config_for(tmp_path, **settings)))
    assert message in str(refused.value)


def test_weights_that_are_pickles_are_refused(sqlite_store: Store, tmp_path: Path) -> None:
    import torch

    out = train(claim(sqlite_store, config_for(tmp_path, max_steps="1", held_out="0")))["path"]
    weights = load_model(out)[0].model.state_dict()
    torch.save(weights, Path(out) / "pytorch_model.bin")
    (Path(out) / "model.safetensors").unlink()
    with pytest.raises(BadInput, match="weights are safetensors"):
        load_model(out)


def test_the_command_refuses_wrong_settings_before_anything_loads(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    ran = inf("train", "--release", tmp_path, "--out", tmp_path / "out", "epoch=3", "--json")
    assert ran.code == 2 and "did you mean 'epochs'" in ran.json["error"]
    ran = inf("train", "--release", "77", "--out", tmp_path / "out", "--json")
    assert ran.code == 1 and "no release 77" in ran.json["error"]
    assert inf("evaluate", "--model", "x", "--json").code == 2


@pytest.mark.long
def test_minilm_learns_from_a_release_and_is_scored_beside_its_base(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    release, out = write_release(tmp_path / "release", 24), tmp_path / "out"
    settings = ("rows_per_batch=4", "held_out=0.25", "max_steps=5", "natural_probe=off")
    ran = inf("train", "--release", release, "--out", out, *settings, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["loss_last"] < ran.json["loss_first"]
    ran = inf("evaluate", "--model", out, "--release", release, "--json")
    assert ran.code == 0, ran.err
    base, trained = ran.json["models"]
    assert base["model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert trained["metrics"]["p-mrr"] > base["metrics"]["p-mrr"]
    assert ran.json["held_out"] == {
        "fraction": 0.25,
        "seed": 42,
        "choice": "kept",
        "judge": "",
        "groups": 6,
    }
    with sqlite_store.read() as session:
        (checkpoint,) = list_checkpoints(session)
        stored = list_evaluations(session)
        evaluation = next(e for e in stored if e.checkpoint_id == checkpoint.id)
    assert evaluation.metrics == trained["metrics"] and evaluation.per_query
    after = checkpoint.summary["held_out"]["after"]
    assert after == {name: pytest.approx(evaluation.metrics[name], abs=1e-6) for name in after}


@pytest.mark.long
def test_a_detached_training_can_be_cancelled(sqlite_store: Store, tmp_path: Path) -> None:
    config = config_for(tmp_path, epochs="100000")

    def stop_when_it_trains(job: Any) -> None:
        if job.done >= 1:
            with sqlite_store.write() as session:
                jobs.request_stop(session, job.id)
                session.commit()

    with pytest.raises(InfError):
        launching.run_in_foreground(
            sqlite_store, "train", config, actor=owner("test"), watch=stop_when_it_trains
        )
    with sqlite_store.read() as session:
        (job,) = jobs.list_jobs(session)
    assert job.status == "cancelled" and "loss" in job.message
