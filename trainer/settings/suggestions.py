"""Which setting an unknown name means: usual names of other trainers, else the most similar one."""

from collections.abc import Mapping
from typing import Final

from db.requests import meant
from trainer.settings.table import SETTINGS

# How sentence-transformers, transformers' Trainer, PEFT and Tevatron call what a setting here does.
USUAL_NAMES: Final[Mapping[str, str]] = {
    "adam_beta": "optimizer",
    "batch": "rows_per_batch",
    "batch_size": "rows_per_batch",
    "bf16": "precision",
    "bsz": "rows_per_batch",
    "checkpoint_steps": "save_steps",
    "clip": "clip_norm",
    "data_seed": "seed",
    "dataset": "more_releases",
    "dev_size": "held_out",
    "doc_max_len": "passage_tokens",
    "dtype": "precision",
    "early_stopping": "patience",
    "early_stopping_patience": "patience",
    "eval_size": "held_out",
    "eval_split": "held_out",
    "eval_steps": "evaluate_steps",
    "flash_attention": "attention",
    "fp16": "precision",
    "grad_accum": "accumulation_steps",
    "grad_cache_chunk_size": "texts_at_once",
    "grad_clip": "clip_norm",
    "gradient_accumulation_steps": "accumulation_steps",
    "gradient_clipping": "clip_norm",
    "hard_negatives": "mined_negatives",
    "instruction_template": "template",
    "lora": "lora_rank",
    "lora_r": "lora_rank",
    "loss": "objective",
    "lr": "learning_rate",
    "lr_scheduler": "schedule",
    "lr_scheduler_type": "schedule",
    "matryoshka_dims": "matryoshka",
    "max_grad_norm": "clip_norm",
    "max_length": "passage_tokens",
    "max_len": "passage_tokens",
    "max_seq_length": "passage_tokens",
    "max_time": "max_seconds",
    "metric_for_best_model": "best_by",
    "mini_batch_size": "texts_at_once",
    "model": "base_model",
    "model_name": "base_model",
    "model_name_or_path": "base_model",
    "negatives": "mined_negatives",
    "num_epochs": "epochs",
    "num_train_epochs": "epochs",
    "num_workers": "prefetch",
    "optim": "optimizer",
    "p_max_len": "passage_tokens",
    "passage_max_len": "passage_tokens",
    "per_device_train_batch_size": "rows_per_batch",
    "per_gpu_train_batch_size": "rows_per_batch",
    "pooling_mode": "pooling",
    "prompt": "template",
    "q_max_len": "query_tokens",
    "query_max_len": "query_tokens",
    "r": "lora_rank",
    "random_state": "seed",
    "scale": "temperature",
    "scheduler": "schedule",
    "steps": "max_steps",
    "target_modules": "lora_targets",
    "tau": "temperature",
    "test_size": "held_out",
    "torch_dtype": "precision",
    "use_dora": "dora",
    "train_batch_size": "rows_per_batch",
    "trust_remote_code": "remote_code",
    "validation_split": "held_out",
    "warmup_ratio": "warmup",
    "warmup_steps": "warmup",
    "wd": "weight_decay",
}


def suggested_setting(name: str) -> str:
    """The setting that an unknown name probably means, "" where none is near."""
    plain = name.strip().lower().lstrip("-").replace("-", "_").replace(" ", "_")
    if plain in SETTINGS:
        return plain
    if plain in USUAL_NAMES:
        return USUAL_NAMES[plain]
    known = [*SETTINGS, *USUAL_NAMES]
    near = meant(plain, known)
    return USUAL_NAMES.get(near, near)
