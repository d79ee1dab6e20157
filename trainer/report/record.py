"""What stays of a training: what the checkpoint folder remembers, and its row in the store."""

from pathlib import Path
from typing import Any

from sqlalchemy import select

from db.events import record_event
from db.jobs.jobs import get_job
from db.jobs.runner import JobHandle
from db.outcome.checkpoints import record_checkpoint
from db.store.store import Store
from db.tables import Checkpoint, Release
from trainer.data.splitting import Groups
from trainer.report.origins import origins_of
from trainer.report.public_name import portable_settings, without_folders
from trainer.settings.settings import TrainSettings


def training_memory(
    settings: TrainSettings, groups: Groups, job: JobHandle, result: dict[str, Any]
) -> dict[str, Any]:
    """What the checkpoint keeps about how it was made, for inference and evaluation.

    It goes where the weights go: folders of this machine are named by their last part.
    """
    release = groups.release
    return {
        "format": 1,
        "template": settings.parsed_template.text,
        "chat_template": settings.chat_template,
        "interaction": settings.interaction,
        "objective": settings.objective,
        "temperature": settings.temperature,
        "settings": portable_settings(settings),
        "release": {
            "name": release.name,
            "release_id": release.release_id,
            "content_sha256": release.content_sha256,
            "offline": groups.offline,
            "licences": groups.licences,
        },
        "more_releases": [
            {
                "name": each.release.name,
                "release_id": each.release.release_id,
                "content_sha256": each.release.content_sha256,
                "offline": each.release.offline,
                "licences": each.release.licences,
                "weight": each.weight,
                "groups": each.groups,
                "kept_away": each.kept_away,
                "origins": without_folders(origins_of(settings, each.release.manifest)),
            }
            for each in groups.more
        ],
        "origins": without_folders(origins_of(settings, release.manifest)),
        "split": {
            "fraction": settings.held_out,
            "seed": settings.held_out_seed,
            "choice": settings.held_out_groups,
            "judge": without_folders(settings.held_out_judge),
            "training_groups": len(groups.training),
            "kept_away": groups.kept_away,
            "held_out_groups": len(groups.held_out),
        },
        "job_id": job.id,
        "job": job.key,
        "result": without_folders(result),
    }


def record_training(
    store: Store, job_id: int, settings: TrainSettings, memory: dict[str, Any], out: Path
) -> dict[str, Any]:
    """Write the checkpoint's row, with the paths of this machine; returns the job's result.

    The event `training.finished` is written with it, once for a job that ends twice.
    """
    release, result = memory["release"], memory["result"]
    with store.write() as session:
        of_job = select(Checkpoint.id).where(Checkpoint.job_id == job_id)
        is_new = session.scalar(of_job) is None
        checkpoint = record_checkpoint(
            session,
            path=str(out),
            base_model=settings.base_model,
            config=settings.as_dict(),
            summary={
                **result,
                **{"release": release, "split": memory["split"], "origins": memory["origins"]},
                **({"more_releases": more} if (more := memory.get("more_releases")) else {}),
            },
            release_id=_known_release(store, release),
            job_id=job_id,
        )
        if is_new:
            who = get_job(session, job_id).started_by
            record_event(session, who, "training.finished", job_id, checkpoint_id=checkpoint.id)
        session.commit()
        return {
            "checkpoint_id": checkpoint.id,
            "path": str(out),
            "offline": release["offline"],
            **result,
        }


def _known_release(store: Store, release: dict[str, Any]) -> int | None:
    """The release's number, where this store's release of that number has the same content."""
    release_id: int | None = release["release_id"]
    if release_id is None:
        return None
    with store.read() as session:
        found = session.get(Release, release_id)
    same = found is not None and found.content_sha256 == release["content_sha256"]
    return release_id if same else None
