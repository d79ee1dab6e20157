"""What leaves for serving: equal vectors in every format, the layout that servers read."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from base_folders import trained
from trainer_release import write_release

from db.errors import BadInput, Refused
from trainer.data.release_files import read_release
from trainer.evaluate.benchmarks import held_out_benchmark
from trainer.evaluate.scoring import score_model
from trainer.export import exporting
from trainer.export.card import HINT, OPENVINO, PRECISION, section
from trainer.export.exporting import MEASURES, PROBES, export_for_serving
from trainer.model.backbone import load_model
from trainer.model.serving_layout import serving_problems, write_serving_layout
from trainer.model.tiny import build_tiny_model
from trainer.settings.template import Template

ROOT = Path(__file__).resolve().parents[2]


def saved(folder: Path, name: str = "bert") -> Path:
    model = build_tiny_model(f"tiny-random-{name}")
    model.save(str(folder), create_model_card=False)
    write_serving_layout(folder, model.max_seq_length)
    return folder


def test_the_layout_is_the_published_one_and_loads_without_a_warning(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    folder = saved(tmp_path / "model")
    assert serving_problems(folder) == []
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    # text-embeddings-inference's PoolConfig: these are read as required booleans
    required = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    assert [pooling[f"pooling_mode_{name}"] for name in required] == [False, True, False, False]
    modules = json.loads((folder / "modules.json").read_text())
    # vLLM's get_pooling_config compares these types as text
    kinds = ("Transformer", "Pooling", "Normalize")
    assert [each["type"] for each in modules] == [
        f"sentence_transformers.models.{k}" for k in kinds
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = SentenceTransformer(str(folder)).encode(list(PROBES))
    own = build_tiny_model("tiny-random-bert").encode(list(PROBES))
    assert np.array_equal(read, own)


@pytest.mark.parametrize(
    ("file", "change", "problem"),
    [
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False}, "names no pooling"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "names mean, max"),
        ("config.json", {"architectures": None}, "names no architectures"),
        ("sentence_bert_config.json", {"max_seq_length": None}, "names no max_seq_length"),
    ],
)
def test_what_a_server_would_refuse_is_named(
    tmp_path: Path, file: str, change: dict[str, Any], problem: str
) -> None:
    folder = saved(tmp_path / "model")
    value = json.loads((folder / file).read_text()) | change
    (folder / file).write_text(json.dumps(value))
    assert any(problem in each for each in serving_problems(folder))


def test_missing_files_and_other_modules_are_named(tmp_path: Path) -> None:
    folder = saved(tmp_path / "model")
    (folder / "tokenizer.json").unlink()
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["type"] = "trainer.model.interaction.CrossAttention"
    (folder / "modules.json").write_text(json.dumps(modules))
    found = serving_problems(folder)
    assert "tokenizer.json is missing" in found
    assert any("trainer.model.interaction.CrossAttention" in each for each in found)
    before = (folder / "modules.json").read_text()
    write_serving_layout(folder, 8)
    assert (folder / "modules.json").read_text() == before


def test_a_card_states_the_loss_and_the_dimensions() -> None:
    def row(name: str, size: int | None, ndcg: float | None) -> dict[str, Any]:
        metrics = {"ndcg@10": ndcg, "strict": 0.5, "instruction-flip": 0.75}
        return {"network": name, "dimensions": size, "difference": 1e-5, "metrics": metrics}

    rows = [row("PyTorch", None, 0.9), row("ONNX int8", None, 0.875), row("PyTorch", 64, None)]
    report = {
        "networks": {"ONNX int8": "onnx/model_int8.onnx"},
        "rows": rows,
        "groups": 30,
        "measured_on": "bridges",
        "matryoshka": [64],
        "server_problems": [],
    }
    text = section(report)
    assert "| ONNX int8 | all | 1.0e-05 | 0.8750 (-0.0250) | 0.5000 (+0.0000) |" in text
    assert "| PyTorch | 64 | 1.0e-05 | undefined |" in text and "truncate_dim=64" in text


def test_card_and_documents_name_the_precision_under_which_openvino_was_checked() -> None:
    report = {
        "networks": {OPENVINO: "openvino/openvino_model.xml"},
        "server_problems": [],
        "rows": [{"network": "PyTorch", "dimensions": None, "difference": 0.0, "metrics": None}],
        "matryoshka": [],
    }
    for stated in (section(report), (ROOT / "docs" / "how-to" / "serving.md").read_text()):
        assert f'"{HINT}": "{PRECISION}"' in stated
    assert HINT not in section({**report, "networks": {}})


def test_nothing_is_overwritten_and_8_bits_are_not_written_unmeasured(tmp_path: Path) -> None:
    folder = saved(tmp_path / "model")
    with pytest.raises(Refused, match="is not empty"):
        export_for_serving(str(folder), folder)
    with pytest.raises(Refused, match="give `release=`"):
        export_for_serving(str(folder), tmp_path / "out", int8=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.long
@pytest.mark.parametrize("name", ["bert", "qwen2"])
def test_every_format_gives_the_models_vectors_and_8_bits_their_measured_loss(
    tmp_path: Path, name: str
) -> None:
    pytest.importorskip("onnxruntime")
    folder = saved(tmp_path / "model", name)
    (folder / "inf_embed.json").write_text(json.dumps({"settings": {"matryoshka": "16,8"}}))
    groups = read_release(write_release(tmp_path / "release", 12)).groups
    out = tmp_path / "out"
    report = export_for_serving(str(folder), out, int8=True, groups=groups, measured_on="bridges")
    rows = {(row["network"], row["dimensions"]): row for row in report["rows"]}
    assert list(rows) == [
        ("PyTorch", None), ("ONNX", None), ("ONNX int8", None), ("OpenVINO", None),
        ("OpenVINO int8", None), ("PyTorch", 16), ("PyTorch", 8),
    ]  # fmt: skip
    for network in ("ONNX", "OpenVINO"):
        assert rows[network, None]["difference"] <= 1e-4
        assert rows[network, None]["metrics"] == rows["PyTorch", None]["metrics"]
    assert all(row["metrics"]["ndcg@10"] is not None for row in rows.values())
    assert report["server_problems"] == []
    assert (out / "onnx" / "model.onnx").stat().st_size > 0
    small = (out / "onnx" / "model_int8.onnx").stat().st_size
    assert small < (out / "onnx" / "model.onnx").stat().st_size
    card = (out / "README.md").read_text()
    assert "Measured on 12 groups of bridges" in card and "truncate_dim=16" in card
    assert str(tmp_path) not in card + (out / "export.json").read_text()
    assert not list(tmp_path.glob(".out.*"))


@pytest.mark.long
def test_an_exported_copy_is_measured_beside_its_base_and_says_what_it_reads(
    tmp_path: Path,
) -> None:
    """Passages stay the base model's: measured with the copy for them, the figures were of a way
    to run it that nobody has, and the card still said that the index stays."""
    pytest.importorskip("onnxruntime")
    folder = Path(trained(tmp_path / "model", trained_side="query", matryoshka="16"))
    memory = {
        "template": "{instruction} {query}",
        "settings": {"trained_side": "query", "matryoshka": "16", "base_model": "tiny-random-bert"},
    }
    (folder / "inf_embed.json").write_text(json.dumps(memory))
    (folder / "README.md").write_text("# card\n\n## Use\ntask='instructed'\n\n## Scores\nhigh\n")
    groups = read_release(write_release(tmp_path / "release", 12)).groups
    out = tmp_path / "out"
    report = export_for_serving(str(folder), out, formats=["onnx"], groups=groups, measured_on="b")
    whole = score_model(
        load_model(str(folder), fp32=True),
        Template(),
        held_out_benchmark("export", list(groups)),
        controls=False,
    ).metrics
    torch_row, onnx_row, small = report["rows"]
    assert torch_row["metrics"] == onnx_row["metrics"] == {m: whole[m] for m in MEASURES}
    assert small["dimensions"] == 16 and small["metrics"]["ndcg@10"] is not None
    card = (out / "README.md").read_text()
    assert "task='instructed'" not in card and "trained copy alone" in card
    assert "tiny-random-bert" in card and "## Scores\nhigh" in card and "## Serving" in card


@pytest.mark.long
def test_a_network_with_other_vectors_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    folder = saved(tmp_path / "model")
    monkeypatch.setattr(exporting, "TOLERANCE", -1.0)
    with pytest.raises(BadInput, match="gives other vectors than the model"):
        export_for_serving(str(folder), tmp_path / "out", formats=["onnx"])
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".out.*"))
