"""Code that comes with a model is never run, whichever way the model asks for it."""

import json
from pathlib import Path

import pytest

from db.errors import BadInput
from trainer.model.backbone import load_backbone, load_model
from trainer.settings.settings import parse_settings

MARK = "from pathlib import Path\nPath({ran!r}).touch()\n"


def saved(folder: Path) -> Path:
    load_backbone(parse_settings({"base_model": "tiny-random-bert"})).save(str(folder))
    return folder


def test_a_module_of_the_models_own_is_refused_and_not_run(tmp_path: Path) -> None:
    folder, ran = saved(tmp_path / "model"), tmp_path / "ran"
    (folder / "mine.py").write_text(
        MARK.format(ran=str(ran)) + "import torch\nclass Mine(torch.nn.Module): pass\n"
    )
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["type"] = "mine.Mine"
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(BadInput, match="needs no code of its own"):
        load_model(str(folder))
    assert not ran.exists()


def test_an_architecture_of_the_models_own_is_refused_and_not_run(tmp_path: Path) -> None:
    folder, ran = saved(tmp_path / "model"), tmp_path / "ran"
    (folder / "mine.py").write_text(
        MARK.format(ran=str(ran)) + "from transformers import BertConfig as C, BertModel as M\n"
    )
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.C", "AutoModel": "mine.M"}}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match="needs no code of its own"):
        load_model(str(folder))
    assert not ran.exists()


def test_code_runs_where_it_is_allowed(tmp_path: Path) -> None:
    folder, ran = saved(tmp_path / "model"), tmp_path / "ran"
    (folder / "mine.py").write_text(
        MARK.format(ran=str(ran))
        + "from sentence_transformers.sentence_transformer.modules import Normalize\n"
        + "class Mine(Normalize): pass\n"
    )
    modules = json.loads((folder / "modules.json").read_text())
    modules[2]["type"] = "mine.Mine"
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(BadInput, match="remote_code=run in a training"):
        load_model(str(folder))
    assert not ran.exists()
    assert load_model(str(folder), remote_code=True).encode(["a"]).shape == (1, 32)
    assert ran.exists()
