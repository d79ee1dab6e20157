"""One group from its pair to its verdict (section 4.1 of the paper).

I+; then I- and Q- in parallel; then P1- for (I-, Q+) and P2- for (I+, Q-); then the judge's choice
in every scenario: so of InF-IR's shape. The recipe's shape says which texts and scenarios there
are. The group is dropped at the first text that a rule rejects, and kept only if the judge chooses
the passage written for the scenario in all of them.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from curation.judging.candidates import seeded
from curation.providers.provider import Request, RowFailed, ServerFailed
from curation.recipe.answers import Unparsable, parse
from curation.recipe.checks import Check
from curation.recipe.completion import how_it_ended
from curation.recipe.prompt import Inputs
from curation.recipe.recipe import Recipe
from curation.recipe.tasks import JUDGED, VALIDATION, Task, stages_of
from curation.rules.filters import Drop, check_text
from curation.rules.verdict import Vote, tally, verdict_of
from db.question import Question
from db.run.calls import StoredCall
from db.run.group_queue import ClaimedGroup, DoneGroup, DoneItem
from db.shape import GroupText, Role, vote_number
from db.values import AMBIGUOUS, NONE, distractor

Ask = Callable[[Request], Awaitable[StoredCall]]
IsToBlame = Callable[[ClaimedGroup, int], Awaitable[bool]]
T = TypeVar("T")
RETRY_STRIDE = 1000  # between the sample numbers of an answer and of its retry: more than any vote


@dataclass(frozen=True)
class Setting:
    """What is the same for all groups of a run."""

    recipe: Recipe
    provider: str
    seed: int
    judges: Mapping[Task, int]  # their ids, by what they are asked
    parameters: dict[str, Any] = field(default_factory=dict)
    scope: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Dropped(Exception):
    drop: Drop


class GroupWork:
    """Processes one group; `run` returns its outcome.

    It raises TryLater where a call has to be made again later; `run` then goes on from there.
    """

    def __init__(
        self,
        setting: Setting,
        group: ClaimedGroup,
        distractors: Sequence[tuple[int, str]],
        ask: Ask,
        is_to_blame: IsToBlame,
    ) -> None:
        self._setting, self.group, self._ask = setting, group, ask
        self._shape = setting.recipe.shape
        self._tasks, self._stages = setting.recipe.tasks, stages_of(self._shape)
        self._grown_from = {"document", self._shape.first.query.column}
        self._is_to_blame, self._failure_counted = is_to_blame, False
        self.answers: Counter[str] = Counter()  # by stage, so far
        self._distractors = list(distractors)
        self._stage = next(iter(self._stages))
        self._calls: dict[tuple[str, int], tuple[int, str]] = {}
        self._known: dict[tuple[str, int], StoredCall | _Dropped] = {}  # what calls ended with
        self._texts: dict[str, str] = {}  # of the scenarios that are whole

    async def run(self) -> DoneGroup:
        """Generate the texts, filter them, have them judged."""
        items: tuple[DoneItem, ...] = ()
        drop: Drop | None = None
        try:
            items = await self._grow()
            drop = verdict_of(items)
        except _Dropped as dropped:
            drop = dropped.drop
        return DoneGroup(
            group=self.group,
            stage=self._stage,
            verdict="kept" if drop is None else "dropped",
            drop_reason=None if drop is None else drop.reason,
            drop_detail=None if drop is None else drop.detail,
            shape=self._shape,
            texts=self._texts,
            items=items,
            calls=tuple(
                (task, sample, call_id, outcome)
                for (task, sample), (call_id, outcome) in sorted(self._calls.items())
            ),
        )

    async def _grow(self) -> tuple[DoneItem, ...]:
        """Write the texts stage by stage, those of a stage side by side; then validate.

        The texts of a scenario are the group's at the end of the stage that completes it.
        """
        texts = {
            sign: self.group.query if text.field == "query" else self.group.passage
            for sign, text in self._shape.texts.items()
            if text.from_source
        }
        for stage, missing in self._stages.items():
            self._stage = stage
            written = await _all([self._text(text, texts) for text in missing])
            texts |= {text.sign: new for text, new in zip(missing, written, strict=True)}
            for scenario in self._shape.complete(texts):
                self._texts |= {sign: texts[sign] for sign in scenario.signs}
        self._stage = VALIDATION
        judged = [
            self._checked(check, text, texts)
            for check in self._setting.recipe.checks
            for text in check.over
        ]
        if VALIDATION in self._setting.recipe.stages:
            judged = [*self._picks(texts), *judged]
        return tuple(await _all(judged))

    async def _text(self, text: GroupText, texts: Mapping[str, str]) -> str:
        """Request a text, store the answer, parse it, filter it; `texts`: those there, by sign."""
        task, language = text.task, self.group.language
        known = {"document": self.group.passage, "language": language}
        known |= {self._shape.texts[sign].column: one for sign, one in texts.items()}
        given = {name: known[name] for name in self._tasks[task].inputs}
        answer = await self._answer(task, dict(given))
        try:
            new = parse(
                task,
                answer.answer,
                gives=self._tasks[task].gives,
                prompt=self._setting.recipe.stages[task].prompt,
                given=given,
            )
        except Unparsable as error:
            raise self._drop(task, 0, Drop(error.reason, f"{task}: {error}")) from error
        rules = self._setting.recipe.filters
        drop = check_text(self._shape, text, new, rules, texts, language=language)
        if drop is not None:
            raise self._drop(task, 0, drop)
        return new

    async def _answer(
        self, task: Task, inputs: Inputs, sample: int = 0, question: Question | None = None
    ) -> StoredCall:
        stage = self._setting.recipe.stages[task]
        spec, named = self._tasks[task], stage.prompt.places | self._grown_from
        request = Request(
            task=task,
            provider=self._setting.provider,
            model=stage.model,
            parameters={**stage.parameters, **self._setting.parameters},
            prompt=stage.prompt,
            inputs={name: inputs[name] for name in spec.inputs if name in named},
            sample=sample + RETRY_STRIDE * self.group.retries.get(f"{task}/{sample}", 0),
            failed_attempts=self.group.failed_attempts,
            scope=self._setting.scope,
            gives=spec.gives,
            question=question,
        )
        known = self._known.get((task, sample))
        if isinstance(known, _Dropped):
            raise known
        try:
            answer = await self._ask(request) if known is None else known
        except RowFailed as failed:
            dropped = _Dropped(Drop(failed.reason, f"{task}: {failed}"))
            self._known[task, sample] = dropped
            raise dropped from failed
        except ServerFailed as failed:
            if self._failure_counted:  # once per group: its calls in parallel meet the same server
                raise
            self._failure_counted = True
            if not await self._is_to_blame(self.group, failed.attempts):
                raise
            raise _Dropped(Drop("server_error", f"{task}: {failed.last_error}")) from failed
        if known is None:
            self._known[task, sample] = answer
            self.answers[self._stage] += 1
        self._calls[task, sample] = (answer.id, "ok")
        ending = how_it_ended(answer.finish_reason)
        if ending == "refused":
            raise self._drop(task, sample, Drop("refused", f"{task}: the model refused"))
        if ending == "cut_off" and spec.gives not in JUDGED:
            why = f"{task}: the server ended the answer with “{answer.finish_reason}”"
            raise self._drop(task, sample, Drop("cut_off", why))
        return answer

    def _picks(self, written: Mapping[str, str]) -> list[Coroutine[Any, Any, DoneItem]]:
        """All scenarios, to be judged over the same candidates, shuffled for each call."""
        scenarios = self._shape.scenarios
        texts = {role: written[each.passage.sign] for role, each in scenarios.items()} | {
            distractor(number): text for number, (_, text) in enumerate(self._distractors, 1)
        }
        ids = {
            role: self.group.passage_id
            for role, scenario in scenarios.items()
            if scenario.passage.from_source
        } | {
            distractor(number): passage_id
            for number, (passage_id, _) in enumerate(self._distractors, 1)
        }
        return [self._scenario(role, texts, ids) for role in self._shape.roles]

    async def _scenario(self, role: Role, texts: dict[str, str], ids: dict[str, int]) -> DoneItem:
        instruction, query, _ = (self._texts[sign] for sign in self._shape.scenarios[role].signs)
        count = self._setting.recipe.validation.votes
        votes = await _all([self._vote(vote, role, texts) for vote in range(count)])
        choice, detail = tally(votes, self._setting.recipe.validation.decide)
        return DoneItem(
            scenario=role,
            instruction=instruction,
            query=query,
            candidates=tuple((label, ids.get(label)) for label in texts),
            choice=choice,
            order_shown=votes[0].order_shown,
            judge_id=self._setting.judges[VALIDATION],
            expected=role,
            detail=detail,
        )

    async def _checked(self, check: Check, text: GroupText, texts: Mapping[str, str]) -> DoneItem:
        """The answers to a check's question about one text."""
        shown: dict[str, str | list[str]] = {
            one.field: texts[one.sign] for one in (*check.given, text)
        }
        place = self._shape.all_texts.index(text)
        votes = await _all(
            [
                self._check_vote(check, shown, vote_number(place, vote))
                for vote in range(check.votes)
            ]
        )
        choice, detail = tally(votes, check.decide)
        labels = [
            role
            for role, scenario in self._shape.scenarios.items()
            for one in (*check.given, text)
            if scenario.passage == one
        ]
        return DoneItem(
            scenario=check.place(text),
            instruction=str(shown.get("instruction", "")),
            query=str(shown.get("query", "")),
            candidates=tuple((label, None) for label in labels),
            choice=choice,
            order_shown=tuple(labels),
            judge_id=self._setting.judges[check.task],
            expected=check.expected.get(text.sign),
            detail=detail,
            question=check.question,
        )

    async def _check_vote(self, check: Check, shown: Inputs, sample: int) -> Vote:
        answer = await self._answer(check.task, shown, sample, check.question)
        try:
            choice = parse(
                check.task, answer.answer, gives=check.spec.gives, question=check.question
            )
        except Unparsable as error:
            self._calls[check.task, sample] = (answer.id, error.reason)
            return Vote(AMBIGUOUS, (), {"unusable": error.reason, "message": str(error)})
        return Vote(choice, ())

    async def _vote(self, vote: int, role: Role, texts: dict[str, str]) -> Vote:
        """One choice over the candidates in an order of its own."""
        instruction, query, _ = (self._texts[sign] for sign in self._shape.scenarios[role].signs)
        order = list(texts)
        names = ("order", role) if vote == 0 else ("order", role, str(vote))
        seeded(self._setting.seed, self.group.query_id, *names).shuffle(order)
        sample = self._shape.sample(role, vote)
        answer = await self._answer(
            VALIDATION,
            {
                "instruction": instruction,
                "query": query,
                "passages": [texts[label] for label in order],
            },
            sample=sample,
        )
        try:
            chosen = parse(VALIDATION, answer.answer, gives="Choice", candidates=len(order))
        except Unparsable as error:
            self._calls[VALIDATION, sample] = (answer.id, error.reason)
            detail = {"unusable": error.reason, "message": str(error)}
            return Vote(NONE, tuple(order), detail)
        choice = chosen if chosen in (NONE, AMBIGUOUS) else order[int(chosen) - 1]
        return Vote(choice, tuple(order))

    def _drop(self, task: Task, sample: int, drop: Drop) -> _Dropped:
        call_id, _ = self._calls[task, sample]
        self._calls[task, sample] = (call_id, drop.reason)
        return _Dropped(drop)


async def _all(works: Sequence[Awaitable[T]]) -> list[T]:
    """All results; if one is dropped, the others are still awaited: their answers are paid for."""
    results = await asyncio.gather(*works, return_exceptions=True)
    found: list[T] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        found.append(result)
    return found
