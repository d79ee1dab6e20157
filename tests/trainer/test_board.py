"""TensorBoard's log holds what the store holds."""

import sys
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from job_metrics import metric_points
from trainer_jobs import claim, config_for

from db.errors import BadInput
from db.store.store import Store
from trainer.launch.here import train
from trainer.report import board


@pytest.mark.parametrize("asked", [{"tensorboard": "on"}, {"report_to": "tensorboard"}])
def test_tensorboards_log_holds_what_the_store_holds(
    sqlite_store: Store, tmp_path: Path, asked: dict[str, str]
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    handle = claim(sqlite_store, config_for(tmp_path, max_steps="3", **asked))
    train(handle)
    read = EventAccumulator(str(tmp_path / "inf-home" / "tensorboard" / f"job-{handle.id}"))
    read.Reload()
    with sqlite_store.read() as session:
        points = metric_points(session, handle.id)
    wanted = {(p.name.replace("@", "_at_"), p.step): p.value for p in points}
    written = {
        (name, event.step): event.value
        for name in read.Tags()["scalars"]
        for event in read.Scalars(name)
    }
    assert {("loss", 3), ("ndcg_at_10", 0), ("p-mrr", 3)} <= written.keys()
    assert written == {key: pytest.approx(value, rel=1e-6) for key, value in wanted.items()}


def test_without_the_package_the_error_names_what_to_install(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = util.find_spec
    monkeypatch.setattr(
        board, "find_spec", lambda name: None if name == "tensorboard" else found(name)
    )
    with pytest.raises(BadInput, match=r"inf-studio\[tensorboard\]"):
        train(claim(sqlite_store, config_for(tmp_path, tensorboard="on")))
    assert not (tmp_path / "inf-home" / "tensorboard").exists()


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_tracker_gets_the_numbers_of_the_store_in_a_run_that_can_be_continued(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Neither package is installed: this stands for the three calls that both have."""
    tracker = ModuleType(name)
    calls: list[tuple[str, Any]] = []
    tracker.init = lambda **given: calls.append(("init", given))  # type: ignore[attr-defined]
    tracker.log = lambda values, step: calls.append((str(step), values))  # type: ignore[attr-defined]
    tracker.finish = lambda: calls.append(("finish", None))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, name, tracker)
    found = util.find_spec
    monkeypatch.setattr(
        board, "find_spec", lambda wanted: tracker if wanted == name else found(wanted)
    )
    handle = claim(sqlite_store, config_for(tmp_path, max_steps="2", report_to=name))
    train(handle)
    (first, given), *logged, (last, _) = calls
    assert (first, last) == ("init", "finish")
    assert given["name"] == f"job-{handle.id}" and given["resume"] == "allow"
    assert given["config"]["max_steps"] == 2
    with sqlite_store.read() as session:
        points = metric_points(session, handle.id)
    assert {
        (key, int(step)): value for step, values in logged for key, value in values.items()
    } == {(point.name, point.step): point.value for point in points}


def test_a_tracker_that_is_not_installed_is_refused(
    monkeypatch: pytest.MonkeyPatch, sqlite_store: Store, tmp_path: Path
) -> None:
    monkeypatch.setattr(board, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match="report_to=wandb needs the package wandb"):
        train(claim(sqlite_store, config_for(tmp_path, report_to="wandb")))
