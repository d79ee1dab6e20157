"""The files of a checkpoint as inference servers read them.

sentence-transformers 6 writes module types and the pooling under new names. Servers read the
published ones, which it still loads itself:

- text-embeddings-inference needs `pooling_mode_cls_token`, `pooling_mode_mean_tokens` and the like
  in `1_Pooling/config.json`, `max_seq_length` in `sentence_bert_config.json`, `config.json`,
  `tokenizer.json` and `model.safetensors`;
- vLLM takes the pooling from the module whose type in `modules.json` is
  `sentence_transformers.models.Pooling`, the unit length from `…models.Normalize`, and the model's
  class from `architectures` in `config.json`.

Models with other modules (Interaction II, two encoders) keep the new names: no server runs them.
A module of ours has the name that it has in a wheel, whether a wheel or a clone trained it.
"""

import json
from pathlib import Path
from typing import Any

MODULES, POOLING = "modules.json", "1_Pooling/config.json"
PUBLISHED = "sentence_transformers.models."
PUBLIC, INTERACTION = "inf_studio", "trainer.model.interaction.CrossAttentionTransformer"
SERVED = ("Transformer", "Pooling", "Normalize")
MODES = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
SERVED_MODES = ("cls", "mean", "lasttoken")
FILES = ("config.json", "tokenizer.json", "model.safetensors", "sentence_bert_config.json")


def write_serving_layout(folder: Path, max_tokens: int | None) -> None:
    """Give a saved model the published names, where its modules have them.

    max_tokens: the longest text in tokens, None where the model has no limit of its own.
    """
    modules = _read(folder / MODULES)
    if not isinstance(modules, list):
        return
    if ours := [each for each in modules if each["type"].endswith(INTERACTION)]:
        for each in ours:
            each["type"] = f"{PUBLIC}.{INTERACTION}"
        _write(folder / MODULES, modules)
    if any(_kind(each) not in SERVED for each in modules):
        return
    for each in modules:
        each["type"] = PUBLISHED + _kind(each)
    _write(folder / MODULES, modules)
    pooling = _read(folder / POOLING)
    if isinstance(pooling, dict) and isinstance(mode := pooling.pop("pooling_mode", None), str):
        dimension = pooling.pop("embedding_dimension")
        flags = {name: mode == each for each, name in MODES.items()}
        _write(folder / POOLING, {"word_embedding_dimension": dimension, **flags, **pooling})
    texts = folder / "sentence_bert_config.json"
    known = _read(texts)
    if isinstance(known, dict) and max_tokens:
        known.pop("unpad_inputs", None)  # of training with flash attention
        _write(texts, {"max_seq_length": max_tokens, **known})


def serving_problems(folder: Path) -> list[str]:
    """Why text-embeddings-inference or vLLM would not load this folder; empty if they should."""
    problems = [f"{name} is missing" for name in FILES if not (folder / name).is_file()]
    modules = _read(folder / MODULES)
    if not isinstance(modules, list):
        return [*problems, f"{MODULES} is missing"]
    types = [str(each.get("type")) for each in modules]
    if others := [each for each in types if each not in {PUBLISHED + kind for kind in SERVED}]:
        problems.append(f"{MODULES} has modules that no server runs: {', '.join(others)}")
    pooling = _read(folder / POOLING)
    flags = pooling if isinstance(pooling, dict) else {}
    chosen = [mode for mode, name in MODES.items() if flags.get(name) is True]
    if len(chosen) != 1 or chosen[0] not in SERVED_MODES:
        problems.append(
            f"{POOLING} names {', '.join(chosen) or 'no pooling'}: exactly one of "
            f"{', '.join(SERVED_MODES)} is needed"
        )
    config = _read(folder / "config.json")
    if not (isinstance(config, dict) and config.get("architectures") and config.get("model_type")):
        problems.append("config.json names no architectures or no model_type")
    texts = _read(folder / "sentence_bert_config.json")
    if not (isinstance(texts, dict) and isinstance(texts.get("max_seq_length"), int)):
        problems.append("sentence_bert_config.json names no max_seq_length")
    return problems


def _kind(module: dict[str, Any]) -> str:
    """The class of a module of sentence-transformers, "" for one of another package."""
    name = str(module.get("type"))
    return name.rpartition(".")[2] if name.startswith("sentence_transformers.") else ""


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def _write(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
