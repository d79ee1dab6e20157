"""TensorBoard's log holds what the store holds."""

from importlib import util
from pathlib import Path

import pytest
from job_metrics import metric_points
from trainer_jobs import claim, config_for

from db.errors import BadInput
from db.store.store import Store
from trainer.loop.job import train
from trainer.report import board


def test_tensorboards_log_holds_what_the_store_holds(sqlite_store: Store, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    handle = claim(sqlite_store, config_for(tmp_path, max_steps="3", tensorboard="on"))
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
