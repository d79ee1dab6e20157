"""How many answers of a run are stored already, before it starts.

The groups are processed as in the run, with a journal that only looks up: a group ends at the first
answer that is not stored, as what comes after it depends on that answer.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from sqlalchemy.orm import Session

from curation.judging.candidates import choose_for, hard_passages, load_pool
from curation.providers.provider import Request, Stopped
from curation.providers.registry import PROVIDERS
from curation.recipe.recipe import Recipe
from curation.run.group_work import GroupWork, Setting
from curation.run.starting import recipe_of, scope_of
from db.run.calls import StoredCall, find_calls
from db.run.group_queue import ClaimedGroup, unfinished_groups
from db.run.runs import get_run
from db.servers.groups import find_group
from db.tables import Run

MAX_GROUPS: Final = 5000
AT_ONCE: Final = 250


@dataclass(frozen=True)
class Reusable:
    """Stored answers of the first `groups` unfinished groups; `unknown_server` of those are older
    than the recording of servers."""

    groups: int
    answers: int
    unknown_server: int


def count_reusable(session: Session, run: Run, recipe: Recipe) -> Reusable:
    """The stored answers that a run will take. Nothing is written.

    Zero for providers whose answers depend on more than the recipe.
    """
    urls = PROVIDERS.find(run.provider).urls_of(run, recipe)
    if urls is None:
        return Reusable(0, 0, 0)
    scope = scope_of(run)
    if run.server_group == "":
        group = find_group(session, urls, recipe.server_group)
        scope = {"server_group": group} | scope
    return asyncio.run(
        _count(
            session,
            run,
            recipe,
            Setting(recipe, run.provider, run.seed, dict.fromkeys(recipe.tasks, 0), {}, scope),
        )
    )


async def _count(session: Session, run: Run, recipe: Recipe, setting: Setting) -> Reusable:
    lookups = _Lookups(session)
    negatives = recipe.shape.given_negatives
    groups = unfinished_groups(session, run.id, MAX_GROUPS, negatives=negatives)
    rules = recipe.validation
    pool = load_pool(session, run.dataset_id, distractors=sum(rules.counts))
    hard = hard_passages(session, pool, recipe)
    for start in range(0, len(groups), AT_ONCE):
        part = groups[start : start + AT_ONCE]
        chosen = choose_for(session, pool, hard, part, seed=run.seed, rules=rules)
        works = [
            asyncio.create_task(GroupWork(setting, group, beside, lookups.ask, _never).run())
            for group, beside in zip(part, chosen, strict=True)
        ]
        while not all(work.done() for work in works):
            await asyncio.sleep(0)
            lookups.answer()
        for work in works:
            if not isinstance(work.exception(), Stopped | None):
                work.result()
    return Reusable(len(groups), len(lookups.reused), len(lookups.unknown))


async def _never(group: ClaimedGroup, attempts: int) -> bool:
    """No row is to blame: no server is asked."""
    return False


class _Lookups:
    """Looks up what the groups request, all at once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: list[tuple[Request, asyncio.Future[StoredCall]]] = []
        self.reused: set[str] = set()
        self.unknown: set[str] = set()

    async def ask(self, request: Request) -> StoredCall:
        future: asyncio.Future[StoredCall] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        return await future

    def answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        stored = find_calls(self._session, [key for one, _ in waiting for key in one.keys])
        for request, future in waiting:
            found = next((stored[key] for key in request.keys if key in stored), None)
            if found is None:
                future.set_exception(Stopped())
                continue
            self.reused.add(request.key)
            if found.key != request.key:
                self.unknown.add(request.key)
            future.set_result(found)


def describe_reuse(found: Reusable, remedy: str = "Use `fresh=`") -> str:
    """Two sentences for the terminal or the page, `remedy` as it is called there; empty where
    nothing is stored."""
    if not found.answers:
        return ""
    text = f"{found.answers:,} stored answers are reused"
    if found.groups == MAX_GROUPS:
        text = f"At least {text}"
    if found.unknown_server:
        text += f"; the server of {found.unknown_server:,} of them is unknown (older answers)"
    return f"{text}. {remedy} for new ones."


def reuse_of_run(session: Session, run_id: int, remedy: str = "Use `fresh=`") -> str:
    """`describe_reuse` of a run."""
    run = get_run(session, run_id)
    return describe_reuse(count_reusable(session, run, recipe_of(session, run)), remedy)
