"""The public name of a base model: what a card may call it, without a path of this machine."""

import re
from pathlib import Path
from typing import Any

from analysis.embed.model_hash import named_model, same_model
from analysis.embed.model_source import DEFAULT_MODEL
from trainer.model.backbone import read_memory

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_CACHED = re.compile(r"models--([\w.-]+?)--([\w.-]+)$")
MAX_GENERATIONS = 8  # checkpoints trained from checkpoints, back to a public model


def public_name(model: str) -> str | None:
    """The Hub's id of a model, or None where it has none that is known.

    A folder has the id of the cached snapshot that it is, or of the packaged weights with the same
    content, or its base's if it is a checkpoint of ours.
    """
    for _ in range(MAX_GENERATIONS):
        folder = Path(model).expanduser()
        if not folder.is_dir():
            return model if HUB_NAME.fullmatch(model) else None
        for part in folder.resolve().parts:
            if found := _CACHED.fullmatch(part):
                return f"{found.group(1)}/{found.group(2)}"
        if same_model(named_model(model), named_model(DEFAULT_MODEL)):
            return DEFAULT_MODEL
        base = read_memory(str(folder)).get("settings", {}).get("base_model")
        if not isinstance(base, str) or base == model:
            return None
        model = base
    return None


def shown_name(model: str) -> str:
    """The name of a model in the text of a card: a folder's last part, anything else as it is."""
    path = Path(model).expanduser()
    return path.name if path.is_absolute() or path.is_dir() else model


def without_folders(value: Any) -> Any:
    """Settings with the last part of each folder of this machine in place of its path."""
    if isinstance(value, str):
        family, _, rest = value.partition(
            ":"
        )  # a judge's or a reranker's: "transformers:/models/x"
        if rest.startswith(("/", "~", ".")) and not rest.startswith("//"):
            return f"{family}:{shown_name(rest)}"
        return shown_name(value) if value.startswith(("/", "~", ".")) else value
    if isinstance(value, dict):
        return {key: without_folders(inner) for key, inner in value.items()}
    return [without_folders(inner) for inner in value] if isinstance(value, list) else value
