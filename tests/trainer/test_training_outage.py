"""A training while its database is away: it waits or goes on, and ends by itself."""

import threading
import time
from pathlib import Path

import pytest
from flaky_store import comes_and_goes
from job_metrics import metric_points
from postgres_cluster import Cluster
from trainer_jobs import claim, config_for

from db.jobs import jobs
from db.jobs.runner import JobHandle
from db.jobs.runner import run as run_handler
from db.rows import Row
from db.store import schema
from db.store.store import Store, open_store
from trainer.launch.here import base_pool, estimate, train
from trainer.launch.plan import plan_groups
from trainer.launch.request import TrainStart
from trainer.model.backbone import load_backbone
from trainer.settings.settings import parse_settings


def test_an_estimate_waits_for_its_store(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = claim(sqlite_store, config_for(tmp_path) | {"estimate": True})
    with comes_and_goes(sqlite_store, monkeypatch) as met:
        found = estimate(handle, TrainStart.read(handle.config))
    assert found["estimate"] and met


def test_the_vectors_of_the_base_model_wait_for_their_store(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_for(tmp_path, trained_side="query", objective="P,IQ:uni", pool_passages="-1")
    settings = parse_settings(config["settings"])
    groups = plan_groups(sqlite_store, config["release"], settings)
    handle, model = claim(sqlite_store, config), load_backbone(settings)
    with comes_and_goes(sqlite_store, monkeypatch) as met:
        pool = base_pool(handle, model, groups, settings)
    assert len(pool.vectors) and "write" in met and "read" in met


class Trained(Row):
    """What a training returns, as far as this test reads it."""

    steps: int


@pytest.mark.long
@pytest.mark.postgres
def test_a_training_lives_through_an_outage_of_its_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped at step 3 of 12, and started again as the training is at its last steps."""
    with Cluster() as cluster:
        url = cluster.create()
        monkeypatch.setenv("INF_DATABASE_URL", url)
        store = open_store(url)
        schema.upgrade(store)
        handle = claim(store, config_for(tmp_path, max_steps="12"))
        record, outage = handle.metrics, threading.Thread(target=start_again, args=(cluster,))

        def metrics(step: int, values: dict[str, float]) -> None:
            if step == 3 and not outage.ident:
                cluster.stop(how="fast")
                outage.start()
            record(step, values)

        handle.metrics = metrics  # type: ignore[method-assign]
        beating = threading.Thread(target=handle.beat_until_over)
        beating.start()

        def trained(handle: JobHandle) -> Trained:
            return Trained(steps=train(handle)["steps"])

        assert run_handler(handle, trained) == 0
        outage.join()
        beating.join()
        with store.read() as session:
            job = jobs.get_job(session, handle.id)
            assert job.status == "done" and job.result == {"steps": 12}
            losses = [one.step for one in metric_points(session, job.id) if one.name == "loss"]
        store.close()
    assert losses == list(range(1, 13))


def start_again(cluster: Cluster) -> None:
    time.sleep(4.0)
    cluster.start()
