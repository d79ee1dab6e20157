"""A checkpoint's folder for serving: its own files, ONNX and OpenVINO networks, what they cost.

Of a checkpoint whose index stays (`trainer.model.doors`) the trained copy alone is written, as an
ordinary model for queries with an instruction: all other texts stay with the base model's server.

Every network is read back and compared: float32 ones must give the model's vectors (largest
difference of a number at most `TOLERANCE`), or nothing is written. Networks in 8 bits cost quality:
nDCG@10, strict accuracy and the instruction flip are measured on groups of a release with and
without them, and stand on the card. So they do for every Matryoshka dimension that was trained.
"""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from db.errors import BadInput, Refused
from trainer.data.groups import Group
from trainer.evaluate.benchmarks import held_out_benchmark
from trainer.evaluate.scoring import score_model
from trainer.export.card import (
    ONNX,
    ONNX_INT8,
    OPENVINO,
    OPENVINO_INT8,
    section,
    with_usage_of_copy,
)
from trainer.model.backbone import load_model, read_memory, template_of
from trainer.model.doors import exported_part
from trainer.model.serving_layout import serving_problems, write_serving_layout
from trainer.settings.template import Template

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TOLERANCE = 1e-4
MEASURES = ("ndcg@10", "strict", "instruction-flip")
PROBES = (
    "short",
    "Find the author of the book. who wrote it",
    "a text of many words that is longer than the others and has to be padded by them " * 8,
    "Ünïcode – 日本語, punctuation!? and 1,234 numbers",
)
FORMATS = ("onnx", "openvino")
Say = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """The measures of one way to run the model; `difference` from the model's own vectors."""

    network: str
    dimensions: int | None
    difference: float
    metrics: dict[str, float | None] = field(default_factory=dict)


def export_for_serving(
    source: str,
    out: Path,
    *,
    formats: Sequence[str] = FORMATS,
    int8: bool = False,
    groups: Sequence[Group] = (),
    measured_on: str = "",
    say: Say = lambda words: None,
) -> dict[str, Any]:
    """Write the folder `out`, complete or not at all; returns what `export.json` there holds.

    groups: what int8 and Matryoshka dimensions are measured on, named by `measured_on`. Raises
    Refused for a folder that is not empty and for 8 bits without groups, BadInput where a network
    cannot be exported or gives other vectors.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Refused(
            f"{out} is not empty",
            "choose another `out=`, nothing is overwritten",
            code="folder_not_empty",
        )
    if int8 and not groups:
        raise Refused(
            "8 bits cost quality, which is measured",
            "give `release=` with its groups",
            code="int8_needs_measurement",
        )
    whole = load_model(source, fp32=True).to("cpu").eval()
    model = exported_part(whole).to("cpu").eval()  # a new model moves its modules to a GPU
    memory = read_memory(source)
    compared = _Compared(whole, model, template_of(source), groups)
    partial = out.parent / f".{out.name}.{os.getpid()}.partial"
    try:
        _copy(model, source, partial, is_part=model is not whole)
        problems = serving_problems(partial)
        made = _networks(model, partial, formats, int8, say)
        rows = [compared.measured("PyTorch")]
        for name, file in made.items():
            say(f"checking {name}")
            rows.append(compared.of_network(name, file))
        for size in _dimensions(memory):
            say(f"measuring {size} dimensions")
            rows.append(compared.of_dimensions(size))
        report = {
            "source": Path(source).name,
            "measured_on": measured_on if groups else "",
            "groups": len(groups),
            "matryoshka": _dimensions(memory),
            "networks": {name: file.relative_to(partial).as_posix() for name, file in made.items()},
            "rows": [vars(row) for row in rows],
            "server_problems": problems,
        }
        (partial / "export.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        card = partial / "README.md"
        before = card.read_text(encoding="utf-8") if card.is_file() else f"# {out.name}\n"
        card.write_text(before.rstrip() + "\n\n" + section(report), encoding="utf-8")
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.is_dir():
            out.rmdir()
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return report


def _copy(model: "SentenceTransformer", source: str, folder: Path, *, is_part: bool) -> None:
    """The model as saved, merged and in float32, with what its own folder says of it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    model.save(str(folder), create_model_card=False, safe_serialization=True)
    for weights in folder.rglob("*.safetensors"):
        weights.chmod(0o644)  # safetensors writes them for the owner alone
    for name in ("README.md", "inf_embed.json"):
        if (Path(source) / name).is_file():
            shutil.copy(Path(source) / name, folder / name)
    card = folder / "README.md"
    if card.is_file() and is_part:
        text = with_usage_of_copy(card.read_text(encoding="utf-8"), read_memory(source))
        card.write_text(text, encoding="utf-8")
    write_serving_layout(folder, model.max_seq_length)


def _networks(
    model: "SentenceTransformer", folder: Path, formats: Sequence[str], int8: bool, say: Say
) -> dict[str, Path]:
    from trainer.export.networks import write_int8_onnx, write_onnx, write_openvino

    made: dict[str, Path] = {}
    whole = folder / "onnx" / "model.onnx"
    small = folder / "onnx" / "model_int8.onnx"
    say("writing the ONNX network")
    try:
        write_onnx(model, whole)
        if int8:
            write_int8_onnx(whole, small)
        if "openvino" in formats:
            made[OPENVINO] = folder / "openvino" / "openvino_model.xml"
            write_openvino(whole, made[OPENVINO])
            if int8:
                made[OPENVINO_INT8] = folder / "openvino" / "openvino_model_int8.xml"
                write_openvino(small, made[OPENVINO_INT8])
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        raise BadInput(
            f"this model's network cannot be exported: {error}",
            "serve it as it is: `models serve CHECKPOINT`",
            code="model_not_exportable",
        ) from error
    if "onnx" not in formats:
        shutil.rmtree(whole.parent)
        return made
    onnx = {ONNX: whole} | ({ONNX_INT8: small} if int8 else {})
    return onnx | made


class _Compared:
    """Ways to run the exported model, measured as they will be used.

    Where the index stays, `model` is a part of `whole`, with the same modules: a network that
    replaces its own answers instructed queries of `whole`, and passages stay the base model's.
    """

    def __init__(
        self,
        whole: "SentenceTransformer",
        model: "SentenceTransformer",
        template: Template,
        groups: Sequence[Group],
    ) -> None:
        self.whole, self.model, self.template = whole, model, template
        self.benchmark = held_out_benchmark("export", list(groups)) if groups else None
        self.own = self._vectors()

    def of_network(self, name: str, file: Path) -> Measured:
        from trainer.export.networks import network_replaced

        with network_replaced(self.model, file):
            row = self.measured(name)
        if name in (ONNX, OPENVINO) and not row.difference <= TOLERANCE:
            raise BadInput(
                f"{name} gives other vectors than the model: a number differs by "
                f"{row.difference:.2g}, allowed are {TOLERANCE:g}; nothing was written",
                "export in another format",
                code="export_vectors_differ",
            )
        return row

    def of_dimensions(self, size: int) -> Measured:
        self.whole.truncate_dim = size
        try:
            return self.measured("PyTorch", size)
        finally:
            self.whole.truncate_dim = None

    def measured(self, name: str, size: int | None = None) -> Measured:
        # fewer dimensions are the first numbers of the same vector
        difference = 0.0 if size else float(np.abs(self._vectors() - self.own).max())
        if self.benchmark is None:
            return Measured(name, size, difference)
        found = score_model(self.whole, self.template, self.benchmark, controls=False).metrics
        return Measured(name, size, difference, {each: found.get(each) for each in MEASURES})

    def _vectors(self) -> np.ndarray:
        return np.asarray(self.model.encode(list(PROBES)))


def _dimensions(memory: dict[str, Any]) -> list[int]:
    text = str((memory.get("settings") or {}).get("matryoshka") or "")
    return [int(part) for part in text.replace(",", " ").split() if part.isdigit()]
