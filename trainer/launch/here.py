"""A training in this process: a release in, a checkpoint folder and a row in the store out.

Queued again after a kill it goes on from the newest state in its work folder.
"""

import shutil
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from analysis.files.shared import here, share, withdraw
from db.jobs.runner import JobHandle
from trainer.data.passage_pool import PassagePool, pool_passages
from trainer.data.splitting import Groups
from trainer.evaluate.scoring import encode_unique
from trainer.evaluate.vector_cache import base_caches
from trainer.launch.plan import Folders, plan_folders, plan_groups, plan_settings
from trainer.launch.request import TrainStart
from trainer.loop.mining import corpus_of
from trainer.model.backbone import load_backbone, read_memory
from trainer.model.saving import write_checkpoint
from trainer.parallel.processes import Processes, joined, warn_of_missing_gpu
from trainer.report.board import tensorboard_log, tracker_log
from trainer.report.card import write_card
from trainer.report.held_out_scores import HeldOutScores
from trainer.report.record import record_training, training_memory
from trainer.settings.settings import TrainSettings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def train(handle: JobHandle) -> dict[str, Any]:
    """Train in this process and those that it, torchrun or Ray Train started with it."""
    wanted = TrainStart.read(handle.config)
    if wanted.estimate:
        return estimate(handle, wanted)
    with joined(wanted.processes) as processes:
        handle.meter.left_out = processes.started
        settings = plan_settings(wanted, processes.count)
        folders = plan_folders(wanted, settings, handle)
        memory = read_memory(str(folders.out))  # there: killed after the folder was complete
        if not memory:
            if processes.is_first:
                here(folders.work)  # where another machine began
            groups = _groups(handle, wanted, settings)
            memory = _train(handle, processes, settings, groups, folders)
    result = handle.patiently(
        lambda: record_training(handle.store, handle.id, settings, memory, folders.out)
    )
    share(folders.out)  # before its states go: killed in between, no machine trains again
    shutil.rmtree(folders.work, ignore_errors=True)
    withdraw(folders.work)
    return result


def estimate(handle: JobHandle, wanted: TrainStart) -> dict[str, Any]:
    """{"estimate": …} of the training, measured on a few steps; nothing is written."""
    from trainer.launch.estimate import measure_training

    settings = plan_settings(wanted, wanted.processes)
    groups = _groups(handle, wanted, settings)
    handle.report(0, None, "loading the model")
    model = load_backbone(settings)
    handle.report(0, None, "measuring a few steps")
    found = measure_training(
        model,
        settings,
        groups,
        check=handle.check,
        caches_of_base=lambda base: base_caches(handle.store, settings, base, handle.patiently),
    )
    return {"estimate": found}


def _groups(handle: JobHandle, wanted: TrainStart, settings: TrainSettings) -> Groups:
    return handle.patiently(partial(plan_groups, handle.store, wanted.release, settings))


def _train(
    handle: JobHandle,
    processes: Processes,
    settings: TrainSettings,
    groups: Groups,
    folders: Folders,
) -> dict[str, Any]:
    """Train, score and write the checkpoint; returns what its folder remembers."""
    handle.report(0, None, "loading the model")
    model = load_backbone(settings)
    warn_of_missing_gpu()
    handle.check()

    from trainer.loop.best import ends_of
    from trainer.loop.fitting import fit  # loads PyTorch's training side

    processes.agree(
        {
            **{"settings": settings.as_dict(), "release": str(groups.release.path)},
            "more": [str(each.release.path) for each in groups.more],
            **{"work": str(folders.work), "job_id": handle.id, "attempt": handle.attempt},
        }
    )
    scores = HeldOutScores(
        settings,
        groups,
        check=handle.check,
        caches_of_base=lambda base: base_caches(handle.store, settings, base, handle.patiently),
    )
    if scores.benchmark:
        handle.show(probes=scores.shown_probes())
    pool = None
    if settings.trained_side == "query":
        handle.report(0, None, "embedding the training's passages by the base model")
        pool = base_pool(handle, model, groups, settings)
    run = f"job-{handle.id}"
    with (
        tensorboard_log(folders.board) as write,
        tracker_log(settings.report_to, run, settings.as_dict()) as track,
    ):

        def stream(step: int, values: Mapping[str, float]) -> None:
            if values:
                handle.metrics(step, dict(values))
                write(step, values)
                track(step, values)

        def score_before(model: "SentenceTransformer", step: int) -> None:
            count = len(groups.held_out)
            handle.report(0, None, f"scoring {count} held-out groups before training")
            stream(step, scores.score_before(model))

        def score_after(model: "SentenceTransformer", step: int) -> None:
            handle.report(step, step, "scoring the held-out groups after training")
            stream(step, scores.score_after(model))
            if examples := scores.shown_examples():
                handle.show(examples=examples)

        done = fit(
            model,
            groups.training,
            settings,
            folders.work,
            report=handle.report,
            stream=stream,
            stopping=lambda: handle.stopping,
            evaluate=scores.score_now,
            is_below_guard=scores.is_below_guard,
            score_before=score_before,
            score_after=score_after,
            show=handle.show,
            processes=processes,
            pool=pool,
        )
        handle.check()
    adapters = done.pop("adapters")
    first, last = ends_of(done.pop("losses"))
    result = {**done, "loss_first": first, "loss_last": last, **scores.as_result()}
    memory = training_memory(settings, groups, handle, result)
    card = write_card(settings, groups, result)
    # II needs our package; beside a checkpoint no manifest names another shape to the task of mteb
    is_plain = settings.interaction == "I" and groups.release.shape.is_inf_ir
    held_out = [group.row() for group in groups.held_out] if is_plain else []
    write_checkpoint(model, folders.out, memory, card, adapters, held_out)
    handle.report(done["steps"], done["steps"], f"loss {first:.3f} → {last:.3f}")
    return memory


def base_pool(
    handle: JobHandle, model: "SentenceTransformer", groups: Groups, settings: TrainSettings
) -> PassagePool:
    """The training's passages with their vectors by the base model, from the store's cache where
    they are there.

    In float32 whatever the training computes in: they stand for an index that the base has made.
    """
    caches = base_caches(handle.store, settings, model, handle.patiently)
    return pool_passages(
        groups.training,
        settings.parsed_template,
        lambda texts: encode_unique(
            model.encode_document,
            texts,
            lambda _: handle.check(),
            caches[1] if caches else None,
        ),
        settings.pool_passages,
        settings.seed,
        corpus_of(settings),
    )
