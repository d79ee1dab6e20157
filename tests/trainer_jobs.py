"""Jobs of the trainer's tests: claimed in this process, with a tiny random model."""

from pathlib import Path
from typing import Any

from job_metrics import metric_points
from trainer_release import write_release

from db.jobs import jobs
from db.jobs.runner import JobHandle
from db.store.store import Store

TINY = {
    "base_model": "tiny-random-bert",
    "rows_per_batch": "4",
    "held_out": "0.2",
    "natural_probe": "off",
}


def claim(store: Store, config: dict[str, Any], kind: str = "train") -> JobHandle:
    """A handle on a job of this process."""
    with store.write() as session:
        job = jobs.enqueue_job(session, kind, config, started_by="test")
        claimed = jobs.claim_job(session, job.id)
        assert claimed is not None
        session.commit()
    return JobHandle(store, claimed.id, claimed.attempt)


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
