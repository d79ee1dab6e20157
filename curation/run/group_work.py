"""One group from its pair to its verdict (section 4.1 of the paper).

I+; then I- and Q- in parallel; then P1- for (I-, Q+) and P2- for (I+, Q-); then the judge's choice
in every scenario: so of InF-IR's shape. The recipe's shape says which texts and scenarios there
are, and its steps which call writes which texts. The group is dropped at the first text that a rule
rejects, and kept only if the judge chooses the passage written for the scenario in all of them. Of
a list a text is dropped alone, and a stand-in takes the place of one that fails.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from curation.judging.candidates import seeded
from curation.providers.provider import Request, RowFailed, ServerFailed
from curation.recipe.answers import Unparsable, parse, parse_several
from curation.recipe.checks import Check
from curation.recipe.completion import how_it_ended
from curation.recipe.prompt import Inputs
from curation.recipe.recipe import Recipe
from curation.recipe.slots import drawn
from curation.recipe.tasks import JUDGED, TEXT_LANGUAGE, VALIDATION, Task, levels_of
from curation.rules.filters import Drop, check_text, repeats
from curation.rules.language import language_name
from curation.rules.verdict import Settled, Vote, settle, states_of, tally
from db.question import Question
from db.run.calls import StoredCall
from db.run.group_queue import ClaimedGroup, DoneGroup, DoneItem, ListedText
from db.shape import MAX_COUNT, GroupText, ListText, Role, text_name, vote_number
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
        self._tasks, self._levels = setting.recipe.tasks, levels_of(self._shape)
        self._drawn = drawn(setting.recipe.vary, setting.seed, group.query_id)
        first = self._shape.first
        self._grown_from = {"document", first.query.column, first.passage.column}
        self._is_to_blame, self._failure_counted = is_to_blame, False
        self.answers: Counter[str] = Counter()  # by stage, so far
        self._distractors = list(distractors)
        self._stage = self._levels[0].stage if self._levels else VALIDATION
        self._calls: dict[tuple[str, int], tuple[int, str]] = {}
        self._known: dict[tuple[str, int], StoredCall | _Dropped] = {}  # what calls ended with
        self._texts: dict[str, str] = {}  # of the scenarios that are whole
        self._listed: dict[str, str] = {}  # of the lists, by name
        self._lost: dict[str, Drop] = {}  # of these, what failed before it was judged

    async def run(self) -> DoneGroup:
        """Generate the texts, filter them, have them judged."""
        items: tuple[DoneItem, ...] = ()
        settled = Settled(None)
        self._texts, self._listed, self._lost = {}, {}, {}
        try:
            items = await self._grow()
            settled = settle(self._shape, self._listed, self._lost, items)
        except _Dropped as dropped:
            settled = Settled(dropped.drop, self._lost)
        drop = settled.drop
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
            listed=tuple(self._listed_texts(settled)),
        )

    def _listed_texts(self, settled: Settled) -> Iterator[ListedText]:
        """The lists' texts, and why those are not the group's that are not."""
        for (slot, number), reason in states_of(self._shape, self._listed, settled).items():
            yield ListedText(slot, number, self._listed[text_name(slot, number)], reason)

    async def _grow(self) -> tuple[DoneItem, ...]:
        """Write the texts stage by stage, those of a stage side by side; then validate.

        The texts of a scenario are the group's at the end of the stage that completes it.
        """
        texts = {
            sign: self.group.query if text.field == "query" else self.group.passage
            for sign, text in self._shape.texts.items()
            if text.from_source
        }
        if given := self._shape.given_list:
            negatives = (text for _, text in self.group.negatives)
            self._listed |= dict(zip(given.names, negatives, strict=False))
        for stage, tasks in self._levels:
            self._stage = stage
            for written in await _all([self._written(task, texts) for task in tasks]):
                texts |= written
            for scenario in self._shape.complete(texts):
                self._texts |= {sign: texts[sign] for sign in scenario.signs}
        self._stage = VALIDATION
        judged = [
            self._checked(check, text, place, texts)
            for check in self._setting.recipe.checks
            for text in check.over
            for place in self._to_check(text)
        ]
        if VALIDATION in self._setting.recipe.stages:
            judged = [*self._picks(texts), *judged]
        return tuple(await _all(judged))

    async def _written(self, task: Task, texts: Mapping[str, str]) -> dict[str, str]:
        """Request the texts of a task, store the answer, parse it, filter them; by sign, without
        those of lists, which are kept aside. `texts`: those there, by sign."""
        spec = self._tasks[task]
        given = self._given(spec.inputs, texts)
        answer = await self._answer(task, dict(given))
        prompt = self._setting.recipe.stages[task].prompt
        found: dict[str, str | Unparsable]
        plain = {
            name: "\n".join([one] if isinstance(one, str) else one) for name, one in given.items()
        }
        try:
            if spec.gives == "Texts":
                found = parse_several(task, answer.answer, spec.texts, prompt=prompt, given=plain)
            else:
                new = parse(task, answer.answer, gives=spec.gives, prompt=prompt, given=plain)
                found = {spec.texts[0].sign: new}
        except Unparsable as error:
            raise self._drop(task, 0, Drop(error.reason, f"{task}: {error}")) from error
        written: dict[str, str] = {}
        for text in spec.texts:
            if isinstance(text, ListText):
                self._take(task, text, found, {**texts, **written})
                continue
            usable = self._usable(task, text, found[text.sign], {**texts, **written})
            if isinstance(usable, Drop):
                raise self._drop(task, 0, usable)
            written[text.sign] = usable
        return written

    @cached_property
    def _text_language(self) -> str:
        """The language of the pair's texts, as prompts name it."""
        return language_name(self.group.query, self.group.passage)

    def _given(self, names: Sequence[str], texts: Mapping[str, str]) -> dict[str, Any]:
        """The inputs of a task: what comes with the pair, what is drawn for it, texts by column."""
        known: dict[str, Any] = {"document": self.group.passage, "language": self.group.language}
        known[TEXT_LANGUAGE] = self._text_language
        known |= {self._shape.texts[sign].column: one for sign, one in texts.items()} | self._drawn
        for text in self._shape.lists:
            found = [
                self._listed[name]
                for name in text.names
                if name in self._listed and name not in self._lost
            ]
            known[text.column] = found if text.count > 1 else "".join(found)
        return {name: known[name] for name in names}

    def _take(
        self,
        task: Task,
        text: ListText,
        found: Mapping[str, str | Unparsable],
        texts: Mapping[str, str],
    ) -> None:
        """Keep the texts of a list; what cannot be used is lost alone."""
        earlier: list[str] = []
        for name in text.names:
            if name not in found:
                continue
            new = self._usable(task, text, found[name], texts)
            if isinstance(new, str) and any(repeats(new, other) for other in earlier):
                new = Drop("repeated", f"{name} repeats another text of its slot")
            if isinstance(new, Drop):
                dropped = self._drop(task, 0, new)  # the call's outcome; the group goes on
                if text.drops_group:
                    raise dropped
                self._lost[name] = new
                if isinstance(one := found[name], str):
                    self._listed[name] = one
                continue
            earlier.append(new)
            self._listed[name] = new

    def _usable(
        self, task: Task, text: GroupText, new: str | Unparsable, texts: Mapping[str, str]
    ) -> str | Drop:
        """A text that passes the filters, or why it does not."""
        if isinstance(new, Unparsable):
            return Drop(new.reason, f"{task}: {new}")
        rules = self._setting.recipe.filters
        drop = check_text(self._shape, text, new, rules, texts, language=self.group.language)
        return new if drop is None else drop

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
            texts=spec.texts if self._shape.steps else (),
            pair=(self.group.query, self.group.passage),
            takes_other=stage.answers_as != "own",
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
        if ending in ("cut_off", "exhausted") and spec.gives not in JUDGED:
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

    def _to_check(self, text: GroupText) -> list[tuple[str, int]]:
        """The names of a slot's texts, each with the place that its votes are numbered by."""
        if not isinstance(text, ListText):
            return [(text.sign, self._shape.all_texts.index(text))]
        first = MAX_COUNT * (1 + self._shape.lists.index(text))
        return [
            (name, first + number)
            for number, name in enumerate(text.names)
            if name in self._listed and name not in self._lost
        ]

    async def _checked(
        self, check: Check, text: GroupText, at: tuple[str, int], texts: Mapping[str, str]
    ) -> DoneItem:
        """The answers to a check's question about one text."""
        name, place = at
        is_listed = isinstance(text, ListText)
        shown: dict[str, str | list[str]] = {one.field: texts[one.sign] for one in check.given}
        shown[TEXT_LANGUAGE] = self._text_language
        shown[text.field] = self._listed[name] if is_listed else texts[name]
        votes = await _all(
            [
                self._check_vote(check, shown, vote_number(place, vote))
                for vote in range(check.votes)
            ]
        )
        choice, detail = tally(votes, check.decide)
        own = self.group.passage_id  # not what may stand in for it in the group
        labels: dict[str, int | None] = {
            role: own if scenario.passage.from_source else None
            for role, scenario in self._shape.scenarios.items()
            for one in (*check.given, text)
            if scenario.passage == one
        }
        if is_listed:
            labels[name] = None
        return DoneItem(
            scenario=check.place(name),
            instruction=str(shown.get("instruction", "")),
            query=str(shown.get("query", "")),
            candidates=tuple(labels.items()),
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
