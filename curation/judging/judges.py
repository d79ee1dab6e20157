"""Judges that are programs: they see an instruction, a query and texts, and pick a position.

An `ItemView` has no labels, no roles and no ids: a judge cannot know which candidate came from
where. The embedding judge is the offline provider's validator and `offline:embedding` in studies;
simulated judges stand in for people in a demo and are labelled so wherever they appear.
"""

import hashlib
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from analysis.embed.embedding import DEFAULT_MODEL, embed_texts
from analysis.text.words import content_words
from db.errors import BadInput
from db.store.store import Store

EMBEDDING = "offline:embedding"
SIMULATED_NOISE = 0.25
SIMULATED_NONE_BELOW = 0.25


@dataclass(frozen=True)
class ItemView:
    """What a judge sees of an item: texts, the candidates in the order shown."""

    instruction: str
    query: str
    candidates: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """A judge's answer: a position in the order shown, None for "none of them".

    `ambiguous`: the judge says that several serve equally well. `unusable`: there is no answer, and
    why; nothing is to be stored.
    """

    position: int | None
    detail: dict[str, Any] = field(default_factory=dict)
    ambiguous: bool = False
    unusable: str = ""


class ItemJudge(Protocol):
    """A program that judges; the fields are those of the table `judge`.

    `at_once`: how many items it is given at a time; what is answered is stored before the next.
    """

    name: str
    kind: str
    provider: str
    model: str
    offline: bool
    simulated: bool
    at_once: int

    def choose(
        self, views: Sequence[ItemView], *, check: Callable[[], None] | None = None
    ) -> list[Choice]:
        """An answer for every view, in order."""
        ...


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
    asked = [f"{view.instruction} {view.query}" for view in views]
    texts = [text for view in views for text in view.candidates]
    vectors = embed_texts(store, asked + texts, model=model, check=check)
    found, start = [], len(asked)
    for row, view in enumerate(views):
        end = start + len(view.candidates)
        found.append(vectors[start:end] @ vectors[row])
        start = end
    return found


class SimulatedJudge:
    """Stands in for a person in a demo: looks for the words asked for, with noise of its own.

    Each candidate scores the share of the query's and of the instruction's content words that it
    holds, rare ones counting more (rare among the candidates at hand), plus Gumbel noise drawn from
    the judge's number and the item's texts: the same judge always answers the same way, different
    judges differ. Nothing but the texts is used.
    """

    kind = "person"
    provider = ""
    model = ""
    offline = False
    simulated = True
    at_once = 64

    def __init__(self, number: int) -> None:
        self.name = f"simulated:{number}"

    def choose(
        self, views: Sequence[ItemView], *, check: Callable[[], None] | None = None
    ) -> list[Choice]:
        """The best candidate after noise; "none" where no candidate holds much of what is asked."""
        return [self._choose(view) for view in views]

    def _choose(self, view: ItemView) -> Choice:
        scores = lexical_scores(view)
        noisy = [
            score + SIMULATED_NOISE * self._gumbel(view, text)
            for score, text in zip(scores, view.candidates, strict=True)
        ]
        best = max(range(len(noisy)), key=noisy.__getitem__)
        return Choice(None if max(scores) < SIMULATED_NONE_BELOW else best, {"simulated": True})

    def _gumbel(self, view: ItemView, text: str) -> float:
        seen = "\n".join((self.name, view.instruction, view.query, text))
        chance = random.Random(hashlib.sha256(seen.encode()).digest())
        return -math.log(-math.log(chance.uniform(1e-12, 1 - 1e-12)))


def lexical_scores(view: ItemView) -> list[float]:
    """Of each candidate: the weighted share of the query's words plus that of the instruction's.

    A word weighs log(1 + candidates / candidates that hold it); words in none of them do not count.
    0 where nothing asked for occurs anywhere.
    """
    held = [content_words(text) for text in view.candidates]

    def shares(asked: set[str]) -> list[float]:
        weights = {
            word: math.log(1 + len(held) / having)
            for word in asked
            if (having := sum(word in words for words in held))
        }
        total = sum(weights.values())
        if not total:
            return [0.0] * len(held)
        return [sum(weights[word] for word in words & weights.keys()) / total for words in held]

    pairs = zip(
        shares(content_words(view.query)), shares(content_words(view.instruction)), strict=True
    )
    return [query + instruction for query, instruction in pairs]


def judge_named(name: str, store: Store) -> ItemJudge:
    """The judge of that name: `offline:embedding`, `openai:MODEL`, `transformers:MODEL[:WAY]` or
    `simulated:N`.

    Raises BadInput for any other name.
    """
    family, _, rest = name.partition(":")
    if name == EMBEDDING:
        return EmbeddingJudge(store)
    if family == "openai":
        from curation.judging.openai_judge import OpenAIJudge  # the SDK takes a second to import

        return OpenAIJudge(store, rest)
    if family == "transformers":
        from curation.judging.local_judge import LocalJudge

        return LocalJudge(rest)
    if family == "simulated" and rest.isdecimal() and int(rest) > 0:
        return SimulatedJudge(int(rest))
    raise BadInput(
        f"no judge {name!r}: use offline:embedding, openai:MODEL, transformers:MODEL (:listwise or "
        ":pointwise) or simulated:N (N ≥ 1)"
    )
