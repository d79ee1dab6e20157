"""Checking an edited text as a generated one: by the run's rules, then by its validator.

The rules run before the edit is stored, and refuse it; the validator, and the judges of the run's
checks, afterwards, in a job, since they are models. Their answers are shown with the group; the
approval of a person decides.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from curation.judges.asking import IN_FLIGHT, Patience, ask_all
from curation.judges.judge import Choice, ItemJudge, ItemView
from curation.judges.registry import judge_named
from curation.judging.job import judge_of, judge_run
from curation.judging.request import JudgeStart
from curation.judging.studies import (
    Judged,
    Waiting,
    enrol,
    judge_study,
    judge_waiting,
    record_choice,
)
from curation.providers.provider import Provider, Request
from curation.providers.registry import PROVIDERS
from curation.recipe.answers import Unparsable, parse
from curation.recipe.checks import Check
from curation.recipe.prompt import Inputs
from curation.recipe.settings import filters_from_store
from curation.recipe.tasks import TEXT_LANGUAGE
from curation.rules.filters import check_text
from curation.rules.language import language_name
from curation.rules.verdict import Vote, tally
from curation.run.plan import Plan, make_plan
from curation.run.starting import scope_of
from db.errors import BadInput, Refused
from db.jobs.runner import JobHandle
from db.machine import new_owner
from db.question import is_right
from db.review.texts import group_texts, missing_texts
from db.rows import Row
from db.run.calls import StoredCall
from db.run.group_detail import get_group
from db.run.revalidations import FAILS, HOLDS, waiting_items
from db.run.runs import get_run
from db.shape import vote_number
from db.store.store import Store
from db.tables import Group, Pair, Recipe, Run
from db.values import AMBIGUOUS


class EditsJudged(Row):
    """What a run's validator found of `items` that were edited: as expected or not, or nothing."""

    run_id: int
    judge: str
    offline: bool
    items: int
    holds: int
    fails: int
    unusable: dict[str, int]


def judge(handle: JobHandle) -> Judged | EditsJudged:
    """The handler of `judge` jobs: judge a study, or all of a run; without a judge, let the run's
    own judge its edited items."""
    wanted = JudgeStart.read(handle.config)
    if wanted.judge is None:
        assert wanted.run_id is not None
        return revalidate(handle, wanted.run_id, wanted.group_id)
    named = judge_of(handle, wanted.judge, wanted.budget_usd)
    if wanted.study_id is not None:
        return judge_study(handle, wanted.study_id, named)
    assert wanted.run_id is not None
    return judge_run(handle, wanted.run_id, named)


def check_edit(session: Session, group_id: int, changes: Mapping[str, str]) -> None:
    """Check changed texts by the rules of the group's run (see `curation.rules.filters`).

    Raises BadInput with all their findings, NotFound.
    """
    group = get_group(session, group_id)
    run = session.get_one(Run, group.run_id)
    body = session.get_one(Recipe, run.recipe_id).body
    rules = filters_from_store(body)
    known = {
        group.shape.first.query.column: group.query,
        group.shape.first.passage.column: group.passage,
        **group_texts(session, [group_id])[group_id],
        **changes,
    }
    if missing_texts(group.shape, known):
        return  # `edit_group` refuses it
    texts = {text.sign: known[text.column] for text in group.shape.all_texts}
    meta = session.scalars(
        select(Pair.meta).join(Group, Group.pair_id == Pair.id).where(Group.id == group_id)
    ).one()
    language = str(meta.get("language") or "")
    found = [
        check_text(group.shape, text, changes[field], rules, texts, language=language)
        for field, (text, _) in group.shape.fields.items()
        if changes.get(field)
    ]
    drops = [drop for drop in found if drop is not None]
    if drops:
        counts = "; ".join(f"{drop.detail} ({drop.reason.replace('_', ' ')})" for drop in drops)
        raise BadInput(
            f"the run's rules refuse the edit: {counts}",
            "change the text, or reject the group",
            code="edit_breaks_rules",
        )


def revalidate(handle: JobHandle, run_id: int, group_id: int | None) -> EditsJudged:
    """Let a run's validator judge its edited groups, or the one of `group_id`.

    Continues where it stopped. Where the recipe has checks, those that were shown an edited text
    are asked again. Raises Refused for a run without a validator of ours.
    """
    counts: Counter[str] = Counter()
    unusable: Counter[str] = Counter()
    judges, items = handle.patiently(lambda: judges_of_edits(handle.store, run_id)), 0

    def record(session: Session, shown: Waiting, choice: Choice) -> str:
        event_id = f"{of_edits.name}@revalidation/{shown.item_id}"
        label, expected = record_choice(
            session, shown, choice, judge_id=judge_id, event_id=event_id, run_id=run_id
        )
        return FAILS if is_right(label, expected) is False else HOLDS

    for of_edits, checks in judges:

        def begin(
            one: ItemJudge = of_edits, checks: tuple[str, ...] = checks
        ) -> tuple[int, list[int]]:
            with handle.store.write() as session:
                judge_id = enrol(session, one).id
                session.commit()
            with handle.store.read() as session:
                return judge_id, waiting_items(session, run_id, judge_id, group_id, checks=checks)

        judge_id, waiting = handle.patiently(begin)
        handle.report(items, items + len(waiting), of_edits.name)
        stored, without = judge_waiting(
            handle, of_edits, judge_id, waiting, record, of=("run", run_id), before=items
        )
        counts += stored
        unusable += without
        items += len(waiting)
    return EditsJudged(
        run_id=run_id,
        judge=", ".join(dict.fromkeys(one.name for one, _ in judges)),
        offline=all(one.offline for one, _ in judges),
        items=items,
        holds=counts[HOLDS],
        fails=counts[FAILS],
        unusable=dict(unusable),
    )


def judges_of_edits(store: Store, run_id: int) -> list[tuple[ItemJudge, tuple[str, ...]]]:
    """Who judges a run's edited groups: the validator of its picks, where it has these, and the
    judges of its checks, each with the names of these. Raises NotFound, Refused."""
    with store.read() as session:
        run = get_run(session, run_id)
        body = session.get_one(Recipe, run.recipe_id).body
    found: list[tuple[ItemJudge, tuple[str, ...]]] = []
    if not body.get("checks") or "validation" in body.get("stages", {}):
        found.append((validator_of(store, run_id), ()))
    if body.get("checks") and run.provider in PROVIDERS.names():
        plan = make_plan(store, run_id, IN_FLIGHT)
        kind, of_model = PROVIDERS.find(run.provider), dict[str, list[Check]]()
        for check in plan.recipe.checks:
            name = kind.judge_name(plan.recipe.stages[check.task].model)
            of_model.setdefault(name, []).append(check)
        for name, checks in of_model.items():
            found.append((CheckJudge(store, plan, name, checks), tuple(one.name for one in checks)))
    return found or [(validator_of(store, run_id), ())]


def validator_of(store: Store, run_id: int) -> ItemJudge:
    """The judge that validates a run's edited groups. Raises NotFound, Refused."""
    with store.read() as session:
        run = get_run(session, run_id)
        body = session.get_one(Recipe, run.recipe_id).body
    if run.provider not in PROVIDERS.names():
        raise Refused(
            f"run {run_id} was made by {run.provider!r}, which has no validator here",
            "let a judge answer its items in a study (`studies judge`)",
            code="validator_missing",
        )
    model = str(body.get("stages", {}).get("validation", {}).get("model", ""))
    if body.get("checks") and not model:
        raise Refused(
            f"the recipe of run {run_id} has checks and no validation, which edits are judged by",
            "let a judge answer its items in a study (`studies judge`)",
            code="validator_missing",
        )
    return judge_named(PROVIDERS.find(run.provider).judge_name(model), store)


class CheckJudge:
    """The judge of those checks of a run that one model answers."""

    kind = "model"
    simulated = False
    at_once = 64

    def __init__(self, store: Store, plan: Plan, name: str, checks: Sequence[Check]) -> None:
        self.name, self.checks = name, {check.name: check for check in checks}
        self.provider, self.offline = plan.run.provider, plan.run.offline
        self.model = plan.recipe.stages[checks[0].task].model
        self._store, self._plan = store, plan
        self.patience = Patience()
        # this copy of the row alone: answers are waited for, and are none of the run's spending
        plan.run.batch, plan.run.budget_usd = False, None

    def choose(
        self, views: Sequence[ItemView], *, check: Callable[[], None] | None = None
    ) -> list[Choice]:
        """An answer for every view, of which each asks one of the checks. Raises ProviderError
        where the journal has not all and the provider cannot be used."""
        requests = [self._requests(view) for view in views]
        flat = [one for votes in requests for one in votes]
        known, failed = ask_all(self._store, self._provider, flat, check, self.patience)
        return [
            self._read(votes, known, failed, view)
            for votes, view in zip(requests, views, strict=True)
        ]

    def _provider(self) -> Provider:
        from curation.run.engine import make_provider  # here: jobs alone load the engine

        return make_provider(self._store, self._plan, new_owner(), self.patience.seconds)

    @cached_property
    def _parameters(self) -> dict[str, Any]:
        """What decides the answers besides the recipe: of a kind with servers nothing does."""
        if PROVIDERS.find(self.provider).servers is not None:
            return {}
        provider = self._provider()
        try:
            return provider.parameters()
        finally:
            asyncio.run(provider.close())

    def _requests(self, view: ItemView) -> list[Request]:
        check = self.checks[view.question.name]
        stage, spec = self._plan.recipe.stages[check.task], check.spec
        passages, about = view.candidates, view.about
        passage = passages[about if isinstance(about, int) else 0] if passages else ""
        inputs: Inputs = {
            "instruction": view.instruction,
            "query": view.query,
            "passage": passage,
            TEXT_LANGUAGE: language_name(view.query, passage),
        }
        return [
            Request(
                task=check.task,
                provider=self.provider,
                model=stage.model,
                parameters={**stage.parameters, **self._parameters},
                prompt=stage.prompt,
                inputs={name: inputs[name] for name in spec.inputs if name in stage.prompt.places},
                sample=vote_number(0, vote),
                scope=scope_of(self._plan.run),
                gives=spec.gives,
                question=check.question,
                pair=(view.query, passage),
            )
            for vote in range(check.votes)
        ]

    def _read(
        self,
        votes: Sequence[Request],
        known: dict[str, StoredCall],
        failed: dict[str, str],
        view: ItemView,
    ) -> Choice:
        check, found = self.checks[view.question.name], list[Vote]()
        for request in votes:
            if request.key not in known:
                return Choice(None, unusable=failed[request.key])
            answer, gives = known[request.key].answer, request.gives
            try:
                word = parse(check.task, answer, gives=gives, question=check.question)
                found.append(Vote(word, ()))
            except Unparsable as error:
                detail = {"unusable": error.reason, "message": str(error)}
                found.append(Vote(AMBIGUOUS, (), detail))
        choice, detail = tally(found, check.decide)
        calls = [known[request.key].id for request in votes]
        return Choice(None, {**detail, "call_ids": calls}, answer=choice)
