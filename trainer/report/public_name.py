"""The public name of a base model: what a card may call it, without a path of this machine."""

import re
from pathlib import Path
from typing import Any

from analysis.embed.model_hash import named_model, same_model
from analysis.embed.model_source import DEFAULT_MODEL
from trainer.model.backbone import read_memory
from trainer.settings.settings import TrainSettings

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_CACHED = re.compile(r"models--([\w.-]+?)--([\w.-]+)$")
MAX_GENERATIONS = 8  # checkpoints trained from checkpoints, back to a public model
PLACES = ("/", "~", ".")  # what the name of a folder begins with
TEXTS = ("template", "query_prefix", "passage_prefix")  # settings that are texts, never folders


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
        if not isinstance(base, str):
            return None
        if not Path(base).is_absolute():  # a public name, or the last part of a folder elsewhere
            return base if HUB_NAME.fullmatch(base) else None
        model = base
    return None


def shown_name(model: str) -> str:
    """The name of a model in the text of a card: a folder's last part, anything else as it is."""
    path = Path(model).expanduser()
    return path.name if path.is_absolute() or path.is_dir() else model


def portable_settings(settings: TrainSettings) -> dict[str, Any]:
    """Settings as another machine may read them: the base's public name, no path of this one."""
    base = public_name(settings.base_model) or shown_name(settings.base_model)
    known = {**settings.as_dict(), "base_model": base}
    return {name: of if name in TEXTS else without_folders(of) for name, of in known.items()}


def without_folders(value: Any) -> Any:
    """A value with the last part of each folder of this machine in place of its path."""
    if isinstance(value, str):
        if "," in value:  # a list of releases
            return ",".join(without_folders(part) for part in value.split(","))
        # a judge's or a reranker's: "transformers:/models/x"
        family, _, rest = value.partition(":")
        if rest.startswith(PLACES) and not rest.startswith("//"):
            return f"{family}:{shown_name(rest)}"
        return shown_name(value) if value.startswith(PLACES) else value
    if isinstance(value, dict):
        return {key: without_folders(inner) for key, inner in value.items()}
    return [without_folders(inner) for inner in value] if isinstance(value, list) else value
