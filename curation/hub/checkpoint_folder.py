"""A checkpoint's files as they are pushed: no path of this machine, a card with its evaluations.

The weights are the folder's own files. Text files are copied with each path of this machine
replaced by its last part; the card gets the Hub's fields for the evaluations in the store and for
the release, where that was pushed; only then the held-out groups go along.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from curation.hub.folder import CARD, files_to_push
from db.errors import BadInput
from db.jobs.jobs import pushed_release
from db.outcome.evaluations import evaluations_of_checkpoint
from db.release.releases import get_release
from db.tables import Checkpoint, Evaluation
from db.values import HELD_OUT_FILE

MAX_TEXT_BYTES = 4_000_000
TEXTS = (".json", ".md", ".txt")
PLACEHOLDER = '("PATH")'  # where a card's snippets load the model from, until it has a public name


def checkpoint_files(
    session: Session, checkpoint: Checkpoint, aside: Path, repo: str
) -> dict[str, Path]:
    """The files to push to `repo` by their path in it; changed copies are written to `aside`."""
    folder = Path(checkpoint.path)
    files = files_to_push(folder)
    private = sorted(set(_folders(checkpoint)), key=len, reverse=True)
    card = files.get(CARD)
    release = _pushed(session, checkpoint)
    if release is None or not release.is_public:  # its texts are published by itself, or not at all
        files.pop(HELD_OUT_FILE, None)
    evaluations = evaluations_of_checkpoint(session, checkpoint.id)
    for name, path in list(files.items()):
        if path.suffix not in TEXTS or path.stat().st_size > MAX_TEXT_BYTES:
            continue
        before = text = path.read_text(encoding="utf-8")
        for place in private:
            # a folder in JSON stands between quotes with its slashes as they are
            text = text.replace(place, Path(place).name)
        if path == card:
            text = card_with(text, evaluations, release).replace(PLACEHOLDER, f'("{repo}")')
        if text != before:
            files[name] = aside / name
            files[name].parent.mkdir(parents=True, exist_ok=True)
            files[name].write_text(text, encoding="utf-8")
    return files


@dataclass(frozen=True)
class PushedRelease:
    """A release on the Hub; held-out groups are named by the first digits of its content."""

    repo: str
    commit: str
    is_public: bool
    content_sha256: str


def _pushed(session: Session, checkpoint: Checkpoint) -> PushedRelease | None:
    """Where the release that the checkpoint was trained on was pushed to; None if nowhere."""
    if checkpoint.release_id is None:
        return None
    if (found := pushed_release(session, checkpoint.release_id)) is None:
        return None
    return PushedRelease(*found, get_release(session, checkpoint.release_id).content_sha256)


def card_with(card: str, evaluations: Sequence[Evaluation], release: PushedRelease | None) -> str:
    """The card with `model-index` (as mteb writes it) and `datasets` in its front matter."""
    import yaml

    if not card.startswith("---\n") or "\n---" not in card[4:]:
        raise BadInput(
            "the checkpoint's README.md has no front matter",
            "train it again",
            code="checkpoint_front_matter_missing",
        )
    head, _, rest = card[4:].partition("\n---")
    known = yaml.safe_load(head) or {}
    title = next((line[2:] for line in rest.splitlines() if line.startswith("# ")), "InF-Embed")
    if release:
        known["datasets"] = [release.repo]
    results = [_result(each, release) for each in evaluations if _metrics(each)]
    if results:
        known["model-index"] = [{"name": title, "results": results}]
    written = yaml.safe_dump(known, sort_keys=False, allow_unicode=True)
    return f"---\n{written.rstrip()}\n---{rest}"


def _result(evaluation: Evaluation, release: PushedRelease | None) -> dict[str, Any]:
    # a benchmark read from a folder is named by it
    name = " ".join(Path(part).name or part for part in evaluation.benchmark.split(" "))
    place = {"type": "".join(c if c.isalnum() or c in "-_./" else "-" for c in name.lower())}
    record = evaluation.record
    downloads = record.get("downloads") or {}
    if len(downloads) == 1:
        ((repo, commit),) = downloads.items()
        place = {"type": repo, "revision": commit}
    elif content := record.get("benchmark"):  # of a folder, or of several datasets together
        place["revision"] = f"sha256:{content['sha256']}"
    if release and evaluation.benchmark.endswith(release.content_sha256[:12]):
        place = {"type": release.repo, "revision": release.commit}  # its held-out groups
    return {
        "task": {"type": "Retrieval", "name": "Instruction-following retrieval"},
        "dataset": {**place, "name": name, "config": "default", "split": "test"},
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
