"""A language model on this machine as a judge: `transformers:MODEL`, listwise or pointwise.

Listwise: it is shown all candidates, each with a letter, and one letter more for "none of them";
the letter with the highest log-probability as the next word is its answer. Pointwise (FollowIR-7B's
way, Weller et al. 2024, with its prompt): it is asked about each candidate whether it is relevant;
the candidate with the highest P(true) against P(false) is its answer, "none" where all are below
one half. Nothing is generated or parsed, so there is no answer that cannot be used.

What would surprise: the judge's name holds the model and the way, not the content of a folder; what
the folder held when it answered is in each judgment's `detail`, as `weights`, with the `prompt`.
"""

import string
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from analysis.embed.embedding import model_identity
from analysis.embed.language_model import LanguageModel, load_language_model
from curation.judging.judge import Choice, ItemView
from curation.recipe.prompt import FOLDER, Prompt, fenced, messages
from db.errors import BadInput

WAYS = ("listwise", "pointwise")
LETTERS = string.ascii_uppercase
NO_PASSAGE = "None of the passages serves both query and instruction."
TRUE, FALSE = ("true", "True", "yes", "Yes"), ("false", "False", "no", "No")
SPARE_TOKENS = 16  # a text that is cut may have a few tokens more when it is read again


class LocalJudge:
    """Asks a model of this machine; one process loads it once."""

    kind = "model"
    provider = "transformers"
    offline = False
    simulated = False
    at_once = 1

    def __init__(self, words: str) -> None:
        """`words`: MODEL, MODEL:listwise or MODEL:pointwise. Raises BadInput for none."""
        model, _, way = words.rpartition(":")
        if way not in WAYS:
            model, way = words, "listwise"
        if not model.strip():
            raise BadInput("transformers: which model? Use transformers:FOLDER or a model's name")
        self.model, self._way = model, way
        self.name = f"transformers:{model}:{way}"
        file = f"judge_{way}.md"
        self._prompt = Prompt(file, (FOLDER / file).read_text(encoding="utf-8"))

    def choose(
        self, views: Sequence[ItemView], *, check: Callable[[], None] | None = None
    ) -> list[Choice]:
        """An answer for every view. Raises BadInput where the model cannot be loaded."""
        found = []
        for view in views:
            if check is not None:
                check()
            found.append(self._listwise(view) if self._way == "listwise" else self._pointwise(view))
        return found

    @cached_property
    def _asked(self) -> LanguageModel:
        return load_language_model(self.model)

    @cached_property
    def _known(self) -> dict[str, Any]:
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
        scores = _scores(self._asked, prompt, [[letter] for letter in letters])
        best = int(np.argmax(scores))
        detail = {"log_probabilities": _rounded(scores), **self._known}
        return Choice(None if best == len(view.candidates) else best, detail)

    def _pointwise(self, view: ItemView) -> Choice:
        relevant = []
        for text in view.candidates:
            prompt = self._fit(view, [text])
            if prompt is None:
                return Choice(None, unusable="too_long")
            true, false = _scores(self._asked, prompt, [TRUE, FALSE])
            relevant.append(1.0 / (1.0 + float(np.exp(false - true))))
        best = int(np.argmax(relevant))
        detail = {"relevant": _rounded(relevant), **self._known}
        return Choice(None if relevant[best] < 0.5 else best, detail)

    def _fit(self, view: ItemView, texts: Sequence[str]) -> list[int] | None:
        """The prompt's tokens, the longest passages cut where they do not fit; None: nothing fits.

        Query and instruction are never cut.
        """
        prompt = self._asked.prompt_tokens(self._question(view, texts))
        if len(prompt) <= self._asked.max_tokens:
            return prompt
        frame = self._asked.prompt_tokens(self._question(view, [""] * len(texts)))
        room = self._asked.max_tokens - len(frame) - SPARE_TOKENS
        most = longest_each([len(self._asked.tokens(text)) for text in texts], room)
        cut = [self._asked.cut(text, most) for text in texts]
        prompt = self._asked.prompt_tokens(self._question(view, cut))
        return prompt if most > 0 and len(prompt) <= self._asked.max_tokens else None

    def _question(self, view: ItemView, texts: Sequence[str]) -> str:
        inputs: dict[str, str | list[str]] = {"query": view.query, "instruction": view.instruction}
        if self._way == "pointwise":
            inputs["passage"] = texts[0]
        else:
            inputs["passages"] = fenced(LETTERS, [*texts, NO_PASSAGE])
        return messages(self._prompt, inputs)[0]["content"]


def longest_each(lengths: Sequence[int], room: int) -> int:
    """The largest m with sum(min(length, m)) <= room: short texts are not cut for long ones."""
    left, most = room, 0
    for place, length in enumerate(sorted(lengths)):
        most = left // (len(lengths) - place)
        if length > most:
            return max(0, most)
        left -= length
        most = length
    return most


def _scores(model: LanguageModel, prompt: list[int], words: Sequence[Sequence[str]]) -> list[float]:
    """log P of each set of words: of all tokens with which an answer may begin with one of them."""
    found = model.next_log_probabilities(prompt)
    return [float(np.logaddexp.reduce(found[ids])) for ids in model.first_tokens(words)]


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 4) for value in values]
