"""The embedding judge: the offline provider's validator, and `offline:embedding` in studies."""

from collections.abc import Callable, Sequence

import numpy as np

from analysis.embed.embedding import embed_texts
from analysis.embed.model_source import DEFAULT_MODEL
from curation.judges.judge import Choice, ItemView
from db.store.store import Store

EMBEDDING = "offline:embedding"


class EmbeddingJudge:
    """Picks the candidate closest to "instruction query" by the cosine of their embeddings."""

    name = EMBEDDING
    kind = "model"
    provider = "offline"
    offline = True
    simulated = False
    at_once = 64

    def __init__(self, store: Store, model: str | None = None) -> None:
        self._store = store
        self.model = model or DEFAULT_MODEL

    def choose(
        self, views: Sequence[ItemView], *, check: Callable[[], None] | None = None
    ) -> list[Choice]:
        """The most similar candidate of each; ties go to the one shown first."""
        scored = embedding_scores(self._store, views, model=self.model, check=check)
        return [
            Choice(int(np.argmax(scores)), {"scores": [round(float(one), 4) for one in scores]})
            for scores in scored
        ]


def embedding_scores(
    store: Store,
    views: Sequence[ItemView],
    *,
    model: str,
    check: Callable[[], None] | None = None,
) -> list[np.ndarray]:
    """Of each view: the cosine of "instruction query" with every candidate."""
    questions = [f"{view.instruction} {view.query}" for view in views]
    texts = [text for view in views for text in view.candidates]
    vectors = embed_texts(store, questions + texts, model=model, check=check)
    found, start = [], len(questions)
    for row, view in enumerate(views):
        end = start + len(view.candidates)
        found.append(vectors[start:end] @ vectors[row])
        start = end
    return found
