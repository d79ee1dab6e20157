"""A language model on this machine as a judge: `transformers:MODEL`, listwise or pointwise.

Listwise: it sees all candidates, each with a letter, and one letter more for "none of them"; the
letter with the highest log-probability as the next token is its answer. Pointwise (as FollowIR-7B,
Weller et al. 2024, with its prompt): the prompt asks for each candidate whether it is relevant; the
candidate with the highest P(true) against P(false) is its answer, "none" if all are below one half.
Nothing is generated or parsed, so no answer is unusable.

Note: the judge's name holds the model and the mode, not the content of a folder; the content's
identity is in each judgment's `detail`, as `weights`, with the `prompt`.
"""

import string
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from analysis.embed.embedding import model_identity
from analysis.embed.language_model import LanguageModel, load_language_model
from curation.judges.judge import Choice, ItemView
from curation.recipe.prompt import FOLDER, Prompt, fenced, messages
from db.errors import BadInput

WAYS = ("listwise", "pointwise")
LETTERS = string.ascii_uppercase
NO_PASSAGE = "None of the passages serves both query and instruction."
TRUE, FALSE = ("true", "True", "yes", "Yes"), ("false", "False", "no", "No")
SPARE_TOKENS = 16  # a cut text may take a few tokens more when it is tokenised again


class LocalJudge:
    """A judge on a model of this machine, which one process loads once."""

    kind = "model"
    provider = "transformers"
    offline = False
    simulated = False
    at_once = 1

    def __init__(self, name: str) -> None:
        """`name`: MODEL, MODEL:listwise or MODEL:pointwise. Raises BadInput without a model."""
        model, _, way = name.rpartition(":")
        if way not in WAYS:
            model, way = name, "listwise"
        if not model.strip():
            raise BadInput(
                "transformers: no model is named",
                "use transformers:FOLDER or a model's name",
                code="judge_model_missing",
            )
        self.model, self._way = model, way
        self.name = f"transformers:{model}:{way}"
        file = f"judge_{way}.md"
        self._prompt = Prompt(file, (FOLDER / file).read_text(encoding="utf-8"))

    def choose(
        self, views: Sequence[ItemView], *, check: Callable[[], None] | None = None
    ) -> list[Choice]:
        """An answer for every view. Raises BadInput if the model cannot be loaded."""
        found = []
        for view in views:
            if check is not None:
                check()
            found.append(self._listwise(view) if self._way == "listwise" else self._pointwise(view))
        return found

    @cached_property
    def _model(self) -> LanguageModel:
        return load_language_model(self.model)

    @cached_property
    def _identity(self) -> dict[str, Any]:
        identity = model_identity(self.model)
        _, _, weights = identity.rpartition("@")
        return {"weights": weights, "prompt": self._prompt.sha256[:16]}

    def _listwise(self, view: ItemView) -> Choice:
        if len(view.candidates) >= len(LETTERS):
            return Choice(None, unusable="too_many_candidates")
        prompt = self._fit(view, view.candidates)
        if prompt is None:
            return Choice(None, unusable="too_long")
        letters = LETTERS[: len(view.candidates) + 1]
        scores = _scores(self._model, prompt, [[letter] for letter in letters])
        best = int(np.argmax(scores))
        detail = {"log_probabilities": _rounded(scores), **self._identity}
        return Choice(None if best == len(view.candidates) else best, detail)

    def _pointwise(self, view: ItemView) -> Choice:
        relevant = []
        for text in view.candidates:
            prompt = self._fit(view, [text])
            if prompt is None:
                return Choice(None, unusable="too_long")
            true, false = _scores(self._model, prompt, [TRUE, FALSE])
            relevant.append(1.0 / (1.0 + float(np.exp(false - true))))
        best = int(np.argmax(relevant))
        detail = {"relevant": _rounded(relevant), **self._identity}
        return Choice(None if relevant[best] < 0.5 else best, detail)

    def _fit(self, view: ItemView, texts: Sequence[str]) -> list[int] | None:
        """The prompt's tokens, the longest passages cut to fit; None if nothing fits.

        Query and instruction are never cut.
        """
        prompt = self._model.prompt_tokens(self._question(view, texts))
        if len(prompt) <= self._model.max_tokens:
            return prompt
        frame = self._model.prompt_tokens(self._question(view, [""] * len(texts)))
        room = self._model.max_tokens - len(frame) - SPARE_TOKENS
        limit = length_limit([len(self._model.tokens(text)) for text in texts], room)
        cut = [self._model.cut(text, limit) for text in texts]
        prompt = self._model.prompt_tokens(self._question(view, cut))
        return prompt if limit > 0 and len(prompt) <= self._model.max_tokens else None

    def _question(self, view: ItemView, texts: Sequence[str]) -> str:
        inputs: dict[str, str | list[str]] = {"query": view.query, "instruction": view.instruction}
        if self._way == "pointwise":
            inputs["passage"] = texts[0]
        else:
            inputs["passages"] = fenced(LETTERS, [*texts, NO_PASSAGE])
        return messages(self._prompt, inputs)[0]["content"]


def length_limit(lengths: Sequence[int], room: int) -> int:
    """The largest m with sum(min(length, m)) <= room: short texts are not cut for long ones."""
    left, limit = room, 0
    for place, length in enumerate(sorted(lengths)):
        limit = left // (len(lengths) - place)
        if length > limit:
            return max(0, limit)
        left -= length
        limit = length
    return limit


def _scores(
    model: LanguageModel, prompt: list[int], answers: Sequence[Sequence[str]]
) -> list[float]:
    """log P of each set of words: over all tokens with which such an answer may begin."""
    found = model.next_log_probabilities(prompt)
    return [float(np.logaddexp.reduce(found[ids])) for ids in model.first_tokens(answers)]


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 4) for value in values]
