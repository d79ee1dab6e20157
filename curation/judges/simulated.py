"""Simulated judges stand in for people in a demo and are labelled so wherever they appear."""

import hashlib
import math
import random
from collections.abc import Callable, Sequence

from analysis.text.words import content_words
from curation.judges.judge import Choice, ItemView
from db.question import KINDS, NO, PICK, YES, score

NOISE = 0.25
NONE_BELOW = 0.25
YES_FROM = 0.3


class SimulatedJudge:
    """Stands in for a person in a demo: compares words, with noise of its own.

    Each candidate scores the share of the query's and of the instruction's content words that it
    holds, rare ones counting more (rare among the candidates), plus Gumbel noise seeded by the
    judge's number and the item's texts: the same judge always answers the same way, different
    judges differ. Nothing but the texts is used.
    """

    kind = "person"
    provider = ""
    model = ""
    offline = False
    simulated = True
    at_once = 64
    kinds = KINDS

    def __init__(self, number: int) -> None:
        self.name = f"simulated:{number}"

    def choose(
        self, views: Sequence[ItemView], *, check: Callable[[], None] | None = None
    ) -> list[Choice]:
        """The best candidate after noise; "none" if no candidate holds enough of the words.

        Of other questions, what the noisy score of the text asked about amounts to.
        """
        return [
            self._choose(view) if view.question.kind == "pick" else self._answer(view)
            for view in views
        ]

    def _answer(self, view: ItemView) -> Choice:
        """A grade, yes or no, or score of a passage by its words; of another text by its hash."""
        if isinstance(view.about, int):
            text = view.candidates[view.about]
            share = lexical_scores(view)[view.about] / 2
        else:
            text = {"query": view.query, "instruction": view.instruction}.get(view.about or "", "")
            text = text or "\n".join((view.instruction, view.query, *view.candidates))
            share = hashlib.sha256(text.encode()).digest()[0] / 256
        noisy = min(max(share + NOISE * self._gumbel(view, text) / 4, 0.0), 1.0)
        question = view.question
        if question.kind == "yes_no":
            answer = YES if noisy >= YES_FROM else NO
        elif question.kind == "grade":
            answers = question.answers
            answer = answers[min(int(noisy * len(answers)), len(answers) - 1)]
        else:
            answer = score(f"{noisy:.1f}") or "0"
        return Choice(None, {"simulated": True}, answer=answer)

    def _choose(self, view: ItemView) -> Choice:
        scores = lexical_scores(view)
        noisy = [
            score + NOISE * self._gumbel(view, text)
            for score, text in zip(scores, view.candidates, strict=True)
        ]
        best = max(range(len(noisy)), key=noisy.__getitem__)
        return Choice(None if max(scores) < NONE_BELOW else best, {"simulated": True})

    def _gumbel(self, view: ItemView, text: str) -> float:
        of_question = () if view.question is PICK else (view.question.name,)
        seen = "\n".join((self.name, view.instruction, view.query, text, *of_question))
        chance = random.Random(hashlib.sha256(seen.encode()).digest())
        return -math.log(-math.log(chance.uniform(1e-12, 1 - 1e-12)))


def lexical_scores(view: ItemView) -> list[float]:
    """Of each candidate: the weighted share of the query's words plus that of the instruction's.

    A word weighs log(1 + candidates / candidates that hold it); words in none of them do not count.
    0 if no word occurs anywhere.
    """
    held = [content_words(text) for text in view.candidates]

    def shares(wanted: set[str]) -> list[float]:
        weights = {
            word: math.log(1 + len(held) / having)
            for word in wanted
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
