"""The training loop: SentenceTransformerTrainer with our collator, loss, schedule and stops.

What would surprise: with `max_seconds` the learning rate also falls with the clock (whichever of
steps and time is further), so that a training that is cut short has still decayed to zero; such a
training is not repeatable to the bit. Without it, it is.
"""

import json
import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from datasets import Dataset
from safetensors import SafetensorError
from sentence_transformers import (
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel, TrainerCallback
from transformers.trainer_callback import PrinterCallback

from analysis.embed.embedding import model_source
from db.errors import BadInput
from db.scenarios import COLUMNS
from trainer.data.batch_sample import sample_of
from trainer.data.batches import NOWHERE, QUERIES, Collator
from trainer.data.release_files import Group
from trainer.loop.best import Best
from trainer.loop.embedding_loss import EmbeddingLoss
from trainer.loop.moved_weights import EVERY_STEPS, MIN_SHARE, MovedWeights
from trainer.loop.precision import uses_bf16
from trainer.model.lora import attach_lora, merge_lora
from trainer.model.packing import can_pack, enable_packing
from trainer.model.saving import is_disk_full
from trainer.model.weight_dtype import describe_dtypes
from trainer.model.weights import read_weights, write_weights
from trainer.parallel.processes import ALONE, Processes
from trainer.parallel.sharding import Sharded, clip_gradients
from trainer.settings.settings import TrainSettings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

log = logging.getLogger("inf.train")
SAVE_SECONDS = 120.0
MAX_DIFFERENCE = 1e-4
STATE = "trainer_state.json"
OPTIMIZER, SCHEDULER = "optimizer.pt", "scheduler.pt"  # as the stock trainer names them
Report = Callable[[int, int, str], None]
Stream = Callable[[int, Mapping[str, float]], None]
Evaluate = Callable[["SentenceTransformer"], Mapping[str, float]]


class GroupTrainer(SentenceTransformerTrainer):
    """The stock trainer with our weights files, schedule and sharding; writes no model card."""

    deadline_seconds = 0.0
    began = 0.0
    processes = ALONE
    sharded: Sharded | None = None

    def create_accelerator_and_postprocess(self) -> None:
        super().create_accelerator_and_postprocess()
        if any(isinstance(weights, DTensor) for weights in self.model.parameters()):
            # The weights are sharded already: no DDP copies on top of that.
            self.accelerator.prepare_model = lambda model, **_: model
            self.accelerator.clip_grad_norm_ = clip_gradients

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Ours is written at the end; the stock one would search the Hub and embed examples."""

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        """Every process calls it; the first writes."""
        state = self.sharded.weights() if self.sharded else self.model.state_dict()
        if not self.processes.is_first:
            return
        names = [name for name, _ in self.model.named_parameters()]
        if broken := [name for name in names if not state[name].isfinite().all()]:
            raise BadInput(
                f"the weights {broken[0]} are NaN or infinite after step {self.state.global_step}: "
                "this state was not saved, the one before it was. Lower learning_rate or raise "
                "temperature"
            )
        write_weights(state, Path(output_dir or self.args.output_dir))

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if not self.sharded:
            super()._save_optimizer_and_scheduler(output_dir)
            return
        state = self.sharded.moments(_inner(self.optimizer))
        if self.processes.is_first:
            torch.save(state, Path(output_dir) / OPTIMIZER)
            torch.save(self.lr_scheduler.state_dict(), Path(output_dir) / SCHEDULER)

    def _save_rng_state(self, output_dir: str) -> None:
        """Every process its own; the state is complete only when all have written."""
        super()._save_rng_state(output_dir)
        if self.processes.count > 1:
            dist.barrier()

    def _load_from_checkpoint(self, checkpoint_path: str) -> None:
        folder = Path(checkpoint_path)
        if self.sharded:
            self.sharded.load_weights(read_weights(folder) if self.processes.is_first else {})
        else:
            self.model.load_state_dict(read_weights(folder))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if not self.sharded or checkpoint is None:
            super()._load_optimizer_and_scheduler(checkpoint)
            return

        def read(name: str) -> Any:
            return torch.load(Path(checkpoint) / name, map_location="cpu", weights_only=True)

        moments = read(OPTIMIZER) if self.processes.is_first else {}
        self.sharded.load_moments(_inner(self.optimizer), moments)
        self.lr_scheduler.load_state_dict(read(SCHEDULER))

    def get_train_dataloader(self) -> Any:
        """Every process gets the whole batch (`trainer.parallel.processes`), not a part of it."""
        if self.processes.count == 1:
            return super().get_train_dataloader()
        from accelerate.data_loader import prepare_data_loader

        loader = self._build_dataloader(
            self.train_dataset, self.args.train_batch_size, dataset_kind="train"
        )
        self._train_dataloader = prepare_data_loader(
            loader,
            self.args.device,
            num_processes=1,
            process_index=0,
            put_on_device=True,
            use_seedable_sampler=self.accelerator.use_seedable_sampler,
            data_seed=self.accelerator.dataloader_config.data_seed,
        )
        return self._train_dataloader

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Linear to zero in steps and, where there is a limit, in time."""
        if self.deadline_seconds == 0:
            return super().create_scheduler(num_training_steps, optimizer)

        def share_left(step: int) -> float:
            used = (time.monotonic() - self.began) / self.deadline_seconds if self.began else 0.0
            used = self.processes.agree(used)  # the weights must stay equal
            return max(0.0, 1.0 - max(step / num_training_steps, used))

        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer or self.optimizer, share_left
        )
        return self.lr_scheduler


class Watch(TrainerCallback):
    """Streams metrics, reports progress, stops at the deadline or on request, saves states."""

    def __init__(
        self,
        settings: TrainSettings,
        report: Report,
        stream: Stream,
        stopping: Callable[[], bool],
        evaluate: Evaluate | None,
        best: Best,
        processes: Processes,
        loss: EmbeddingLoss,
        sharded: Sharded | None,
    ) -> None:
        self.processes, self.loss_module, self.sharded = processes, loss, sharded
        self.step_began = self.step_seconds = 0.0
        self.settings, self.report, self.stream = settings, report, stream
        self.stopping, self.evaluate, self.best = stopping, evaluate, best
        self.began = self.saved = time.monotonic()
        self.first_step = 0
        self.loss = math.nan
        self.moved = MovedWeights()
        self.share_moved: float | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.began = self.saved = time.monotonic()
        self.first_step = state.global_step
        self.best.forget_after(state.global_step)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.step_began = time.monotonic()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        rates = [group["lr"] for group in kwargs["optimizer"].param_groups]
        if state.global_step % EVERY_STEPS == 0 and max(rates) > 0:
            self.moved.before(kwargs["model"].parameters())

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.share_moved = self.moved.after()
        if self.share_moved is not None and self.share_moved < MIN_SHARE:
            log.warning(
                "step %d changed only %.0f %% of the trained weights (%s): the updates are too "
                "small for this number type. Raise learning_rate",
                state.global_step + 1,
                100 * self.share_moved,
                ", ".join({str(each.dtype) for each in kwargs["model"].parameters()}),
            )

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        now, settings = time.monotonic(), self.settings
        self.step_seconds = now - self.step_began
        if settings.max_seconds and now - self.began >= settings.max_seconds:
            control.should_training_stop = True
        if self.stopping():
            control.should_training_stop = control.should_save = True
        if settings.save_steps:
            control.should_save |= state.global_step % settings.save_steps == 0
        elif now - self.saved >= SAVE_SECONDS:
            control.should_save = True
        if settings.evaluate_steps and state.global_step % settings.evaluate_steps == 0:
            if self.loss_module.value is not None:
                _require_finite(float(self.loss_module.value), state.global_step)
            # Every process takes part in gathering sharded weights; the first scores.
            with self.sharded.whole() if self.sharded else nullcontext(kwargs["model"]) as model:
                self._score(model, state.global_step, control)
        control.should_training_stop, control.should_save = self.processes.agree(
            (control.should_training_stop, control.should_save)
        )
        if control.should_save:
            self.saved = now

    def _score(self, model: "SentenceTransformer", step: int, control: Any) -> None:
        if self.evaluate is None:
            return
        scores = self.evaluate(model)
        self.stream(step, scores)
        if self.settings.best_by in scores:
            value = scores[self.settings.best_by]
            control.should_save |= self.best.record(model, step, value)
            control.should_training_stop |= self.best.should_stop

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kw: Any) -> None:
        if not logs or "loss" not in logs:
            return
        # Here, where the trainer has read the loss from the device anyway, and before it saves.
        self.loss = logs["loss"]
        _require_finite(self.loss, state.global_step)
        numbers = {
            name: logs[name] for name in ("loss", "learning_rate", "grad_norm") if name in logs
        }
        self.stream(state.global_step, numbers | self._of_step())
        total, left = self._left(state)
        self.report(
            state.global_step, total, f"loss {self.loss:.3f} · about {_duration(left)} left"
        )

    def _of_step(self) -> dict[str, float]:
        """The loss of each term, and tokens per second of all processes, of the last step.

        Every process must call it.
        """
        terms, counted = self.loss_module.of_terms, self.loss_module.tokens
        values = [*terms.values(), *(() if counted is None else (counted,))]
        # One transfer from the device for all of them.
        numbers = torch.stack([value.double() for value in values]).tolist() if values else []
        found = {f"loss/{term}": number for term, number in zip(terms, numbers, strict=False)}
        tokens = self.processes.total(int(numbers[-1]) if counted is not None else 0)
        if self.step_seconds > 0:
            found["tokens_per_second"] = tokens / self.step_seconds
        if self.share_moved is not None:
            found["weights_moved"] = self.share_moved
        return found

    def _left(self, state: Any) -> tuple[int, float]:
        """(steps in all as they look now, seconds left)."""
        spent = time.monotonic() - self.began
        pace = spent / max(1, state.global_step - self.first_step)
        left = (state.max_steps - state.global_step) * pace
        if self.settings.max_seconds:
            left = min(left, max(0.0, self.settings.max_seconds - spent))
        return state.global_step + round(left / max(pace, 1e-9)), left


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
    show: Callable[..., None] | None = None,
    processes: Processes = ALONE,
) -> dict[str, Any]:
    """Train the model in place; returns steps, epochs, seconds, dtypes and every logged loss.

    show: receives `dtypes` before the first step and the texts of the first batch as `batch`.
    Goes on from the newest complete state in `work`, where there is one. With several `processes`
    all call it with the same arguments; only the first reports, scores and saves.
    """
    objective = settings.parsed_objective
    collator = make_collator(model, groups, settings, processes)
    if settings.lora_rank:
        trained = attach_lora(
            model, rank=settings.lora_rank, alpha=settings.lora_alpha, seed=settings.seed
        )
        log.info("LoRA: %d weights are trained", trained)
    if settings.gradient_checkpointing == "on":
        for module in model.modules():
            if isinstance(module, PreTrainedModel):
                module.activation_checkpointing_enable({"use_reentrant": False})
    loss = EmbeddingLoss(
        model,
        objective,
        temperature=settings.temperature,
        positive_as_printed=settings.positive_counted == "as-printed",
        texts_at_once=settings.texts_at_once,
    )
    dtypes = describe_dtypes(model, model_source(settings.base_model))
    log.info("weights: %s", ", ".join(f"{name} {kind}" for name, kind in dtypes.items()))
    if show is not None:
        show(dtypes=dtypes)
        loss.on_first = lambda *batch: show(batch=sample_of(model, *batch))
    sharded = (
        Sharded(model, processes, bf16=uses_bf16(settings.precision))
        if settings.fsdp == "on"
        else None
    )
    rows = Dataset.from_dict({name: [group.row()[name] for group in groups] for name in COLUMNS})
    best = Best(work, patience=settings.patience)
    watch = Watch(settings, report, stream, stopping, evaluate, best, processes, loss, sharded)
    trainer = GroupTrainer(
        model=model,
        args=_arguments(settings, work),
        train_dataset=rows,
        loss=loss,
        data_collator=collator,
        callbacks=[watch],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.deadline_seconds = settings.max_seconds
    trainer.processes, trainer.sharded = processes, sharded
    state = processes.agree(newest_state(work))
    steps = _steps(settings, len(groups))
    trainer.began = began = time.monotonic()
    if state is not None:
        best.forget_after(state[0])
    # At the last step, or where patience had ended it, the trainer would do one step more.
    ended = processes.agree(best.should_stop)
    if state is not None and (state[0] >= steps or ended):
        trainer._load_from_checkpoint(str(state[1]))
        history = json.loads((state[1] / STATE).read_text())
    else:
        try:
            trainer.train(resume_from_checkpoint=None if state is None else str(state[1]))
        except (torch.OutOfMemoryError, RuntimeError, OSError, SafetensorError) as error:
            raise _translated(error, settings) from error
        history = {
            "global_step": trainer.state.global_step,
            "epoch": trainer.state.epoch,
            "log_history": trainer.state.log_history,
        }
    if sharded:
        sharded.restore()
    first = processes.is_first
    kept = best.restore(model) if first and settings.best_by != "last" else None
    if first:  # the others' weights are of no use any more
        merge_lora(model)
    losses = [entry["loss"] for entry in history["log_history"] if "loss" in entry]
    return {
        "steps": history["global_step"],
        "epochs": history["epoch"],
        "seconds": time.monotonic() - began,
        "best_step": kept,
        "losses": losses,
        "dtypes": dtypes,
    }


def _require_finite(loss: float, step: int) -> None:
    """Raise BadInput for a NaN or infinite loss."""
    if not math.isfinite(loss):
        raise BadInput(
            f"the loss is {loss} at step {step}: nothing was saved from this step. Lower "
            "learning_rate or raise temperature, and look at the texts of the release"
        )


def make_collator(
    model: "SentenceTransformer",
    groups: list[Group],
    settings: TrainSettings,
    processes: Processes = ALONE,
) -> Collator:
    """The collator, packing where the model can and the packed path was seen to be exact."""
    objective = settings.parsed_objective

    def collator(*, packing: bool, of: Processes = ALONE) -> Collator:
        return Collator(
            model,
            settings.parsed_template,
            objective,
            settings.instructions_sampled,
            packing=packing,
            processes=of,
        )

    plain = collator(packing=False, of=processes)
    if (
        settings.packing == "off"
        or "I" not in objective.terms
        or not settings.parsed_template.instruction_first
        or not can_pack(model)
    ):
        return plain
    enable_packing(model)
    rows = [group.row() for group in groups[: settings.rows_per_batch]]
    difference, why = math.inf, ""
    try:
        flat, packed = collator(packing=False)(rows), collator(packing=True)(rows)
        difference = packing_difference(model, flat, packed)
    except (RuntimeError, ValueError, NotImplementedError) as error:  # an attention without masks
        why = str(error)
    difference, why = processes.agree((difference, why))
    if why:
        log.warning("packed rows cannot be computed (%s): packing is off", why)
        return plain
    if difference > (MAX_DIFFERENCE if model.dtype == torch.float32 else MAX_DIFFERENCE * 100):
        log.warning("packed embeddings differ from flat ones by %.2g: packing is off", difference)
        return plain
    log.info("packing is on: packed embeddings equal flat ones (%.2g)", difference)
    return collator(packing=True, of=processes)


def packing_difference(
    model: "SentenceTransformer", flat: dict[str, Any], packed: dict[str, Any]
) -> float:
    """The largest difference of an embedding's component between the two ways, on one batch."""
    was_training = model.training
    model.eval()

    def embed(batch: dict[str, Any]) -> torch.Tensor:
        features = {
            key.removeprefix(f"{QUERIES}_"): value.to(model.device)
            if isinstance(value, torch.Tensor)
            else value
            for key, value in batch.items()
            if key.startswith(f"{QUERIES}_")
        }
        embedded: torch.Tensor = model(features)["sentence_embedding"]
        return embedded.float()

    with torch.no_grad():
        one, other = embed(flat), embed(packed)
    model.train(was_training)
    differences = [0.0]
    for table in ("matched_of", "crossed_of"):
        if table in flat["label"]:
            here, there = flat["label"][table].flatten(), packed["label"][table].flatten()
            there, here = there[here != NOWHERE], here[here != NOWHERE]
            differences.append(float((one[here] - other[there]).abs().max()))
    return max(differences)


def newest_state(work: Path) -> tuple[int, Path] | None:
    """(step, folder) of the newest complete state; an incomplete one is skipped.

    The trainer writes `trainer_state.json` last.
    """
    found = []
    for folder in work.glob("checkpoint-*"):
        try:
            found.append((int(json.loads((folder / STATE).read_text())["global_step"]), folder))
        except (OSError, ValueError, KeyError):
            continue
    return max(found, default=None)


def ends_of(losses: list[float]) -> tuple[float, float]:
    """Mean loss of the first and of the last fifth of the steps (at most ten each)."""
    count = max(1, min(10, len(losses) // 5))
    first, last = losses[:count], losses[-count:]
    return sum(first) / len(first), sum(last) / len(last)


def _steps(settings: TrainSettings, groups: int) -> int:
    if settings.max_steps:
        return settings.max_steps
    return math.ceil(settings.epochs * math.ceil(groups / settings.rows_per_batch))


def _arguments(settings: TrainSettings, work: Path) -> SentenceTransformerTrainingArguments:
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(work),
        per_device_train_batch_size=settings.rows_per_batch,
        num_train_epochs=settings.epochs,
        max_steps=settings.max_steps or -1,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=0,
        weight_decay=0.0,
        optim="adamw_torch_fused" if torch.cuda.is_available() else "adamw_torch",
        seed=settings.seed,
        logging_strategy="steps",
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="no",
        save_total_limit=2,
        eval_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        bf16=uses_bf16(settings.precision),
        use_cpu=not torch.cuda.is_available(),
        ddp_find_unused_parameters=False,
        ddp_broadcast_buffers=False,
    )
    arguments.dataloader_drop_last = False  # set for several processes; ours share any last batch
    return arguments


def _inner(optimizer: Any) -> torch.optim.Optimizer:
    """PyTorch's own optimizer, inside accelerate's."""
    inner: torch.optim.Optimizer = getattr(optimizer, "optimizer", optimizer)
    return inner


def _translated(error: BaseException, settings: TrainSettings) -> BaseException:
    """BadInput for out of memory or a full disk, with the remedy; any other error unchanged."""
    message = str(error)
    if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in message:
        return BadInput(
            f"out of memory with rows_per_batch={settings.rows_per_batch}, "
            f"query_tokens={settings.query_tokens}, passage_tokens={settings.passage_tokens}: "
            f"give texts_at_once={max(1, min(8, settings.rows_per_batch))} (cached gradients, the "
            "same result) or gradient_checkpointing=on, then lower rows_per_batch or passage_tokens"
        )
    if is_disk_full(error):
        return BadInput(
            "no space left on the disk to keep a state of the training: the state before it is "
            "intact. Free some, then resume the job"
        )
    return error


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
