"""Jobs of the trainer's tests: claimed in this process, with a tiny random model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from job_metrics import metric_points
from trainer_release import write_release

from db.jobs import jobs
from db.jobs.runner import Cancelled, JobHandle
from db.store.store import Store

if TYPE_CHECKING:
    from trainer.settings.settings import TrainSettings

TINY = {
    "base_model": "tiny-random-bert",
    "rows_per_batch": "4",
    "held_out": "0.2",
    "natural_probe": "off",
    "precision": "fp32",  # auto times both types: what tests compare must not depend on it
}


def claim(store: Store, config: dict[str, Any], kind: str = "train") -> JobHandle:
    """A handle on a job of this process."""
    with store.write() as session:
        job = jobs.enqueue_job(session, kind, config, started_by="test")
        claimed = jobs.claim_job(session, job.id)
        assert claimed is not None
        session.commit()
    return JobHandle(store, claimed.id, claimed.attempt)


def train_until(store: Store, config: dict[str, Any], *, step: int) -> JobHandle:
    """Train, stop after that step; returns the job's handle to go on with."""
    from trainer.launch.here import train

    handle = claim(store, config)
    record = handle.metrics

    def stop_at_step(at: int, values: dict[str, float]) -> None:
        record(at, values)
        if at == step:
            handle.stop()

    handle.metrics = stop_at_step  # type: ignore[method-assign]
    with pytest.raises(Cancelled):
        train(handle)
    return JobHandle(store, handle.id, handle.attempt)


def taught_losses(store: Store, config: dict[str, Any]) -> list[float]:
    """Train, and return the teacher's loss of every step."""
    from trainer.launch.here import train

    handle = claim(store, config)
    train(handle)
    with store.read() as session:
        points = metric_points(session, handle.id)
    return [point.value for point in points if point.name == "loss/teacher"]


def config_for(tmp_path: Path, count: int = 10, **settings: str) -> dict[str, Any]:
    release = write_release(tmp_path / "release", count)
    return {"release": str(release), "out": str(tmp_path / "out"), "settings": TINY | settings}


def fit_few(tmp_path: Path, settings: "TrainSettings", **given: Any) -> dict[str, Any]:
    """Fit the settings' model on eight groups, without a job; given: what `fit` takes besides."""
    from trainer.data.release_files import read_release
    from trainer.loop.fitting import fit
    from trainer.model.backbone import load_backbone

    return fit(
        load_backbone(settings),
        read_release(write_release(tmp_path / "release", 8)).groups,
        settings,
        tmp_path / "work",
        report=lambda *_: None,
        stream=lambda *_: None,
        **given,
    )
