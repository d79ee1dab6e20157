"""Writing a checkpoint folder: whole or not at all, safetensors only."""

import errno
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.files.rows import MTEB_TASK
from db.errors import BadInput, Refused
from db.values import HELD_OUT_FILE
from trainer.model.backbone import MEMORY, read_memory
from trainer.model.serving_layout import write_serving_layout

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def require_free(out: Path, key: str) -> None:
    """Raise Refused where no folder can be made there, or it holds what is not of the job of that
    key."""
    there = next(each for each in (out, *out.parents) if each.exists())
    if not there.is_dir():
        raise Refused(
            f"{there} is a file: a checkpoint is a folder",
            "name a folder that is new or empty as `out=`",
            code="folder_is_file",
        )
    if not out.exists() or not any(out.iterdir()):
        return
    if read_memory(str(out)).get("job") == key:
        return
    raise Refused(
        f"{out} is not empty",
        "choose another `out=`, nothing is overwritten",
        code="folder_not_empty",
    )


def write_checkpoint(
    model: "SentenceTransformer",
    out: Path,
    memory: dict[str, Any],
    card: str,
    adapters: dict[str, Any] | None = None,
    held_out: Sequence[Mapping[str, str]] = (),
) -> None:
    """Save the model, what it remembers and its card; `out` appears complete or not at all.

    adapters: what `trainer.model.lora.adapters_of` gives, saved in the folder `adapters`.
    held_out: the texts of the groups of its scores, saved with a task of mteb that repeats these.

    Raises BadInput where the disk is full: what was there before stays intact.
    """
    partial = out.parent / f".{out.name}.{os.getpid()}.partial"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        model.save(str(partial), create_model_card=False, safe_serialization=True)
        write_serving_layout(partial, model.max_seq_length)
        for weights in partial.rglob("*.safetensors"):
            weights.chmod(0o644)  # safetensors writes them for the owner alone
        (partial / MEMORY).write_text(
            json.dumps(memory, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        (partial / "README.md").write_text(card, encoding="utf-8")
        if held_out:
            rows = (json.dumps(row, ensure_ascii=False) + "\n" for row in held_out)
            (partial / HELD_OUT_FILE).write_text("".join(rows), encoding="utf-8")
            shutil.copy(MTEB_TASK, partial)
        if adapters:
            _write_adapters(partial / "adapters", adapters, memory["settings"]["base_model"])
        if out.exists():
            shutil.rmtree(out)  # empty, or this job's own: `require_free` saw to it
        partial.rename(out)
    except Exception as error:
        shutil.rmtree(partial, ignore_errors=True)
        if is_disk_full(error):
            raise BadInput(
                f"no space left on the disk of {out}",
                "free some, then resume the job",
                code="disk_full",
            ) from error
        raise


def _write_adapters(folder: Path, adapters: dict[str, Any], base_model: str) -> None:
    from safetensors.torch import save_file

    folder.mkdir()
    save_file(adapters["weights"], folder / "adapter_model.safetensors")
    config = adapters["config"] | {"base_model_name_or_path": base_model}
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")


def is_disk_full(error: BaseException) -> bool:
    """Whether the disk was full: safetensors and torch.save report it only in the message."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    messages = (
        "No space left on device",
        "basic_ios::clear: iostream error",
        "inline_container.cc",
    )
    return full or any(each in str(error) for each in messages)
