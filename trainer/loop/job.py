"""The job `train`: a release in, a checkpoint folder and a row in the store out.

Queued again after a kill it goes on from the newest state in its work folder.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from db.jobs.runner import JobHandle
from db.outcome.checkpoints import record_checkpoint
from db.store.settings import home
from db.store.store import Store
from db.tables import Release
from trainer.data.release_files import ReleaseData, find_release, read_release
from trainer.data.splitting import split_groups
from trainer.evaluate.benchmarks import held_out_benchmark
from trainer.loop.board import require_tensorboard, tensorboard_log
from trainer.loop.card import write_card
from trainer.loop.probes import choose_probes, describe_probes, probe_ranks
from trainer.model.backbone import load_backbone, read_memory
from trainer.model.saving import require_free, write_checkpoint
from trainer.parallel.processes import Processes, joined, warn_of_missing_gpu
from trainer.settings.settings import TrainSettings, check_processes, parse_settings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def train(handle: JobHandle) -> dict[str, Any]:
    """config: {"release": folder or number, "out": folder (optional), "settings": {key: value},
    "processes": how many train together on this machine (optional),
    "workers": or how many on the nodes of a Ray cluster (optional)}.
    """
    if (workers := int(handle.config.get("workers") or 1)) > 1:
        from trainer.parallel.ray_workers import train_on_cluster

        return train_on_cluster(handle, workers)
    return train_here(handle)


def train_here(handle: JobHandle) -> dict[str, Any]:
    """Train in this process and those that it, torchrun or Ray Train started beside it."""
    with joined(int(handle.config.get("processes") or 1)) as processes:
        handle.meter.left_out = processes.started
        return _train(handle, processes)


def _train(handle: JobHandle, processes: Processes) -> dict[str, Any]:
    settings = parse_settings(handle.config.get("settings") or {})
    check_processes(settings, processes.count)
    out = Path(handle.config.get("out") or home() / "checkpoints" / f"job-{handle.id}")
    out = out.expanduser().resolve()
    require_free(out, handle.id)
    if settings.tensorboard == "on":
        require_tensorboard()
    if out.exists() and (memory := read_memory(str(out))):
        return _record(handle, memory, out)  # killed after the folder was complete
    release = read_release(find_release(handle.store, str(handle.config["release"])))
    training, held_out = split_groups(
        release,
        fraction=settings.held_out,
        seed=settings.held_out_seed,
        include_dropped=settings.dropped == "include",
    )
    handle.report(0, None, "loading the model")
    model = load_backbone(settings)
    warn_of_missing_gpu()
    handle.check()

    from trainer.evaluate.scoring import score_model, summary
    from trainer.loop.fitting import (  # loads PyTorch's training side: after all refusals
        ends_of,
        fit,
    )

    work = home() / "training" / f"job-{handle.id}"
    board = home() / "tensorboard" / f"job-{handle.id}" if settings.tensorboard == "on" else None
    processes.agree(
        {
            **{"settings": settings.as_dict(), "release": str(release.path), "work": str(work)},
            **{"job_id": handle.id, "attempt": handle.attempt},
        }
    )
    benchmark = held_out_benchmark(release.name, held_out) if held_out else None

    probes = choose_probes(benchmark) if benchmark else []
    if benchmark:
        handle.show(probes=describe_probes(benchmark, probes))
    followed: dict[str, float] = {}  # ranks of the probes at the last scoring

    def score(current: "SentenceTransformer") -> dict[str, float | None]:
        if benchmark is None:
            return {}
        scores = score_model(current, settings.parsed_template, benchmark, check=handle.check)
        followed.update(probe_ranks(benchmark, probes, scores.ranks))
        return summary(scores.metrics)

    def numbers(metrics: dict[str, float | None]) -> dict[str, float]:
        return {name: value for name, value in metrics.items() if value is not None}

    with tensorboard_log(board) as write:

        def stream(step: int, values: Mapping[str, float]) -> None:
            handle.metrics(step, dict(values))
            write(step, values)

        handle.report(0, None, f"scoring {len(held_out)} held-out groups before training")
        before = score(model)
        if before:
            stream(0, numbers(before) | followed)
        done = fit(
            model,
            training,
            settings,
            work,
            report=handle.report,
            stream=stream,
            stopping=lambda: handle.stopping,
            evaluate=lambda current: numbers(score(current)) | followed,
            show=handle.show,
            processes=processes,
        )
        handle.check()
        handle.report(done["steps"], done["steps"], "scoring the held-out groups after training")
        after = score(model)
        if after:
            stream(done["steps"], numbers(after) | followed)
    first, last = ends_of(done["losses"])
    memory = {
        **_remembered(settings, release, len(training), len(held_out)),
        "job_id": handle.id,
        "result": {
            "steps": done["steps"],
            "epochs": done["epochs"],
            "best_step": done["best_step"],
            "seconds": done["seconds"],
            "dtypes": done["dtypes"],
            "loss_first": first,
            "loss_last": last,
            "held_out": {"groups": len(held_out), "before": before, "after": after},
        },
    }
    card = write_card(
        settings,
        release,
        steps=done["steps"],
        seconds=done["seconds"],
        before=before,
        after=after,
        held_out_groups=len(held_out),
        training_groups=len(training),
    )
    write_checkpoint(model, out, memory, card)
    result = _record(handle, memory, out)
    shutil.rmtree(work, ignore_errors=True)
    handle.report(done["steps"], done["steps"], f"loss {first:.3f} → {last:.3f}")
    return result


def _remembered(
    settings: TrainSettings, release: ReleaseData, training: int, held_out: int
) -> dict[str, Any]:
    """What the checkpoint keeps about how it was made, for inference and evaluation."""
    return {
        "format": 1,
        "template": settings.parsed_template.text,
        "chat_template": settings.chat_template,
        "interaction": settings.interaction,
        "objective": settings.objective,
        "temperature": settings.temperature,
        "settings": settings.as_dict(),
        "release": {
            "name": release.name,
            "release_id": release.release_id,
            "content_sha256": release.content_sha256,
            "offline": release.offline,
            "licences": release.licences,
        },
        "split": {
            "fraction": settings.held_out,
            "seed": settings.held_out_seed,
            "training_groups": training,
            "held_out_groups": held_out,
        },
    }


def _record(handle: JobHandle, memory: dict[str, Any], out: Path) -> dict[str, Any]:
    """Write the checkpoint's row; returns the job's result."""
    release, result = memory["release"], memory["result"]
    with handle.store.write() as session:
        checkpoint = record_checkpoint(
            session,
            path=str(out),
            base_model=memory["settings"]["base_model"],
            config=memory["settings"],
            summary={**result, "release": release, "split": memory["split"]},
            release_id=_known_release(handle.store, release),
            job_id=handle.id,
        )
        session.commit()
        return {
            "checkpoint_id": checkpoint.id,
            "path": str(out),
            "offline": release["offline"],
            **result,
        }


def _known_release(store: Store, release: dict[str, Any]) -> int | None:
    """The release's number, where this store's release of that number has the same content."""
    if release["release_id"] is None:
        return None
    with store.read() as session:
        found = session.get(Release, release["release_id"])
    same = found is not None and found.content_sha256 == release["content_sha256"]
    return release["release_id"] if same else None
