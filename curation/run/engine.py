"""The engine of a curation run: one asyncio loop, many groups in progress, N calls in flight, one
writer.

A group waits for the network and for commits, never for another group. The journal is searched
before a call is made; an answer is committed before it is parsed; the outcome of a group is one
transaction, guarded by the attempt under which it was claimed. A process killed at any moment
therefore loses at most the calls in flight, and a resumed run has the result of an uninterrupted
one.
"""

import asyncio
import gc
import heapq
import itertools
import logging
import math
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from curation.judging.candidates import choose_for
from curation.providers.provider import (
    MAX_ROW_ATTEMPTS,
    Answer,
    Keeps,
    Provider,
    Request,
    Stopped,
    TryLater,
)
from curation.providers.registry import PROVIDERS, WorkerSetting
from curation.run.answer_files import store_left_answers
from curation.run.closing import CallsMade, RunChecked, RunWorked, close_run
from curation.run.group_work import GroupWork, Setting
from curation.run.guard import Guard, guard_message
from curation.run.journal import Journal, WaitTimes
from curation.run.leakage import check_leakage
from curation.run.plan import Plan, make_plan
from curation.run.shared_parts import check_shared_parts
from curation.run.starting import RunWork, note_answering_models, scope_of
from curation.run.time_left import RecentRate, time_left, time_left_text
from db.clock import store_now
from db.errors import ProviderError
from db.jobs.jobs import record_metrics
from db.jobs.runner import JobHandle
from db.logs import about, note_event
from db.machine import new_owner
from db.patience import clock_time, is_away
from db.run.calls import StoredCall
from db.run.failing_groups import add_failed_attempts, others_finished_since
from db.run.group_queue import (
    LEASE_SECONDS,
    ClaimedGroup,
    claim_groups,
    open_states,
    release_groups,
    renew_leases,
)
from db.run.runs import ANSWERS, begin_run, funnel, outcomes, set_run_status
from db.run.workers import (
    ROUNDING_USD,
    Figures,
    Grant,
    Pace,
    Share,
    add_worker,
    beat_worker,
    calls_of_others,
    lease_share,
    leave,
    take_over,
    worker_totals,
)
from db.store.store import Store
from db.tables import Group, Run

log = logging.getLogger("inf.curate")
GRACE_SECONDS = 10.0
REPORT_SECONDS = 0.5
IDLE_SECONDS = 0.5
BEAT_SECONDS = 1.0
LANE_SECONDS, LANE_POINTS = 5.0, 200  # between two stored counts of answers, at least
BUDGET_SECONDS = 0.05
ESTIMATE_SECONDS = 5.0  # between two estimates of the time left, which count all groups
MIN_PARKED, PARKED_PER_PLACE = 32, 4  # groups that may wait for another attempt
THRESHOLDS = (5_000, 10, 20)  # of the collector, see tuned_gc
MAX_CLAIMED = 128  # at once: a claim occupies the writer, and answers wait until it is done

Claimed = tuple[ClaimedGroup, list[tuple[int, str]]]


def curate(handle: JobHandle) -> RunWorked | RunChecked:
    """The job handler: do one worker's share of the config's run, until it is done or stopped."""
    wanted = RunWork.read(handle.config)
    run_id = wanted.run_id
    started = time.monotonic()

    if wanted.only is not None:
        return _checked(handle, run_id)
    run = handle.patiently(lambda: _begun(handle.store, run_id, wanted.joins))
    worker: Worker | None = None
    if run.status == "running":
        try:
            plan = handle.patiently(lambda: make_plan(handle.store, run_id, wanted.concurrency))
            owner = new_owner()
            about(run=run_id, worker=owner)
            provider = handle.patiently(
                lambda: make_provider(handle.store, plan, owner, wanted.patience_seconds)
            )
            worker = Worker(handle, plan, owner, provider, wanted.patience_seconds)
            with tuned_gc():
                asyncio.run(worker.work())
        except BaseException as error:
            if is_away(error):  # nor can its status be stored
                raise
            with handle.store.write() as session:
                if worker_totals(session, run_id).alive == 0:
                    set_run_status(session, run_id, "failed", error=str(error) or repr(error))
                session.commit()
            raise
    handle.patiently(handle.check_for_shutdown)  # else the run would be paused, as by a person
    out_of_budget = worker is not None and worker.out_of_budget
    stands, ended_here = handle.patiently(
        lambda: close_run(handle.store, run_id, out_of_budget=out_of_budget)
    )
    counts = Counter[str]() if worker is None else worker.counts
    unknown = counts["unknown_server"]
    calls = CallsMade(
        made=counts["made"],
        reused=counts["reused"],
        **({"unknown_server": unknown} if unknown else {}),
    )
    handle.check()
    checked = {}
    if ended_here and stands.status == "done":
        handle.report(stands.pairs, stands.pairs, "checking for leakage and shared parts")
        checked = _checked(handle, run_id).as_json()
    return RunWorked(
        **stands.as_json() | checked,
        calls=calls,
        kept_ms={} if worker is None else worker.kept_ms,
        commit_ms={} if worker is None else worker.commit_ms,
        claim_ms={} if worker is None else worker.claimed.percentiles(),
        seconds=time.monotonic() - started,
    )


def _begun(store: Store, run_id: int, joins: bool) -> Run:
    with store.write() as session:
        run = begin_run(session, run_id, joins=joins)
        session.commit()
    return run


def _checked(handle: JobHandle, run_id: int) -> RunChecked:
    return RunChecked(
        run_id=run_id,
        leakage=handle.patiently(lambda: check_leakage(handle.store, run_id)),
        shared_parts=handle.patiently(lambda: check_shared_parts(handle.store, run_id)),
    )


def make_provider(store: Store, plan: Plan, owner: str, patience_seconds: float = 0.0) -> Provider:
    """The provider of a run. Raises ProviderError if it cannot be used."""
    setting = WorkerSetting(store, plan.run, plan.recipe, plan.concurrency, owner, patience_seconds)
    return PROVIDERS.find(plan.run.provider).make(setting)


@contextmanager
def tuned_gc() -> Iterator[None]:
    """Freeze what is loaded now, and collect the rest less often.

    The SDK and SQLAlchemy allocate some 150,000 objects that stay, and every call leaves a few
    hundred that do not. By default the cyclic collector traverses all of the former again and again
    to find the latter: a quarter of a worker's CPU time at 256 calls in flight (`gc.callbacks`).
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


class Worker:
    """One process's share of a run."""

    def __init__(
        self,
        handle: JobHandle,
        plan: Plan,
        owner: str,
        provider: Provider,
        patience_seconds: float = 0.0,
    ) -> None:
        self._patience_seconds = patience_seconds
        self._handle, self._plan, self._provider = handle, plan, provider
        self._run_id, self._owner = plan.run.id, owner
        self._setting = Setting(
            recipe=plan.recipe,
            provider=provider.name,
            seed=plan.run.seed,
            judges=plan.judges,
            parameters=provider.parameters(),
            scope=scope_of(plan.run),
        )
        self._store_left = partial(store_left_answers, handle.store, set[Path]())
        if isinstance(provider, Keeps):
            provider.keep = self._keep
        self._with_budget = plan.run.budget_usd is not None
        self._lent = 0
        self._names: dict[str, list[str]] = {}
        self._concurrency = 0 if plan.follows_run else plan.concurrency
        self._open: dict[str, asyncio.Future[StoredCall]] = {}
        self._ready: deque[Claimed] = deque()
        self._wake = asyncio.Event()
        self._groups: list[asyncio.Task[None]] = []
        self._fatal: BaseException | None = None
        self._exhausted = self._none_waits = False
        self._stopped_by_others = False
        self.out_of_budget = False
        self._guard: Guard | None = None
        self._active: set[GroupWork] = set()  # the parked ones, too
        self._answers = Counter[str]()  # by stage, of groups that are no longer active
        self._began, self._noted_at = time.monotonic(), -math.inf
        self._parked: list[tuple[float, int, GroupWork]] = []  # a heap: when due, order of arrival
        self._numbers = itertools.count()
        self._stopped = asyncio.Event()
        self._rate = RecentRate()
        self._time_left, self._estimated_at = "", time.monotonic()
        self.counts: Counter[str] = Counter()
        self.kept_ms: dict[str, int] = {}
        self.commit_ms: dict[str, int] = {}
        self.claimed = WaitTimes()
        self._spent_before_usd, self._answered_usd = plan.run.spent_usd, 0.0
        self._of_others = Counter[str]()  # calls of those that worked since this one began
        self._finished = self._kept = 0

    async def work(self) -> None:
        """Claim groups and process them until none is open, or until stopped."""
        self._journal = Journal(
            self._handle.store,
            self._run_id,
            self._owner,
            patience_seconds=self._patience_seconds,
            stopped=lambda: self._handle.stopping,
        )
        background: list[asyncio.Task[None]] = []
        try:
            await self._journal.between(self._store_left)
            await self._journal.between(self._begin)
            await self._renew()
            background = [asyncio.create_task(part) for part in (self._beat(), self._report())]
            if await self._has_models():
                background += [
                    asyncio.create_task(part) for part in (self._feed(), self._keep_leases())
                ]
                self._widen()
                await self._until_over()
        finally:
            for task in (*background, *self._groups):
                task.cancel()
            await asyncio.gather(*background, *self._groups, return_exceptions=True)
            self._bill_lost()
            try:
                await self._journal.write(self._end)
            finally:
                await self._journal.close()
            self.kept_ms = self._journal.kept.percentiles()
            self.commit_ms = self._journal.committed.percentiles()
            await self._provider.close()
        if self._fatal is not None:
            raise self._fatal

    async def _has_models(self) -> bool:
        """Whether the provider has the recipe's models; False once stopped.

        Raises ProviderError.
        """
        models = dict.fromkeys(stage.model for stage in self._plan.recipe.stages.values())
        check = asyncio.create_task(self._provider.check_models(list(models)))
        while not check.done():
            await asyncio.wait([check], timeout=0.2)
            if self._stopping:
                self._stop_calling()
        try:
            await check
        except Stopped:
            return False
        return not self._stopping

    @property
    def _stopping(self) -> bool:
        return (
            self._handle.stopping
            or self.out_of_budget
            or self._stopped_by_others
            or self._fatal is not None
        )

    @property
    def _width(self) -> int:
        """How many groups are in progress at once."""
        return (self._concurrency + self._lent) * self._provider.groups_per_call

    @property
    def _has_no_slot(self) -> bool:
        """Whether others hold all calls in flight, and there may be some for this worker yet."""
        return not (self._groups or self._exhausted or self._stopping)

    def _widen(self) -> None:
        while len(self._groups) < self._width:
            self._groups.append(asyncio.create_task(self._work_on_groups()))

    async def _until_over(self) -> None:
        """Wait for the group tasks; once stopping, at most GRACE_SECONDS for calls in flight."""
        deadline: float | None = None
        while any(not task.done() for task in self._groups) or self._has_no_slot:
            if self._groups:
                await asyncio.wait(self._groups, timeout=0.2)
            else:
                await asyncio.sleep(0.2)
            if self._stopping and deadline is None:
                deadline = time.monotonic() + GRACE_SECONDS
                self._stop_calling()
            if deadline is not None and time.monotonic() > deadline:
                return

    def _begin(self) -> None:
        with self._handle.store.write() as session:
            self._take_over(session)
            add_worker(session, self._run_id, self._owner)
            before = funnel(session, self._run_id)
            self._finished, self._kept = before.finished, before.kept
            if self._plan.run.guard:
                ended = outcomes(session, self._run_id)
                self._guard = None if ended.kept else Guard(ended)
            session.commit()

    def _end(self, session: Session) -> None:
        self._noted_at, self._names = -math.inf, {}  # the last ones, and those of a lost commit
        self._count(session)
        leave(session, self._run_id, self._owner)

    async def _feed(self) -> None:
        """Keep claimed groups ready; at the end wait for the groups of other workers."""
        try:
            while not self._stopping and not self._exhausted:
                if len(self._ready) > self._width // 2:
                    await asyncio.sleep(0.01)
                    continue
                began = time.monotonic()
                claimed = await self._journal.write(self._claim)
                self.claimed.add(time.monotonic() - began)
                self._ready.extend(claimed)
                if claimed:
                    self._none_waits = False
                elif not self._ready:
                    await self._journal.between(self._store_left)
                    waiting, leased = await self._journal.write(self._look_for_open)
                    self._none_waits = not waiting
                    if waiting or leased:
                        await asyncio.sleep(IDLE_SECONDS)
                    else:
                        self._exhausted = True
                self._wake.set()
        except Exception as error:
            self._fail(error)

    def _look_for_open(self, session: Session) -> tuple[bool, bool]:
        self._take_over(session)
        if not self._active and not self._ready:
            # of a claim whose commit was cut off from its answer: nobody works on these
            release_groups(session, self._run_id, [self._owner])
        return open_states(session, self._run_id)

    def _claim(self, session: Session) -> list[Claimed]:
        plan, rules = self._plan, self._plan.recipe.validation
        # without a share, since it has no groups, it still takes one that comes back
        limit = min(max(1, self._width), MAX_CLAIMED)
        negatives = plan.recipe.shape.given_negatives
        groups = claim_groups(session, self._run_id, self._owner, limit, negatives=negatives)
        self.counts["claimed"] += len(groups)
        chosen = choose_for(session, plan.pool, plan.hard, groups, seed=plan.run.seed, rules=rules)
        return list(zip(groups, chosen, strict=True))

    async def _work_on_groups(self) -> None:
        while not self._stopping:
            work = self._next_work()
            if work is None:
                if self._exhausted:
                    return
                self._wake.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), self._until_parked())
                continue
            group = work.group
            about(group=group.id)
            is_parked = False
            try:
                done = await work.run()
                if await self._journal.finish(done):
                    ending = {"verdict": done.verdict, "reason": done.drop_reason}
                    note_event(log, "group finished", **ending, attempt=group.attempt)
                    self._finished += 1
                    self._kept += done.verdict == "kept"
                    if self._guard is not None:
                        await self._journal.write(self._check_guard)
                    if self._stopping:
                        self._stop_calling()
                else:
                    log.info("group %s was given to another worker", group.id)
            except TryLater as later:
                is_parked = True
                await self._park(work, later.seconds)
            except Stopped:
                return
            except Exception as error:
                self._fail(error)
                return
            finally:
                if not is_parked:
                    self._active.discard(work)
                    self._answers.update(work.answers)

    def _next_work(self) -> GroupWork | None:
        """A parked group that is due, else one that is ready."""
        if self._parked and self._parked[0][0] <= time.monotonic():
            return heapq.heappop(self._parked)[2]
        if not self._ready:
            return None
        group, distractors = self._ready.popleft()
        work = GroupWork(self._setting, group, distractors, self._ask, self._is_to_blame)
        self._active.add(work)
        return work

    async def _park(self, work: GroupWork, seconds: float) -> None:
        """Put a group aside until a failed call of it is due again: its place is another's.

        Where too many are parked the place waits with it: the server may be going away.
        """
        due = time.monotonic() + seconds
        heapq.heappush(self._parked, (due, next(self._numbers), work))
        if len(self._parked) > max(MIN_PARKED, PARKED_PER_PLACE * self._width):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)

    def _until_parked(self) -> float | None:
        """Seconds until the next parked group is due; None without any."""
        return max(0.0, self._parked[0][0] - time.monotonic()) if self._parked else None

    async def _is_to_blame(self, group: ClaimedGroup, attempts: int) -> bool:
        """Count attempts that the server failed on; whether the row, not the server, fails.

        It is where it has failed so often, in all lives of the run together, while other groups of
        the run were finished since its first failure: then it must not end the run another time.
        """

        def count(session: Session) -> bool:
            total = add_failed_attempts(session, group.id, attempts)
            return total >= MAX_ROW_ATTEMPTS and others_finished_since(
                session, self._run_id, group.id
            )

        return bool(await self._journal.write(count))

    def _check_guard(self, session: Session) -> None:
        """Pause the run for all its workers if its first groups were all dropped for one reason."""
        now = outcomes(session, self._run_id)
        if self._guard is None or self._guard.passed(now):
            self._guard = None
            return
        reason = self._guard.tripped_by(now)
        if reason is None or not any(open_states(session, self._run_id)):
            return
        example = session.scalar(
            select(Group.drop_detail)
            .where(Group.run_id == self._run_id, Group.drop_reason == reason)
            .order_by(Group.finished_at.desc())
            .limit(1)
        )
        message = guard_message(self._run_id, reason, now.dropped[reason], str(example or "")[:200])
        set_run_status(session, self._run_id, "paused", error=message)
        log.warning("%s", message)
        self._guard = None
        self._stopped_by_others = True

    async def _ask(self, request: Request) -> StoredCall:
        """The stored answer of a request, or the provider's, stored; one call at a time per key."""
        known = self._open.get(request.key)
        if known is not None:
            return await asyncio.shield(known)
        future: asyncio.Future[StoredCall] = asyncio.get_running_loop().create_future()
        self._open[request.key] = future
        try:
            stored = await self._find_or_call(request)
        except BaseException as error:
            future.set_exception(error)
            future.exception()  # marks it as retrieved: often no other group waits for it
            raise
        else:
            future.set_result(stored)
            return stored
        finally:
            del self._open[request.key]

    async def _find_or_call(self, request: Request) -> StoredCall:
        """Look up the answer; if there is none, reserve its maximum cost, call, store."""
        if self._stopping:
            raise Stopped
        max_usd = self._provider.max_usd(request) if self._with_budget else 0.0
        found = await self._journal.find(request.keys, max_usd)
        wait = BUDGET_SECONDS
        while isinstance(found, Grant) and not found.granted:
            if found.others_usd <= ROUNDING_USD:
                self.out_of_budget = True
                self._stop_calling()
            if self._stopping:
                raise Stopped
            await asyncio.sleep(wait)
            wait = min(2 * wait, self._provider.budget_seconds)
            found = await self._journal.find(request.keys, max_usd)
        if isinstance(found, StoredCall):
            self.counts["reused"] += 1
            if found.key == request.older_key:
                self.counts["unknown_server"] += 1
            return found
        try:
            answer = await self._provider.answer(request)
        except BaseException:
            self._bill_lost()  # before what covers their cost is freed
            if max_usd:
                self._journal.free(max_usd)
            raise
        self.counts["made"] += 1
        self._answered_usd += answer.cost_usd
        self.counts.update(input_tokens=answer.input_tokens, output_tokens=answer.output_tokens)
        return await self._journal.add(request, answer, max_usd)

    def _keep(self, request: Request, answer: Answer) -> None:
        """Store an answer that is paid for and not used, with its cost."""
        self._answered_usd += answer.cost_usd
        self._journal.add(request, answer, 0.0)

    def _bill_lost(self) -> None:
        self._journal.bill(self._provider.state().unanswered_usd)

    def _stop_calling(self) -> None:
        self._provider.stop()
        self._stopped.set()
        self._wake.set()

    def _take_over(self, session: Session) -> None:
        """Release the groups of dead workers: dead processes here, stale heartbeats elsewhere."""
        if dead := take_over(session, self._run_id, self._owner):
            log.info("taking over from %s", ", ".join(dead))

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            # before a dead worker's leases expire, or its paid answers would be requested again
            await self._journal.between(self._store_left)
            # what a dead worker leased of the limits may be all that the others wait for
            await self._journal.write(self._take_over)
            await self._journal.write(
                lambda session: renew_leases(session, self._run_id, self._owner)
            )

    async def _beat(self) -> None:
        """Store counts; apply a changed share of the limits; stop if the run was stopped."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            await self._renew()

    async def _renew(self) -> None:
        self._bill_lost()
        status, share = await self._journal.write(self._count)
        if status not in ("running", "created"):
            self._stopped_by_others = True
            self._stop_calling()
        self._provider.set_limits(share.calls, share.part)
        self._concurrency, self._lent = share.calls, self._provider.state().lent
        self._widen()

    def _count(self, session: Session) -> tuple[str, Share]:
        state = self._provider.state()
        self._rate.add(self.counts["made"] + self.counts["reused"])
        in_progress = sum((work.answers for work in list(self._active)), Counter[str]())
        beat_worker(
            session,
            self._owner,
            in_flight=state.in_flight,
            width=state.width,
            made=self.counts["made"],
            reused=self.counts["reused"],
            failures=state.failures,
            throttled=state.throttled,
            trouble=state.trouble,
            pace=Pace(self._rate.per_minute(), dict(in_progress)),
            figures=Figures(
                input_tokens=self.counts["input_tokens"],
                output_tokens=self.counts["output_tokens"],
                claimed=self.counts["claimed"],
                errors=state.errors,
                commits=self._journal.committed.buckets(),
            ),
        )
        self._note_answers(session, self._answers + in_progress)
        names = getattr(self._provider, "answering_names", {})
        if names != self._names:  # now: a worker that begins later, or goes on, starts from them
            note_answering_models(session, self._run_id, names)
            self._names = names
        own_calls = None if self._plan.follows_run else self._concurrency
        share = lease_share(
            session,
            self._run_id,
            self._owner,
            in_flight=state.in_flight,  # of those that wait for a slot none holds one
            own_calls=own_calls,
            is_idle=self._none_waits and not (self._active or self._ready),
        )
        status = session.scalars(select(Run.status).where(Run.id == self._run_id)).one()
        return status, share

    def _note_answers(self, session: Session, answers: Mapping[str, int]) -> None:
        """Store how many answers there are by stage, from which a page draws the run's lanes.

        Less often the longer the worker is at it: ten hours are about 900 points a stage.
        """
        now = time.monotonic()
        if now - self._noted_at >= max(LANE_SECONDS, (now - self._began) / LANE_POINTS):
            self._noted_at = now
            since = store_now(session) - self._plan.run.created_at
            noted = {f"{ANSWERS}{stage}": float(count) for stage, count in answers.items()}
            record_metrics(session, self._handle.id, int(since.total_seconds()), noted)

    async def _report(self) -> None:
        with self._handle.store.read() as session:
            total = funnel(session, self._run_id).pairs
        while True:
            await self._journal.between(
                partial(self._handle.report, self._finished, total, self._message())
            )
            if time.monotonic() - self._estimated_at >= ESTIMATE_SECONDS:
                self._time_left = await self._journal.write(self._estimate)
                self._estimated_at = time.monotonic()
            await asyncio.sleep(REPORT_SECONDS)

    def _estimate(self, session: Session) -> str:
        """The time left, and what the run's workers did together by now."""
        pace, now = worker_totals(session, self._run_id).pace, funnel(session, self._run_id)
        self._finished, self._kept = now.finished, now.kept
        self._of_others = calls_of_others(session, self._run_id, self._owner)
        spent = session.scalars(select(Run.spent_usd).where(Run.id == self._run_id)).one()
        self._spent_before_usd = max(0.0, spent - self._answered_usd)
        recipe = self._plan.recipe
        left = time_left(now, pace, recipe.shape, recipe.judged_calls)
        return "" if left.seconds is None else time_left_text(left.seconds)

    def _message(self) -> str:
        """One line for the terminal and the job's card: calls, money, trouble, time left."""
        calls = self.counts + self._of_others
        parts = [
            f"{self._kept:,} kept",
            f"{calls['made']:,} calls made, {calls['reused']:,} reused",
        ]
        if spent := self._spent_before_usd + self._answered_usd:
            parts.append(f"${spent:.4f} spent")
        trouble = self._provider.state().trouble
        if waiting := trouble.waiting():
            parts.append(waiting)
        if trouble.retries_per_minute and trouble.last_error_at is not None:
            parts.append(
                f"{trouble.retries_per_minute} retries in the last minute (at "
                f"{clock_time(trouble.last_error_at)} {trouble.last_error})"
            )
        return ", ".join([*parts, self._time_left] if self._time_left else parts)

    def _fail(self, error: BaseException) -> None:
        if self._fatal is None:
            self._fatal = error
            if not isinstance(error, ProviderError):
                log.exception("the run stops", exc_info=error)
        self._stop_calling()
