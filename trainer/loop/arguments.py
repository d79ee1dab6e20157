"""The stock trainer's arguments from our settings."""

import math
import tempfile
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformerTrainingArguments
from transformers import Trainer

from trainer.loop.precision import uses_bf16
from trainer.settings.settings import TrainSettings

SCHEDULERS = {"linear": "linear", "cosine": "cosine", "constant": "constant_with_warmup"}


def prefetches(settings: TrainSettings) -> bool:
    """Whether a process of its own prepares batches: where the device computes at the same time."""
    if settings.prefetch == "auto":
        return torch.cuda.is_available()
    return settings.prefetch == "on"


def _optimizer(settings: TrainSettings) -> str:
    if settings.optimizer == "adamw-8bit":
        return "adamw_bnb_8bit"
    return "adamw_torch_fused" if torch.cuda.is_available() else "adamw_torch"


def step_count(settings: TrainSettings, groups: int) -> int:
    """The steps of the training."""
    if settings.max_steps:
        return settings.max_steps
    batches = math.ceil(groups / settings.rows_per_batch)
    return math.ceil(settings.epochs * math.ceil(batches / settings.accumulation_steps))


def make_optimizer(model: torch.nn.Module, settings: TrainSettings) -> torch.optim.Optimizer:
    """The training's own optimizer, for steps outside the trainer's loop."""
    arguments = training_arguments(settings, Path(tempfile.gettempdir()) / "inf-unused")
    kind, options = Trainer.get_optimizer_cls_and_kwargs(arguments)
    trained = [weights for weights in model.parameters() if weights.requires_grad]
    made: torch.optim.Optimizer = kind(trained, **options)
    return made


def training_arguments(settings: TrainSettings, work: Path) -> SentenceTransformerTrainingArguments:
    """The arguments; what our callbacks and loss do themselves is off."""
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(work),
        per_device_train_batch_size=settings.rows_per_batch,
        num_train_epochs=settings.epochs,
        max_steps=settings.max_steps or -1,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=SCHEDULERS[settings.schedule],
        warmup_steps=settings.warmup,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.clip_norm,
        gradient_accumulation_steps=settings.accumulation_steps,
        optim=_optimizer(settings),
        seed=settings.seed,
        logging_strategy="steps",
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="no",
        save_total_limit=2,
        eval_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_num_workers=int(prefetches(settings)),
        dataloader_pin_memory=torch.cuda.is_available(),
        bf16=uses_bf16(settings.precision),
        use_cpu=not torch.cuda.is_available(),
        ddp_find_unused_parameters=False,
        ddp_broadcast_buffers=False,
    )
    arguments.dataloader_drop_last = False  # set for several processes; ours share any last batch
    return arguments
