"""The offline provider: rules write, an embedding model judges; no language model, no network.

It gets the inputs of a language model and answers in the same form, so that every later step is the
same. The judge sees only the instruction, the query and the passages in the order shown.
Validations that arrive together are embedded together, in a thread.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from curation.judges.embedding import EmbeddingJudge
from curation.judges.judge import Choice, ItemView
from curation.offline.aspects import aspect_of
from curation.offline.vocabulary import Vocabulary
from curation.offline.writing import CannotWrite, Writer
from curation.providers.provider import Answer, ProviderState, Request, RowFailed
from curation.recipe.tasks import tasks_of
from db.question import NO, YES, Question
from db.shape import GroupText, ListText, Shape
from db.store.store import Store

AT_ONCE = 1024
QUIET_SECONDS = 0.05
YES_FROM = 0.5  # of the cosine


Rule = Callable[[str, str], str]


def _rules_of(writer: Writer, shape: Shape) -> dict[str, Rule]:
    """What writes a text of the shape, by sign: the first scenario's instruction, and what differs
    from it in the next scenario of its query and in the first one with another query."""
    found: dict[str, Rule] = {shape.first.instruction.sign: writer.instruction_positive}
    if shape.other_instruction is not None:
        other = shape.all_scenarios[shape.other_instruction]
        found[other.instruction.sign] = writer.instruction_negative
        found[other.passage.sign] = writer.passage_instruction_negative
    if shape.other_query is not None:
        other = shape.all_scenarios[shape.other_query]
        found[other.query.sign] = writer.query_negative
        found[other.passage.sign] = writer.passage_query_negative
    return found


class OfflineProvider:
    """Answers every task by rule; `max_usd` is always 0."""

    name = "offline"
    offline = True
    groups_per_call = 1
    budget_seconds = 1.0

    def __init__(
        self, store: Store, vocabulary: Vocabulary, *, shape: Shape, seed: int, judge_model: str
    ) -> None:
        self._parameters = {"seed": seed, "vocabulary": vocabulary.sha256}
        self._writer = Writer(vocabulary, seed)
        self._tasks, self._rules = tasks_of(shape), _rules_of(self._writer, shape)
        self._judge = EmbeddingJudge(store, judge_model)
        self._waiting: list[tuple[ItemView, asyncio.Future[Choice]]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="judge")
        self._judging: asyncio.Task[None] | None = None

    async def answer(self, request: Request) -> Answer:
        """A text by rule, or the judge's choice."""
        if request.task == "validation":
            return await self._judged(request)
        if request.question is not None:
            return await self._checked(request, request.question)
        return self._texts(request)

    def _texts(self, request: Request) -> Answer:
        """The texts of a task: by what is claimed of them, as far as a rule can write it."""
        written: dict[str, str | list[str]] = {}
        for text in self._tasks[request.task].texts:
            try:
                found = self._of_slot(text, *request.pair)
            except CannotWrite as error:
                if not isinstance(text, ListText):
                    raise RowFailed(error.reason, str(error)) from error
                found = []
            if len(text.names) > 1:
                written[text.column] = found
            else:
                written[text.column] = "".join(found[:1])
        if request.gives != "Texts":
            return Answer(f"{request.gives}: {next(iter(written.values()))}")
        return Answer(json.dumps(written, ensure_ascii=False))

    def _of_slot(self, text: GroupText, query: str, passage: str) -> list[str]:
        writer = self._writer
        if not isinstance(text, ListText):
            if text.sign not in self._rules:
                raise CannotWrite(f"there is no offline rule for {text.label}")
            return [self._rules[text.sign](query, passage)]
        if text.stands_in_for:
            return [writer.passage_again(query, passage)]
        if text.grade == 1:
            return writer.passages_violating(query, passage, text.count)
        return [writer.passage_query_negative(query, passage)]

    def max_usd(self, request: Request) -> float:
        """0: rules cost nothing."""
        return 0.0

    def parameters(self) -> dict[str, Any]:
        """The seed and the vocabulary decide what is written."""
        return self._parameters

    async def check_models(self, models: Sequence[str]) -> None:
        """Nothing to check: rules need no model."""

    def state(self) -> ProviderState:
        """The number of validations that wait for the judge."""
        return ProviderState(in_flight=len(self._waiting))

    def stop(self) -> None:
        """Nothing to do: nothing is sent."""

    def set_limits(self, calls: int, part: float) -> None:
        """Nothing to do: rules need no limit."""

    async def close(self) -> None:
        """End the judge's thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _judged(self, request: Request) -> Answer:
        choice = await self._choice(request.inputs, request.inputs["passages"])
        word = "none" if choice.position is None else str(choice.position + 1)
        return Answer(f"Choice: {word}")

    async def _checked(self, request: Request, question: Question) -> Answer:
        """An answer by the cosine of a passage with its instruction and query, as the pick is.

        A score is the cosine, a grade its step of as many equal ones, and yes at least YES_FROM.
        Yes or no about an instruction in the words of a rule is answered by that rule, and the
        cosine is with the query alone: it rarely tells what violates one from what satisfies it.
        """
        passage = request.inputs.get("passage")
        if passage is None:
            raise RowFailed("no_rule_fits", f"there is no offline rule for {request.task}")
        inputs = dict(request.inputs)
        if question.kind == "yes_no" and (aspect := aspect_of(str(inputs.get("instruction", "")))):
            if not aspect.holds(str(passage)):
                return Answer(f"Answer: {NO}")
            del inputs["instruction"]
        choice = await self._choice(inputs, [str(passage)])
        cosine = min(max(float(choice.detail["scores"][0]), 0.0), 1.0)
        if question.kind == "grade":
            step = min(int(cosine * len(question.answers)), len(question.answers) - 1)
            return Answer(f"Grade: {question.answers[step]}")
        if question.kind == "yes_no":
            return Answer(f"Answer: {YES if cosine >= YES_FROM else NO}")
        return Answer(f"Score: {cosine:.4f}")

    async def _choice(self, inputs: Mapping[str, Any], passages: Sequence[str]) -> Choice:
        instruction, query = (str(inputs.get(one, "")) for one in ("instruction", "query"))
        future: asyncio.Future[Choice] = asyncio.get_running_loop().create_future()
        self._waiting.append((ItemView(instruction, query, tuple(passages)), future))
        if self._judging is None or self._judging.done():
            self._judging = asyncio.create_task(self._judge_all())
        return await future

    async def _judge_all(self) -> None:
        """Judge the waiting items, once no more arrive for a moment or a batch is full."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            seen = -1
            while seen != len(self._waiting) < AT_ONCE:
                seen = len(self._waiting)
                await asyncio.sleep(QUIET_SECONDS)
            batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
            try:
                choices = await loop.run_in_executor(
                    self._thread, self._judge.choose, [view for view, _ in batch]
                )
            except BaseException as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                raise
            for (_, future), choice in zip(batch, choices, strict=True):
                if not future.done():
                    future.set_result(choice)
