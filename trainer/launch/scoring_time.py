"""How long a training's own scoring takes, from the texts that it will encode.

The texts are found by scoring with a model that only writes down what it is given; a sample of
them, of all lengths, gives the pace.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.data.splitting import Groups
from trainer.evaluate.scoring import BATCH, scoring_precision
from trainer.evaluate.vector_cache import Caches
from trainer.loop.precision import uses_bf16
from trainer.report.held_out_scores import HeldOutScores
from trainer.settings.settings import TrainSettings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

SAMPLED_TEXTS = 4 * BATCH
ROLES = ("query", "document")
CachesOf = Callable[["SentenceTransformer"], Caches | None]


class Recorder:
    """In place of a model: remembers the texts to encode, in their order, and answers zeros."""

    def __init__(self, model: "SentenceTransformer") -> None:
        self.device, self.prompts = model.device, model.prompts
        self.texts: dict[str, list[str]] = {role: [] for role in ROLES}

    def encode_query(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        """Zeros of shape (texts, 1)."""
        return self._record("query", texts)

    def encode_document(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        """Zeros of shape (texts, 1)."""
        return self._record("document", texts)

    def _record(self, role: str, texts: Sequence[str]) -> np.ndarray:
        self.texts[role] += texts
        return np.zeros((len(texts), 1), dtype=np.float32)


def scoring_seconds(
    model: "SentenceTransformer",
    settings: TrainSettings,
    groups: Groups,
    steps: int,
    caches_of_base: CachesOf | None = None,
) -> float:
    """Seconds of scoring before, after and, every `evaluate_steps`, during the training.

    Before: only what is not in the caches. Searching and BM25, which take little, are left out.
    """
    scores = HeldOutScores(settings, groups, check=lambda: None)
    before, now, after = (
        _recorded(model, score)
        for score in (scores.score_before, scores.score_now, scores.score_after)
    )
    times = steps // settings.evaluate_steps if settings.evaluate_steps else 0
    caches = caches_of_base(model) if caches_of_base else None
    total = 0.0
    with scoring_precision(model.device, bf16=uses_bf16(settings.precision)):
        for place, role in enumerate(ROLES):
            each = _seconds_per_text(model, role, after[role])
            cache = caches[place] if caches else None
            kept = cache.read(list(set(before[role]))) if cache else {}
            if role == "document" and settings.trained_side == "query":
                # Embedded once, with all that the training reads; the trained copy reads none.
                read = {passage for group in groups.training for *_, passage in group.triplets()}
                before[role], now[role], after[role] = [*{*before[role], *read}], [], []
            missing = sum(text not in kept for text in before[role])
            total += each * (missing + times * len(now[role]) + len(after[role]))
    return total


def _recorded(
    model: "SentenceTransformer", score: Callable[[Any], dict[str, float]]
) -> dict[str, list[str]]:
    recorder = Recorder(model)
    score(recorder)
    return recorder.texts


def _seconds_per_text(model: "SentenceTransformer", role: str, texts: Sequence[str]) -> float:
    """The mean over all lengths, in batches of texts of nearly one length, as scoring does it."""
    if not texts:
        return 0.0
    ordered = sorted(texts, key=len, reverse=True)
    gap = max(1, len(ordered) // SAMPLED_TEXTS)
    some = ordered[gap // 2 :: gap]  # the middle of each part: its longest would say too much
    encode = getattr(model, f"encode_{role}")
    encode(some[-1:], show_progress_bar=False)  # the first call also prepares
    began = time.monotonic()
    encode(some, batch_size=BATCH, show_progress_bar=False, normalize_embeddings=True)
    return (time.monotonic() - began) / len(some)
