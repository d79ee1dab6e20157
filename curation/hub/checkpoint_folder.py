"""A checkpoint's files as they are pushed: no path of this machine, a card with its evaluations.

The weights are the folder's own files. Text files are copied with each path of this machine
replaced by its last part; the card gets the Hub's fields for the evaluations in the store and for
the release, where that was pushed.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from curation.hub.folder import CARD, files_to_push
from db.errors import BadInput
from db.jobs.jobs import pushed_repository
from db.outcome.evaluations import evaluations_of_checkpoint
from db.tables import Checkpoint, Evaluation

MAX_TEXT_BYTES = 4_000_000
TEXTS = (".json", ".md", ".txt")


def checkpoint_files(session: Session, checkpoint: Checkpoint, aside: Path) -> dict[str, Path]:
    """The files to push by their path in the repository; changed copies are written to `aside`."""
    folder = Path(checkpoint.path)
    files = files_to_push(folder)
    private = sorted(set(_folders(checkpoint)), key=len, reverse=True)
    card = files.get(CARD)
    release = checkpoint.release_id and pushed_repository(session, checkpoint.release_id)
    evaluations = evaluations_of_checkpoint(session, checkpoint.id)
    for name, path in list(files.items()):
        if path.suffix not in TEXTS or path.stat().st_size > MAX_TEXT_BYTES:
            continue
        before = text = path.read_text(encoding="utf-8")
        for place in private:
            # a folder in JSON stands between quotes with its slashes as they are
            text = text.replace(place, Path(place).name)
        if path == card:
            text = card_with(text, evaluations, [release] if release else [])
        if text != before:
            files[name] = aside / name
            files[name].parent.mkdir(parents=True, exist_ok=True)
            files[name].write_text(text, encoding="utf-8")
    return files


def card_with(card: str, evaluations: Sequence[Evaluation], datasets: Sequence[str]) -> str:
    """The card with `model-index` (as mteb writes it) and `datasets` in its front matter."""
    import yaml

    if not card.startswith("---\n") or "\n---" not in card[4:]:
        raise BadInput("the checkpoint's README.md has no front matter: train it again")
    head, _, rest = card[4:].partition("\n---")
    known = yaml.safe_load(head) or {}
    title = next((line[2:] for line in rest.splitlines() if line.startswith("# ")), "InF-Embed")
    if datasets:
        known["datasets"] = list(datasets)
    results = [_result(each) for each in evaluations if _metrics(each)]
    if results:
        known["model-index"] = [{"name": title, "results": results}]
    written = yaml.safe_dump(known, sort_keys=False, allow_unicode=True)
    return f"---\n{written.rstrip()}\n---{rest}"


def _result(evaluation: Evaluation) -> dict[str, Any]:
    # a benchmark read from a folder is named by it
    name = " ".join(Path(part).name or part for part in evaluation.benchmark.split(" "))
    return {
        "task": {"type": "Retrieval", "name": "Instruction-following retrieval"},
        "dataset": {
            "type": "".join(c if c.isalnum() or c in "-_./" else "-" for c in name.lower()),
            "name": name,
            "config": "default",
            "split": "test",
        },
        "metrics": _metrics(evaluation),
    }


def _metrics(evaluation: Evaluation) -> list[dict[str, Any]]:
    """The measured values under mteb's names: `ndcg@10` is `ndcg_at_10`; undefined left out."""
    return [
        {"type": name.replace("@", "_at_").replace("-", "_").lower(), "value": float(value)}
        for name, value in evaluation.metrics.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]


def _folders(checkpoint: Checkpoint) -> Iterator[str]:
    """Every path of this machine that the checkpoint's record names."""
    yield checkpoint.path
    yield from _paths([checkpoint.base_model, checkpoint.config, checkpoint.summary])
    memory = Path(checkpoint.path) / "inf_embed.json"
    if memory.is_file():
        yield from _paths(json.loads(memory.read_text(encoding="utf-8")))


def _paths(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.startswith("/") and len(value) > 1:
        yield value.rstrip("/")
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _paths(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner)
