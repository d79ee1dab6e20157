"""Training a model in place: prepare it, run the loop, take the weights that are kept."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from datasets import Dataset
from safetensors import SafetensorError
from torch import Tensor
from transformers import PreTrainedModel
from transformers.trainer_callback import PrinterCallback

from analysis.embed.model_source import model_source
from db.errors import BadInput
from db.shape import Shape
from trainer.data.batch_sample import sample_of
from trainer.data.batches import Collator, TeacherScores
from trainer.data.groups import Group, group_key
from trainer.data.passage_pool import PassagePool
from trainer.evaluate.reranking import load_reranker
from trainer.evaluate.scoring import scoring_precision
from trainer.loop.arguments import step_count, training_arguments
from trainer.loop.best import STATE, Best, newest_state
from trainer.loop.embedding_loss import EmbeddingLoss, Teaching, columns_of
from trainer.loop.failures import translated
from trainer.loop.group_trainer import ConfidentFirst, GroupTrainer
from trainer.loop.mining import MinedNegatives, corpus_of, mine_negatives
from trainer.loop.packing_check import make_collator
from trainer.loop.precision import (
    MEASURED_GROUPS,
    as_saved,
    settled_precision,
    uses_bf16,
)
from trainer.loop.teacher import teacher_scores
from trainer.loop.watch import Evaluate, Report, Stream, TrimmedHeap, Watch
from trainer.model.doors import trained_part
from trainer.model.lora import adapters_of, attach_lora, merge_lora
from trainer.model.trained_weights import freeze, require_sizes, set_dropout
from trainer.model.weights import copy_weights, describe_dtypes, mix_in
from trainer.parallel.processes import ALONE, Processes
from trainer.parallel.sharding import Sharded
from trainer.settings.settings import TrainSettings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Score = Callable[["SentenceTransformer", int], None]
"""(the model, the step it is at)."""
log = logging.getLogger("inf.train")


def fit(
    model: "SentenceTransformer",
    groups: list[Group],
    settings: TrainSettings,
    work: Path,
    *,
    report: Report,
    stream: Stream,
    stopping: Callable[[], bool] = lambda: False,
    evaluate: Evaluate | None = None,
    is_below_guard: Callable[[Mapping[str, float]], bool] = lambda scores: False,
    score_before: Score | None = None,
    score_after: Score | None = None,
    show: Callable[..., None] | None = None,
    processes: Processes = ALONE,
    pool: PassagePool | None = None,
) -> dict[str, Any]:
    """Train the model in place; returns steps, epochs, seconds, dtypes and every logged loss.

    evaluate, score_before, score_after: called between steps, before the first and after the last
    with the model; where weights are sharded every process must give them.
    pool: the passages' vectors where they are not trained; the first process's is taken.
    show: receives `dtypes` before the first step and the texts of the first batch as `batch`.
    Goes on from the newest complete state in `work`, where there is one. With several `processes`
    all call it with the same arguments; only the first reports, scores and saves.
    """
    pool = processes.agree(pool) if settings.trained_side == "query" else None
    teacher = processes.agree(_taught(groups, settings, work, processes, report))
    mined = processes.agree(_mined(model, groups, settings, work, processes, report, pool))
    collator = make_collator(model, groups, settings, processes, teacher, mined, pool)
    trained = trained_part(model)
    base = copy_weights(trained) if settings.base_share else {}
    prepare_weights(model, settings)
    compute = loss_of_few(model, groups, settings, collator, pool)
    precision = settled_precision(
        settings.precision, model, compute, work / "precision.json", processes
    )
    settings = replace(settings, precision=precision.used)
    loss = make_loss(model, settings, groups[0].shape, pool)
    dtypes = describe_dtypes(model, model_source(settings.base_model))
    log.info("weights: %s", ", ".join(f"{name} {kind}" for name, kind in dtypes.items()))
    if show is not None:
        show(dtypes=dtypes)
        loss.on_first = lambda *batch: show(batch=sample_of(model, *batch))
    is_sharded = settings.fsdp == "on"
    bf16 = uses_bf16(settings.precision)
    sharded = Sharded(model, processes, bf16=bf16) if is_sharded else None
    best = Best(work, patience=settings.patience)
    watch = Watch(
        settings,
        report,
        stream,
        stopping,
        evaluate,
        best,
        processes,
        loss,
        sharded,
        is_below_guard,
    )
    trainer = _trainer(model, groups, settings, work, loss, collator, watch)
    trainer.processes, trainer.sharded = processes, sharded
    if score_before:
        with sharded.encoding() if sharded else nullcontext():
            score_before(model, 0)
    began = trainer.began = time.monotonic()
    history = _run(trainer, settings, len(groups), work, best, processes)
    seconds = time.monotonic() - began
    kept = best.step if settings.best_by != "last" and best.folder else None
    kept = processes.agree(kept)
    if kept is not None and (processes.is_first or sharded):
        trainer._load_from_checkpoint(str(work / f"best-{kept}"))
    if processes.agree(stopping()):
        score_after = None
    if sharded:
        if score_after:
            with sharded.encoding(), as_saved(model):
                score_after(model, history["global_step"])
        sharded.restore()
    adapters = {}
    if processes.is_first:  # the others' weights are of no use any more
        adapters = adapters_of(model) if settings.keep_adapters == "on" else {}
        merge_lora(model)
        mix_in(trained, base, settings.base_share)
    if score_after and not sharded:
        with as_saved(model):
            score_after(model, history["global_step"])
    return {
        "steps": history["global_step"],
        "epochs": history["epoch"],
        "seconds": seconds,
        "best_step": kept,
        "losses": [entry["loss"] for entry in history["log_history"] if "loss" in entry],
        "dtypes": dtypes,
        "precision": asdict(precision),
        "adapters": adapters,
    }


def loss_of_few(
    model: "SentenceTransformer",
    groups: list[Group],
    settings: TrainSettings,
    collator: Collator,
    pool: PassagePool | None,
) -> Callable[[], Tensor]:
    """A function that computes the loss of the same few groups, which the precision is measured on.

    It raises BadInput where memory does not suffice.
    """
    rows = [group.row() for group in groups[: min(settings.rows_per_batch, MEASURED_GROUPS)]]
    loss = make_loss(model, replace(settings, texts_at_once=0), groups[0].shape, pool)

    def compute() -> Tensor:
        try:
            value: Tensor = loss(*columns_of(collator(rows), model.device))
        except (torch.OutOfMemoryError, RuntimeError) as error:
            raise translated(error, settings) from error
        return value

    return compute


def _taught(
    groups: list[Group], settings: TrainSettings, work: Path, processes: Processes, report: Report
) -> TeacherScores | None:
    """The teacher's scores, computed by the first process; None without a teacher."""
    if not settings.teacher or not processes.is_first:
        return None
    if settings.judging_teacher:
        return {group_key(group): list(map(list, group.judged)) for group in groups if group.judged}
    return teacher_scores(
        groups,
        settings.parsed_template,
        load_reranker(settings.teacher),
        work / "teacher.json",
        progress=lambda done, total: report(done, total, "scoring the groups by the teacher"),
    )


def _mined(
    model: "SentenceTransformer",
    groups: list[Group],
    settings: TrainSettings,
    work: Path,
    processes: Processes,
    report: Report,
    pool: PassagePool | None,
) -> MinedNegatives | None:
    """The mined negatives, found by the first process; None where none are wanted."""
    if not settings.mined_negatives or not processes.is_first:
        return None
    with scoring_precision(model.device, bf16=uses_bf16(settings.precision)):
        return mine_negatives(
            model,
            groups,
            settings.parsed_template,
            settings.mined_negatives,
            settings.mined_limit,
            work / "mined.json",
            corpus=corpus_of(settings) if pool is None else (),  # the pool has them
            pool=pool,
            progress=lambda done, total: report(done, total, "mining negatives"),
        )


def make_loss(
    model: "SentenceTransformer",
    settings: TrainSettings,
    shape: Shape,
    pool: PassagePool | None = None,
) -> EmbeddingLoss:
    """The loss of the settings; it teaches where a batch has a teacher's scores."""
    return EmbeddingLoss(
        model,
        settings.parsed_objective,
        temperature=settings.temperature,
        positive_as_printed=settings.positive_counted == "as-printed",
        texts_at_once=settings.texts_at_once,
        sizes=settings.matryoshka_sizes,
        teaching=Teaching(
            settings.teacher_loss, settings.teacher_weight, settings.teacher_temperature
        ),
        group_weight=settings.group_weight,
        frozen=None if pool is None else pool.vectors,
        shape=shape,
    )


def prepare_weights(model: "SentenceTransformer", settings: TrainSettings) -> None:
    """Freeze, attach adapters, recompute and compile what is trained, as the settings want."""
    trained = trained_part(model)
    if settings.dropout >= 0:
        set_dropout(trained, settings.dropout)
    freeze(trained, settings.frozen_patterns)
    if settings.lora_rank:
        count = attach_lora(
            model,
            settings.parsed_template,
            rank=settings.lora_rank,
            alpha=settings.lora_alpha,
            seed=settings.seed,
            targets=settings.lora_layers,
            dropout=settings.lora_dropout,
            dora=settings.dora == "on",
        )
        log.info("LoRA: %d weights are trained", count)
    require_sizes(model, settings.matryoshka_sizes)
    if settings.gradient_checkpointing == "on":
        for module in trained.modules():
            if isinstance(module, PreTrainedModel):
                if not module.supports_gradient_checkpointing:
                    raise BadInput(
                        f"gradient_checkpointing=on: {type(module).__name__} cannot recompute its "
                        "activations",
                        "Give texts_at_once=8 (cached gradients) to save memory",
                        code="gradient_checkpointing_unsupported",
                    )
                module.activation_checkpointing_enable({"use_reentrant": False})
    if settings.compile == "on":
        for module in trained.modules():
            if isinstance(module, PreTrainedModel):
                module.compile(dynamic=True)  # in place: names and the saved model stay the same


def _trainer(
    model: "SentenceTransformer",
    groups: list[Group],
    settings: TrainSettings,
    work: Path,
    loss: EmbeddingLoss,
    collator: Collator,
    watch: Watch,
) -> GroupTrainer:
    stock_collator: Any = collator  # no subclass of the stock one: ours makes its own columns
    trainer = GroupTrainer(
        model=model,
        args=training_arguments(settings, work),
        train_dataset=Dataset.from_dict(
            {name: [group.row()[name] for group in groups] for name in groups[0].shape.columns}
        ),
        loss=loss,
        data_collator=stock_collator,
        callbacks=[watch] if model.device.type == "cuda" else [watch, TrimmedHeap()],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.deadline_seconds = settings.max_seconds
    if settings.curriculum != "off":
        trainer.order = ConfidentFirst(groups, settings.rows_per_batch, settings.seed)
    return trainer


def _run(
    trainer: GroupTrainer,
    settings: TrainSettings,
    groups: int,
    work: Path,
    best: Best,
    processes: Processes,
) -> dict[str, Any]:
    """Train from the newest state, if any; returns global_step, epoch and log_history."""
    state = processes.agree(newest_state(work))
    if state is not None:
        best.forget_after(state[0])
    best.scores = processes.agree(best.scores)
    # At the last step, or where patience had ended it, the trainer would do one step more.
    ended = processes.agree(best.should_stop)
    if state is not None and (state[0] >= step_count(settings, groups) or ended):
        trainer._load_from_checkpoint(str(state[1]))
        history: dict[str, Any] = json.loads((state[1] / STATE).read_text())
        return history
    try:
        trainer.train(resume_from_checkpoint=None if state is None else str(state[1]))
    except (torch.OutOfMemoryError, RuntimeError, OSError, SafetensorError) as error:
        raise translated(error, settings) from error
    return {
        "global_step": trainer.state.global_step,
        "epoch": trainer.state.epoch,
        "log_history": trainer.state.log_history,
    }
