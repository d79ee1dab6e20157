"""An example plugin: a judge, a provider and a source, found through entry points.

`broken` and `openai` in pyproject.toml show what must not happen: a name that is not there costs an
error where it is used, and a built-in name stays ours.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from inf_studio import (
    Answer,
    Choice,
    Converted,
    ItemView,
    JudgeKind,
    LeftOut,
    ProviderKind,
    ProviderState,
    Request,
    SourceInput,
    SourceKind,
    SourcePair,
    SourcePassage,
)


class LongestJudge:
    """Picks the longest candidate."""

    kind = "model"
    provider = "longest"
    model = ""
    offline = True
    simulated = False
    at_once = 64

    def __init__(self, rest: str) -> None:
        self.name = f"longest:{rest}" if rest else "longest"

    def choose(
        self, views: Sequence[ItemView], *, check: Callable[[], None] | None = None
    ) -> list[Choice]:
        lengths = [[len(text) for text in view.candidates] for view in views]
        return [Choice(each.index(max(each)), {"lengths": each}) for each in lengths]


class SunAndMoonProvider:
    """Writes about the moon or the sun, and finds its own passages again."""

    name = "sun-and-moon"
    offline = False
    groups_per_call = 1
    budget_seconds = 1.0

    async def answer(self, request: Request) -> Answer:
        said = request.inputs
        if request.task == "instruction_positive":
            return Answer("Instruction: Passages that leave the moon out are wanted.")
        if request.task == "instruction_negative":
            return Answer("Instruction: The passage should have the moon in it.")
        if request.task == "query_negative":
            return Answer("Query: how far away is the sun at noon")
        if request.task == "passage_instruction_negative":
            return Answer(f"Passage: Under the moon, {said['query_positive']} has another answer.")
        if request.task == "passage_query_negative":
            return Answer("Passage: At noon the sun is as far away as at any other hour.")
        wanted = "moon" if "should have" in str(said["instruction"]) else ""
        wanted = wanted or ("sun" if "sun" in str(said["query"]) else "")
        for number, text in enumerate(said["passages"], 1):
            if wanted and wanted in text:
                return Answer(f"Choice: {number}")
        return Answer("Choice: none")

    def parameters(self) -> dict[str, Any]:
        return {}

    async def check_models(self, models: Sequence[str]) -> None: ...

    def stop(self) -> None: ...

    def set_limits(self, calls: int, part: float) -> None: ...

    def state(self) -> ProviderState:
        return ProviderState()

    def max_usd(self, request: Request) -> float:
        return 0.0

    async def close(self) -> None: ...


def read_faq(file: Path) -> Iterator[Converted]:
    """Questions and answers, `question | answer`, one a line."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        question, bar, answer = (part.strip() for part in line.partition("|"))
        if not bar:
            yield LeftOut(file.name, number, "no bar")
            continue
        yield SourcePassage(f"faq-{number}", answer)
        yield SourcePair(f"q-{number}", question, f"faq-{number}")


LONGEST = JudgeKind("longest", "the longest candidate", lambda _, rest: LongestJudge(rest))
SUN_AND_MOON = ProviderKind(
    "writes about the sun and the moon",
    lambda _: SunAndMoonProvider(),
    recipe="msmarco",
    judge="longest:{model}",
)
FAQ = SourceKind("Questions and answers, one a line.", (SourceInput("file"),), read_faq)
