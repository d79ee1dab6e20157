"""The number of parameters of a model without loading it: from a list, its files or its name."""

import re
from pathlib import Path

# In millions: the backbones of the paper's tables and the default base model.
PARAMETERS = {
    "sentence-transformers/all-MiniLM-L6-v2": 22.7,
    "intfloat/e5-base-v2": 109.5,
    "intfloat/e5-large-v2": 335.1,
    "answerdotai/ModernBERT-base": 149.0,
    "meta-llama/Llama-3.2-1B": 1235.8,
    "meta-llama/Llama-3.2-1B-Instruct": 1235.8,
    "Qwen/Qwen2.5-1.5B": 1543.7,
    "Qwen/Qwen2.5-1.5B-Instruct": 1543.7,
    "Qwen/Qwen2.5-3B": 3085.9,
    "Qwen/Qwen2.5-3B-Instruct": 3085.9,
}
NAMED = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)


def parameters_of(model: str) -> float | None:
    """From the list, else from the size of its files (fp32); None if neither is known."""
    if model in PARAMETERS:
        return PARAMETERS[model] * 1e6
    files = list(Path(model).expanduser().glob("*.safetensors"))
    return sum(file.stat().st_size for file in files) / 4 if files else None


def named_parameters(model: str) -> float | None:
    """The size in a model's name (`e5-mistral-7b`, `Qwen3-Embedding-0.6B`); None without one."""
    found = NAMED.findall(model.rsplit("/", 1)[-1])
    return float(found[-1]) * 1e9 if found else None
