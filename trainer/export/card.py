"""The section of a model card on how to serve the exported files, and what they cost. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from trainer.report.public_name import shown_name
from trainer.settings.template import Template

ONNX, ONNX_INT8 = "ONNX", "ONNX int8"
OPENVINO, OPENVINO_INT8 = "OpenVINO", "OpenVINO int8"
HINT, PRECISION = "INFERENCE_PRECISION_HINT", "f32"  # under which OpenVINO's vectors are checked
COLUMNS = {"ndcg@10": "nDCG@10", "strict": "strict accuracy", "instruction-flip": "flip"}


def with_usage_of_copy(card: str, memory: Mapping[str, Any]) -> str:
    """The checkpoint's card, but for its use: the exported copy reads queries with an instruction
    alone. memory: as `inf_embed.json`."""
    text = Template(memory["template"]).apply("INSTRUCTION", "QUERY")
    base = shown_name(str((memory.get("settings") or {}).get("base_model") or "the base model"))
    usage = (
        "## Use\n"
        "These files are the trained copy alone: it reads queries with an instruction, as one "
        f"text. Passages and queries without an instruction are encoded by {base}, whose index "
        "stays valid; this copy's vectors of them do not fit it.\n"
        "```python\nfrom sentence_transformers import SentenceTransformer\n\n"
        f'query = SentenceTransformer("PATH").encode_query([{text!r}])\n```\n\n'
    )
    return re.sub(r"(?ms)^## Use\n.*?(?=^## |\Z)", lambda _: usage, card)


def section(report: Mapping[str, Any]) -> str:
    """The section in Markdown; report as in `export.json`."""
    files = "\n".join(f"- {name}: `{path}`" for name, path in report["networks"].items())
    problems = report["server_problems"]
    servers = (
        "text-embeddings-inference and vLLM will not load it: " + "; ".join(problems) + "."
        if problems
        else "The file layout is the one that sentence-transformers, text-embeddings-inference and "
        "vLLM's pooling mode read."
    )
    parts = [
        "## Serving",
        servers,
        files,
        _precision(report),
        _costs(report),
        _dimensions(report["matryoshka"]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _precision(report: Mapping[str, Any]) -> str:
    if OPENVINO not in report["networks"]:
        return ""
    return (
        f'OpenVINO was checked with `{{"{HINT}": "{PRECISION}"}}` as third argument of '
        "`Core().compile_model`. Its default is bfloat16 where the CPU has it, and numbers "
        "of a vector then differ in the third decimal."
    )


def _costs(report: Mapping[str, Any]) -> str:
    base = report["rows"][0]["metrics"]
    head = "| run by | dimensions | largest difference of a number |"
    lines = ["|---|---:|---:|"]
    if base:
        head += "".join(f" {label} |" for label in COLUMNS.values())
        lines[0] += "---:|" * len(COLUMNS)
    for row in report["rows"]:
        line = f"| {row['network']} | {row['dimensions'] or 'all'} | {row['difference']:.1e} |"
        for name in COLUMNS if base else ():
            line += f" {_with_loss(row['metrics'][name], base[name])} |"
        lines.append(line)
    over = (
        f"Measured on {report['groups']:,} groups of {report['measured_on']}; in brackets the "
        "difference from PyTorch with all dimensions.\n\n"
        if base
        else ""
    )
    return over + "\n".join([head, *lines])


def _with_loss(value: float | None, base: float | None) -> str:
    if value is None or base is None:
        return "undefined"
    return f"{value:.4f} ({value - base:+.4f})"


def _dimensions(sizes: list[int]) -> str:
    if not sizes:
        return ""
    listed = ", ".join(map(str, sizes))
    return (
        f"Trained so that the first {listed} numbers of a vector are vectors themselves: "
        f"`SentenceTransformer(PATH, truncate_dim={sizes[0]})`, `dimensions` in a request to vLLM; "
        "bring them to unit length again."
    )
