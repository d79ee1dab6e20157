"""Answers from any OpenAI-compatible server, through the `openai` SDK with its aiohttp transport.

`client.py` chooses the server, `request_body.py` builds what is sent, `gate.py` decides when, and
`failures.py` what a failure means. Here a request is repeated until it is answered, its row
is dropped, or the failure is the server's and stops the run.
"""

import asyncio
import logging
import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any, Final, TypeVar

import httpx2
import openai

from curation.providers.client import make_endpoints
from curation.providers.endpoints import Endpoint, Endpoints
from curation.providers.failures import (
    LIMIT_NAMES,
    is_lost,
    max_retry_after,
    may_be_about_form,
    may_be_about_one_request,
    only_pages,
    raise_if_final,
    refuses_all,
    refuses_limit_name,
    retry_after_seconds,
)
from curation.providers.gate import HANG_SECONDS, MUCH_LONGER, Gate, Latencies
from curation.providers.models import check_models, refused_model
from curation.providers.probe import FAILURES, PROBE_TOKENS, Probe, probe_body
from curation.providers.provider import (
    MAX_ROW_ATTEMPTS,
    OF_ANOTHER,
    Answer,
    ProviderState,
    Request,
    RowFailed,
    ServerFailed,
    TryLater,
)
from curation.providers.request_body import (
    build_body,
    estimated_input_tokens,
    max_input_tokens,
    max_output_tokens,
)
from curation.providers.trouble import TroubleLog, describe
from curation.recipe.answers import storable
from curation.recipe.completion import (
    NotACompletion,
    Page,
    Unusable,
    as_stored,
    how_it_ended,
    read_body,
    read_completion,
    usage_of,
)
from curation.recipe.prices import Price, load_prices, require_prices
from curation.recipe.recipe import Recipe
from curation.servers.connection import Server
from db.errors import ProviderError
from db.tables import utc_now

logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs a line for every call otherwise
T = TypeVar("T")
MAX_ATTEMPTS: Final = 6
BACKOFF_SECONDS: Final = 0.5
MAX_BACKOFF_SECONDS: Final = 20.0
TIMEOUT_SECONDS: Final = 600.0  # a local server may think for minutes before it answers
SILENT_FOR_SECONDS: Final = 600.0  # no answer to any request: then the run stops
MIN_ATTEMPTS: Final = 3  # before that: one slow request may last as long and prove nothing
PROBE_EVERY_SECONDS: Final = (1.0, 30.0)  # of a server that is away: at first, and at most
MAX_PROBE_SECONDS: Final = 60.0
MAX_IN_A_ROW: Final = 12  # failures of any requests without an answer between them
MAX_FAILING_SHARE: Final = 0.05  # of requests that fail while the server works
ROW_SECONDS: Final = 45.0  # after that fewer failures of a row are enough
MIN_ROW_FAILURES: Final = 3
MAX_CUTS: Final = 2  # of a row's calls that hang, or fail alone after long, as others are answered
MIN_REFUSALS: Final = 2  # by a rate, while others are answered: then it may be the row's own
MIN_OTHERS: Final = 8  # answers meanwhile
SLOW_FAILURE: Final = 12.0  # seconds: a row with four of these would take longer than a minute
STUCK: Final = 3  # times HANG_SECONDS: then a call may hold its place in vain
COMPARED: Final = 0.5  # times HANG_SECONDS: then what may hold all places in vain is found out
WATCH_SECONDS: Final = 1.0  # between two looks at the calls that are open
FIRST_SECONDS: Final = 5.0  # for which the others wait for a model's first answer


@dataclass
class _Tries:
    """The attempts of a request that has no answer yet, between which it may be parked.

    `of_row`: failures after which another such request was answered; `of_server`: without that.
    `cuts`: calls that hung while such a request was answered; `slow`: that failed after long.
    `answered`, `recovered`: how many calls of any request were answered, and had failed before they
    were, by its first attempt. `failures`: of its own.
    `refusals`: by a rate (429), after which another such request was answered; `refused_at`: the
    newest one. `form`: the simplest that it has needed. `compared`: see `_start_hangs`. `renamed`:
    its limit of output tokens, once, else two names would alternate. `passed`: the endpoints that
    passed it on, in a row. `lost`: answers that did not arrive, `lost_usd` what they may have cost.
    `counted_at`: the newest failure in `of_row`. `is_suspect`: the server works, and nothing was
    answered since this one fails. `falls`: see `_falls_again`.
    """

    began: float
    answered: int = 0
    recovered: int = 0
    failures: int = 0
    attempts: int = 0
    of_row: int = 0
    of_server: int = 0
    passed: tuple[str, ...] = ()
    failed_at: float = math.inf
    refusals: int = 0
    refused_at: float = math.inf
    cuts: int = 0
    slow: int = 0
    form: int = 0
    compared: asyncio.Task[bool] | None = None
    renamed: bool = False
    lost: int = 0
    lost_usd: float = 0.0
    counted_at: float = -math.inf
    is_suspect: bool = False
    falls: int = 0

    def failed(self, last_answer: float) -> None:
        """Count a failure; `last_answer`: when the server gave its last one to such a request."""
        if last_answer > self.failed_at:
            self.of_row, self.of_server = self.of_row + 1, 0
            self.is_suspect = False
            self.counted_at = time.monotonic()
        self.of_server += 1
        self.failures += 1
        self.failed_at = time.monotonic()

    def refused(self, last_answer: float) -> None:
        """Count a refusal by a rate. A minute that a row is given begins with the first one."""
        self.refusals += last_answer > self.refused_at
        if self.refused_at == math.inf:
            self.began = time.monotonic()
        self.failures += 1
        self.refused_at = time.monotonic()

    def start_hangs(self) -> bool:
        """Whether the server answers others and not even the start of this one."""
        return self.compared is not None and self.compared.done() and self.compared.result()

    def is_of_row(self) -> bool:
        """Whether the row is to blame, as the server answers others; one that was refused by a rate
        not before ROW_SECONDS: most rates are counted by the minute."""
        if self.cuts >= MAX_CUTS or self.falls >= MIN_ROW_FAILURES:
            return True
        is_slow = time.monotonic() - self.began > ROW_SECONDS
        early = MAX_ATTEMPTS - 1 if self.refused_at == math.inf else math.inf
        return self.of_row >= (MIN_ROW_FAILURES if is_slow else early)


@dataclass(eq=False)
class _Call:
    """A call without an answer yet. `limit` ends it."""

    request: Request
    limit: asyncio.Timeout
    began: float
    tries: _Tries
    hangs: bool = False

    @property
    def seconds(self) -> float:
        """How long it is open."""
        return time.monotonic() - self.began


def _charset(response: httpx2.Response) -> str | None:
    return response.charset_encoding


def hung(call: _Call) -> TimeoutError:
    """The failure of a call that was cut."""
    return TimeoutError(f"no answer in {call.seconds:.0f} s, while others were answered")


def gave_up(attempts: int, failed: Exception) -> RowFailed:
    """The row is set aside, after `attempts` attempts."""
    return RowFailed("server_error", f"gave up after {attempts} attempts: {describe(failed)}")


class OpenAIProvider:
    """A language-model server behind a gate that adapts to it."""

    name = "openai"
    offline = False
    budget_seconds = 1.0
    groups_per_call = 1  # a group has up to three calls at once: that fills the wire

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        concurrency: int,
        prices: dict[str, Price],
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        patience_seconds: float = 0.0,
        was_reached: bool = False,
        parks: bool = False,
    ) -> None:
        self.endpoints, self._prices = Endpoints(endpoints), prices
        self._timeout_seconds, self.patience_seconds = timeout_seconds, patience_seconds
        self._was_reached = was_reached  # by the run, before: then it is waited for at the start
        self._return: asyncio.Task[None] | None = None  # ends when the server is back
        self._context = copy_context()  # of no group: what it logs is of them all
        self.gate = Gate(
            concurrency, per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute
        )
        self._last_answer = time.monotonic()
        self._answered: dict[tuple[str, str], Request] = {}  # the last one, by model and task
        self._answered_at: dict[tuple[str, str], float] = {}
        self._answers = self._recovered = 0  # and failures of what was answered in the end
        self._parks = parks
        self._calls: set[_Call] = set()
        self._watch: asyncio.Task[None] | None = None
        self._comparing = set[asyncio.Task[bool]]()
        self._latencies: defaultdict[tuple[str, str], Latencies] = defaultdict(Latencies)
        self._tries: dict[str, _Tries] = {}  # of requests without an answer yet, by key
        self._in_a_row = 0  # failures since the last answer
        self._lost_usd = 0.0  # what answers cost that were lost on their way
        self._beyond_usd: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._prompt_tokens = defaultdict[tuple[str, str], Counter[str]](Counter)  # by model, task
        self._jitter = random.Random()
        self.failures = 0
        self._trouble = TroubleLog()
        self._probe = Probe()
        self._probed: dict[str, str] = {}  # by model: the name under which it answered a probe
        self.max_retry_after: dict[str, float] = {}  # by task
        self.limit_names: dict[str, str] = {}  # by task: the server's name of max_output_tokens
        self.timeouts: dict[str, float] = {}  # by task
        self.headers: dict[str, dict[str, str]] = {}  # by task
        self.answers_as: dict[str, str] = {}  # by task: see `refused_model`
        self.keep: Callable[[Request, Answer], object] = lambda *_: None

    @classmethod
    def of_server(
        cls,
        server: Server,
        recipe: Recipe,
        *,
        concurrency: int,
        with_budget: bool,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        batch: bool = False,
        patience_seconds: float = 0.0,
        was_reached: bool = False,
        parks: bool = False,
    ) -> "OpenAIProvider":
        """The endpoints of a server, used as the recipe says.

        Raises ProviderError without a key, BadInput where a budget is set and a price or a limit
        of output tokens is missing.
        """
        max_retry_after()  # a wrong value stops the run now, not at the first wait
        prices = load_prices() | dict(server.prices)
        if with_budget:
            require_prices(recipe, prices)
        if batch:
            prices = {model: price.batched() for model, price in prices.items()}
        provider = cls(
            make_endpoints(server),
            concurrency=concurrency,
            prices=prices,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            patience_seconds=patience_seconds,
            was_reached=was_reached,
            parks=parks,
        )
        for task, stage in recipe.stages.items():
            if "timeout_seconds" in stage.transport:
                provider.timeouts[task] = float(stage.transport["timeout_seconds"])
            if "limit_name" in stage.transport:
                provider.limit_names[task] = str(stage.transport["limit_name"])
            if "max_retry_after_seconds" in stage.transport:
                limit = float(stage.transport["max_retry_after_seconds"])
                provider.max_retry_after[task] = limit
            provider.headers[task] = dict(stage.transport.get("headers", {}))
            provider.answers_as[task] = stage.answers_as
        return provider

    @property
    def answering_names(self) -> dict[str, list[str]]:
        """The names under which each model answered, in order, those of the run's start included.

        A thread may read it.
        """
        found: dict[str, dict[str, None]] = {}
        for model, names in (
            pair for each in self.endpoints.all for pair in list(each.reported.items())
        ):
            found.setdefault(model, {}).update(dict.fromkeys(list(names)))
        return {model: list(names) for model, names in found.items() if names}

    def expect_names(self, names: Mapping[str, Sequence[str]]) -> None:
        """Take over the names under which models answered to a run so far.

        Of several endpoints each has names of its own, and which are whose is not known.
        """
        for endpoint in self.endpoints.all if len(self.endpoints.all) == 1 else ():
            endpoint.reported.update({model: dict.fromkeys(of) for model, of in names.items()})

    def parameters(self) -> dict[str, Any]:
        """Empty: the recipe alone decides what is sent."""
        return {}

    async def check_models(self, models: Sequence[str]) -> None:
        """Compare with the servers' lists of models; a server without such a list has them all.

        An endpoint that does not respond is left out where another one does. Where none does, and
        the run was answered before, they are waited for. Raises Stopped if it is stopped meanwhile.
        """

        def is_away(error: Exception) -> bool:
            silent = isinstance(error, ProviderError) and error.code == "server_unreachable"
            return silent and self._was_reached

        await self.patiently(partial(self._check_models, models), is_away)

    async def patiently(
        self,
        work: Callable[[], Awaitable[T]],
        is_away: Callable[[Exception], bool],
        min_seconds: float = 0.0,
        known_since: datetime | None = None,
        max_retry_after: float | None = None,
    ) -> T:
        """The result of the work, tried again while the server is away, which is shown meanwhile.

        `known_since`: since when it gives no answer, else since the first attempt. A wait that the
        server requests is kept, up to `max_retry_after`. Raises what the last attempt raised once
        the patience, or `min_seconds`, is over; Stopped if the provider is stopped meanwhile.
        """
        wait, began, since = PROBE_EVERY_SECONDS[0], math.inf, utc_now()
        try:
            while True:
                try:
                    return await work()
                except Exception as error:
                    if began == math.inf:
                        began, since = time.monotonic(), known_since or utc_now()
                    seconds = max(self.patience_seconds, min_seconds)
                    left = seconds - (time.monotonic() - began)
                    if not is_away(error) or left <= 0:
                        raise
                    cause = error.__cause__ if isinstance(error, ProviderError) else None
                    reason = describe(cause or error)
                    pause = wait
                    if isinstance(error, openai.APIStatusError):
                        pause = max(pause, retry_after_seconds(error, max_retry_after) or 0.0)
                    pause = min(pause, left)
                self._trouble.away(reason, since, pause)
                await self.gate.pause(pause)
                wait = min(2 * wait, PROBE_EVERY_SECONDS[1])
        finally:
            if began < math.inf:
                self._trouble.back()

    async def _check_models(self, models: Sequence[str]) -> None:
        silent: list[openai.APIConnectionError] = []
        for endpoint in self.endpoints.all:
            try:
                await check_models(endpoint, models)
            except openai.APIConnectionError as error:
                self.endpoints.pass_on(endpoint, error, None)
                silent.append(error)
        if len(silent) == len(self.endpoints.all):
            raise ProviderError(
                f"no server responds at {self.endpoints.urls()}",
                "start it, check it with `connections test`, or choose another connection",
                code="server_unreachable",
            ) from silent[0]

    def max_usd(self, request: Request) -> float:
        """The price of every byte of the prompt as a token and of all the output it may have.

        A gateway that adds a prompt of its own counts more: what an answer to the same task cost
        beyond that, at most so far, is added.
        """
        price = self._prices.get(request.model)
        if price is None:
            return 0.0
        known = price.usd(max_input_tokens(request), max_output_tokens(request))
        return known + self._beyond_usd[request.model, request.task]

    def _counted_tokens(self, request: Request) -> float:
        """What counts against a limit of tokens: the prompt, at as many bytes each as the server
        counted so far in its stage, four before it did, and the output."""
        known = self._prompt_tokens[request.model, request.task]
        share = known["tokens"] / known["bytes"] if known["bytes"] else 1 / 4
        return max_input_tokens(request) * share + max_output_tokens(request)

    def state(self) -> ProviderState:
        """The gate's state and how many attempts failed."""
        return ProviderState(
            self.gate.in_flight,
            self.gate.width,
            self.failures,
            self.gate.throttles,
            self._trouble.state(),
            dict(self._trouble.kinds),
            self._probe.spent_usd + self._lost_usd,
            self.gate.lent,
        )

    def count_lost(self, usd: float) -> None:
        """Count what was paid for an answer that did not arrive, or less where it is known."""
        self._lost_usd += usd

    def stop(self) -> None:
        """Let no further call start."""
        self.gate.close()

    def set_limits(self, calls: int, part: float) -> None:
        """Change the gate's ceiling, and its part of the limits per minute."""
        self.gate.set_ceiling(calls)
        self.gate.set_part(part)

    async def close(self) -> None:
        """Close the connections."""
        for task in (self._return, self._watch, *self._comparing):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        for endpoint in self.endpoints.all:
            await endpoint.client.close()

    async def answer(self, request: Request) -> Answer:
        """One answer, with further attempts where they can help.

        Raises TryLater between two of them where the provider `parks`: what the caller holds is
        another's meanwhile.
        """
        while True:
            try:
                return await self._answer(request)
            except TryLater as later:
                if self._parks:
                    raise
                await self.gate.pause(later.seconds)
            except BaseException:
                self._tries.pop(request.key, None)
                raise

    async def _answer(self, request: Request) -> Answer:
        """Send until there is an answer, or a failure that a later attempt may not meet.

        A failure counts against the row only where another request of its task was answered after
        it: the server works then, and it is this request that it cannot answer. Of another task it
        says less: what cuts the long prompts of the validation may pass all others. Failures
        without that are the server's: nothing is dropped for them, and after MAX_ATTEMPTS of them,
        or MAX_IN_A_ROW of any requests, it is waited for.
        """
        new = _Tries(time.monotonic(), self._answers, self._recovered)
        tries = self._tries.setdefault(request.key, new)
        kind = (request.model, request.task)
        if self._watch is None:
            self._watch = asyncio.create_task(self._watch_calls(), context=self._context)
        while True:
            delay: float | None = None
            if self._return is not None:
                await asyncio.shield(self._return)
            async with self.gate.slot(lambda: self._counted_tokens(request)) as started:
                endpoint = self.endpoints.choose(tries.passed)
                await self._let_first_pass(endpoint, request)
                tries.form = max(tries.form, endpoint.form.get(request.model, 0))
                body = self.body(request, endpoint, tries.form)
                tries.attempts += 1
                endpoint.open_requests += 1
                # the SDK's timeout is one of silence: a slow drip never ends by it
                limit = asyncio.timeout(self._timeout(request))
                call = _Call(request, limit, time.monotonic(), tries)
                try:
                    # not `chat.completions.create`, which walks through every message and schema
                    # to rename fields, and builds models of the response: a third of all CPU
                    # time, and there is nothing to rename
                    self._calls.add(call)  # watched until its response is there
                    try:
                        async with call.limit:
                            response = await endpoint.client.post(
                                endpoint.path,
                                cast_to=httpx2.Response,
                                body=body,
                                options=self._options(request),
                            )
                    finally:
                        self._calls.discard(call)
                    answer = self.accept(
                        endpoint,
                        request,
                        response.content,
                        call.seconds,
                        charset=partial(_charset, response),
                    )
                except asyncio.CancelledError:  # the run stops: the server may answer all the same
                    self._lost_usd += self.max_usd(request)
                    raise
                except Exception as raised:
                    error = hung(call) if call.hangs else raised
                    if not tries.renamed and refuses_limit_name(error):
                        tries.renamed = self._rename_limit(request, endpoint, body)
                        if tries.renamed:
                            continue
                    if may_be_about_form(error) and "response_format" in body:
                        tries.form += 1  # kept for the model where the simpler request is answered
                        continue
                    self._trouble.failed(error)
                    if is_lost(error):
                        max_usd = self.max_usd(request)
                        tries.lost += 1
                        tries.lost_usd += max_usd
                        self._lost_usd += max_usd
                    if isinstance(error, openai.APIStatusError):
                        delay = retry_after_seconds(error, self.max_retry_after.get(request.task))
                    failed = error
                    answers_others = len(self.endpoints.all) == 1 or (
                        endpoint.newest_start > call.began
                    )
                    is_of_row = call.hangs and answers_others
                    tries.cuts += is_of_row
                    if (
                        not is_of_row
                        and self.endpoints.pass_on(endpoint, error, delay)
                        # else a poisoned row would circle
                        and len(tries.passed) < len(self.endpoints.all) - 1
                    ):
                        self.failures += 1
                        if answers_others and not isinstance(error, openai.RateLimitError):
                            self._count_failure(call, tries, kind)
                        tries.passed += (endpoint.url,)
                        self._trouble.retrying(None)
                        continue
                    tries.passed = ()
                    try:
                        raise_if_final(error, request, endpoint.url)
                    except ProviderError:
                        if not await self._refuses_only(request, error):
                            raise
                        raise RowFailed("request_refused", describe(error)) from error
                    except RowFailed as refused:
                        if refused.reason == "request_refused" and await self._refuses_all(request):
                            raise refuses_all(endpoint.url, describe(error)) from error
                        raise
                    if isinstance(error, openai.RateLimitError) and not self._is_refused_alone(
                        tries, kind
                    ):
                        self.gate.throttled(started, delay)
                    else:
                        self.failures += 1
                        self._in_a_row += 1
                        self._count_failure(call, tries, kind)
                else:
                    self._last_answer, self._in_a_row = time.monotonic(), 0
                    self._answered[kind], self._answered_at[kind] = request, self._last_answer
                    self._answers += 1
                    self._recovered += tries.failures
                    beyond_usd = answer.cost_usd - self.max_usd(request)
                    self._beyond_usd[kind] += max(0.0, beyond_usd)
                    self._latencies[kind].add(
                        call.began, answer.latency_seconds, answer.output_tokens
                    )
                    endpoint.newest_start = max(endpoint.newest_start, call.began)
                    self.gate.worked()
                    self.endpoints.answered(endpoint)
                    form = max(tries.form, endpoint.form.get(request.model, 0))
                    endpoint.form[request.model] = form
                    # an answer to the same prompt: what the lost ones cost, too
                    self._lost_usd -= tries.lost_usd - tries.lost * answer.cost_usd
                    self._tries.pop(request.key, None)
                    return replace(answer, attempts=tries.attempts)
                finally:
                    endpoint.open_requests -= 1
                    endpoint.first[request.model].set()
            self.gate.check()  # a run that stops judges no row: those beside it were stopped, too
            silent = time.monotonic() - max(self._last_answer, tries.began)
            if tries.refused_at < math.inf and silent > ROW_SECONDS:  # none is left beside it
                tries.of_row += await self._answers_again(request)
            if tries.is_of_row():
                raise gave_up(tries.attempts, failed)
            if (
                tries.of_server >= MAX_ATTEMPTS
                or self._in_a_row >= MAX_IN_A_ROW
                or (silent > SILENT_FOR_SECONDS and tries.attempts >= MIN_ATTEMPTS)
            ):
                self._in_a_row = 0
                if await self._give_up(request, failed, tries):
                    continue
            self._trouble.retrying(delay)
            raise TryLater(delay or self._backoff(tries))

    def _count_failure(self, call: _Call, tries: _Tries, kind: tuple[str, str]) -> None:
        tries.failed(self._answered_at.get(kind, -math.inf))
        tries.slow += not call.hangs and call.seconds >= SLOW_FAILURE
        if tries.cuts + tries.slow >= MAX_CUTS and self._fails_alone(call, tries):
            tries.cuts = MAX_CUTS

    def _is_refused_alone(self, tries: _Tries, kind: tuple[str, str]) -> bool:
        """Count a refusal by a rate; whether it is of this prompt: others of its stage are answered
        between its refusals, and hardly any of those was refused or failed before."""
        tries.refused(self._answered_at.get(kind, -math.inf))
        answers, recovered = self._answers - tries.answered, self._recovered - tries.recovered
        few = answers >= MIN_OTHERS and recovered <= MAX_FAILING_SHARE * answers
        return tries.refusals >= MIN_REFUSALS and few

    def _fails_alone(self, call: _Call, tries: _Tries) -> bool:
        """Whether a call failed while others, sent after it, were answered, and few rows fail.

        Under load many do, and are answered later.
        """
        is_overtaken = self._latencies_of(call.request)[0].newest_start > call.began
        failing = sum(each.failures > 0 for each in self._tries.values())
        recovered, answers = self._recovered - tries.recovered, self._answers - tries.answered
        few = failing <= max(8, MAX_FAILING_SHARE * self._answers)
        return is_overtaken and few and recovered <= MAX_FAILING_SHARE * answers

    async def _watch_calls(self) -> None:
        """Cut calls that hang while others are answered. Where calls hold all of several places
        for long, much longer than answers take, lend one place after the other, up to the width:
        whether others are answered must show. Sooner where already the start of an answer hangs."""
        soon = COMPARED * HANG_SECONDS
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            width = int(self.gate.width)
            late = [call for call in self._calls if self._is_stuck(call, soon)]
            is_full = 1 < width <= len(late)
            if is_full and not any(call.tries.compared for call in late):
                unknown = [c for c in late if self._latencies_of(c.request)[1] == math.inf]
                self._compare(unknown[:1])
            self._compare([call for call in self._calls if self._may_hang(call, soon)])
            hangs = is_full and any(call.tries.start_hangs() for call in late)
            after = soon if hangs else STUCK * HANG_SECONDS
            stuck = sum(self._is_stuck(call, after) for call in self._calls)
            self.gate.lend(min(width, max(0, stuck + 1 - width)) if width > 1 else 0)
            for call in list(self._calls):
                if await self._hangs(call) and call in self._calls and not call.limit.expired():
                    call.hangs = True
                    call.limit.reschedule(asyncio.get_running_loop().time())

    def _latencies_of(self, request: Request) -> tuple[Latencies, float]:
        """The latencies of a request's stage, and how long it may take; infinite where unknown."""
        latencies = self._latencies[request.model, request.task]
        if request.task in self.timeouts:  # the recipe's own limit holds
            return latencies, math.inf
        return latencies, latencies.allowed(request.parameters.get("max_output_tokens"))

    def _compare(self, calls: Sequence[_Call]) -> None:
        for call in calls:
            call.tries.compared = task = asyncio.create_task(self._start_hangs(call.request))
            self._comparing.add(task)
            task.add_done_callback(self._comparing.discard)

    def _may_hang(self, call: _Call, after: float) -> bool:
        """Whether a call is late that could take minutes by its limit of tokens alone."""
        if call.seconds <= after or call.tries.compared is not None:
            return False
        latencies, allowed = self._latencies_of(call.request)
        is_long = ROW_SECONDS + SLOW_FAILURE < MAX_CUTS * allowed < math.inf
        return is_long and MUCH_LONGER * latencies.slow() < call.seconds < allowed

    async def _start_hangs(self, request: Request) -> bool:
        """Whether a small request is answered soon, and of this one not even a few tokens: those of
        a model that thinks for long are."""
        answers = False
        try:
            async with asyncio.timeout(COMPARED * HANG_SECONDS):
                answers = await self._probe_failure(request, anew=True) is None
            if answers:
                async with asyncio.timeout(COMPARED * HANG_SECONDS):
                    await self._probe_failure(request, anew=True, full=True)
        except TimeoutError:
            return answers
        return False

    def _is_stuck(self, call: _Call, after: float) -> bool:
        """Whether a call may hang: it is much older than any answer of its stage was, or its row's
        call before did."""
        if call.request.task in self.timeouts:
            return False
        if call.tries.cuts:
            return call.seconds > COMPARED * HANG_SECONDS
        if call.seconds <= after:
            return False
        return call.seconds > MUCH_LONGER * self._latencies_of(call.request)[0].longest()

    async def _hangs(self, call: _Call) -> bool:
        """Whether the server answers what was sent well after a late call, or where nothing was, a
        probe of its stage's size; not before it is known how long its stage's answers take."""
        if call.seconds <= HANG_SECONDS:
            return False
        latencies, allowed = self._latencies_of(call.request)
        if call.seconds <= allowed and not (allowed < math.inf and call.tries.start_hangs()):
            return False
        if latencies.newest_start > call.began + HANG_SECONDS / 2:
            return True
        if time.monotonic() < latencies.no_probe_before:
            return False
        began, kind = time.monotonic(), (call.request.model, call.request.task)
        if await self._probe_failure(self._answered[kind], anew=True, full=True) is not None:
            latencies.no_probe_before = time.monotonic() + HANG_SECONDS / 2
            return False
        latencies.newest_start = max(latencies.newest_start, began)  # for the others that are late
        await asyncio.sleep(WATCH_SECONDS)  # a stall that has just ended: it is answered, too
        return True

    async def _let_first_pass(self, endpoint: Endpoint, request: Request) -> None:
        """Wait while a model's first request is open, FIRST_SECONDS at most: its answer may show
        another model. Raises Stopped where it did."""
        first = endpoint.first.get(request.model)
        if first is None:
            endpoint.first[request.model] = asyncio.Event()
        elif not first.is_set() and self.answers_as.get(request.task) != "any":
            endpoint.open_requests += 1  # else those that wait here count for no endpoint
            try:
                await asyncio.wait_for(first.wait(), FIRST_SECONDS)
            except TimeoutError:
                first.set()  # who comes later waits no further time
            finally:
                endpoint.open_requests -= 1
            self.gate.check()

    async def check_name(self, request: Request) -> None:
        """Raise ProviderError where its model answers a small request as another one, before many
        are sent at once; where none is answered, their answers show it."""
        answers_as, endpoint = self.answers_as.get(request.task, "own"), self.endpoints.all[0]
        if answers_as == "any" or endpoint.reported.get(request.model):
            return
        if request.model not in self._probed:
            await self._probe_failure(request)
        name = self._probed.setdefault(request.model, "")
        if refused := refused_model(endpoint, request.model, name, answers_as):
            raise refused

    def _timeout(self, request: Request) -> float:
        return self.timeouts.get(request.task, self._timeout_seconds)

    def _options(self, request: Request) -> Any:
        """The SDK's options of a request; the SDK does not export their type."""
        options: dict[str, Any] = {"timeout": self._timeout(request)}
        if headers := self.headers.get(request.task):
            options["headers"] = headers
        return options

    def body(self, request: Request, endpoint: Endpoint, form: int) -> dict[str, Any]:
        """The body of a request to an endpoint; `form` is its step of FORMS."""
        return build_body(request, form=form, limit_name=self._limit_name(request, endpoint))

    def _limit_name(self, request: Request, endpoint: Endpoint) -> str:
        # OpenAI's reasoning models refuse the old name, most other servers the new one
        usual = "max_tokens" if endpoint.own_server else "max_completion_tokens"
        found = endpoint.limit_name.get(request.model, usual)
        return self.limit_names.get(request.task, found)

    def _rename_limit(self, request: Request, endpoint: Endpoint, body: dict[str, Any]) -> bool:
        """Whether the limit goes by its other name from here on; not where the recipe names it."""
        sent = [name for name in LIMIT_NAMES if name in body]
        if request.task in self.limit_names or len(sent) != 1:
            return False
        (other,) = set(LIMIT_NAMES) - set(sent)
        endpoint.limit_name[request.model] = other
        return True

    def accept(
        self,
        endpoint: Endpoint,
        request: Request,
        content: bytes,
        seconds: float,
        *,
        charset: Callable[[], str | None] = lambda: None,
    ) -> Answer:
        """The answer in the content of a response. What is paid for and not used is kept.

        Raises ValueError; Unusable where its cost is counted; ProviderError for an answer of
        another model: no further call starts, and a run that takes it finds it.
        """
        try:
            completion = read_body(content, charset)
            answer = self.read(request, completion, seconds)
        except NotACompletion:
            raise
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            has_usage = self.keep_unreadable(request, content, seconds)
            why = f"the answer cannot be read ({type(error).__name__}: {error})"
            raise (Unusable if has_usage else ValueError)(why) from error
        if how_it_ended(answer.finish_reason) == "exhausted":
            self.keep(request.aside(sha256(content).hexdigest()), answer)
            raise Unusable(f"the server ended the answer with “{answer.finish_reason}”")
        answers_as = self.answers_as.get(request.task, "own")
        refused = refused_model(endpoint, request.model, answer.model, answers_as)
        if refused is not None:
            self.keep(request.aside(OF_ANOTHER), answer)
            self.stop()
            raise refused
        return answer

    def keep_unreadable(self, request: Request, content: bytes, seconds: float) -> bool:
        """Keep what cannot be read at the usage that can be found in it; whether there is any."""
        tokens, price = usage_of(content), self._prices.get(request.model)
        into, out = tokens or (0, 0)
        cost_usd = price.usd(into, out) if price else 0.0
        kept = Answer(as_stored(content), "unreadable", into, out, cost_usd=cost_usd)
        aside = request.aside(sha256(content).hexdigest())
        self.keep(aside, replace(kept, latency_seconds=seconds))
        return tokens is not None

    def read(self, request: Request, completion: Any, seconds: float) -> Answer:
        """The answer of a completion. Raises ValueError for what is no completion."""
        found = read_completion(completion)
        model = completion.get("model")
        input_tokens, output_tokens = found.input_tokens, found.output_tokens
        if input_tokens is None or output_tokens is None:
            input_tokens, output_tokens = estimated_input_tokens(request), len(found.text) // 4
        else:
            self._prompt_tokens[request.model, request.task].update(
                tokens=input_tokens, bytes=max_input_tokens(request)
            )
        price = self._prices.get(request.model)
        return Answer(
            text=found.text,
            finish_reason=found.finish_reason,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            reasoning_tokens=found.reasoning_tokens,
            cost_usd=price.usd(input_tokens, output_tokens) if price else 0.0,
            latency_seconds=seconds,
            model=storable(model) if isinstance(model, str) else "",
        )

    async def _give_up(self, request: Request, failed: Exception, tries: "_Tries") -> bool:
        """Drop the row, or wait until the server is back, or leave it to further attempts.

        Returns whether the server was waited for. No other request was answered since this one
        fails, which a small probe now makes up for. Without its answer the server is away:
        ServerFailed once the patience is over. With it the row may be to blame. It is where the
        server also answers a request of full size again, and where no other request fails. Where
        others fail, too, all of them have MAX_ROW_ATTEMPTS, and as long as the patience, before
        they are dropped: a server that is out of memory, say, answers small requests only, and may
        recover. It is dropped when it fails once more: the server may just have come back.
        """
        if self._return is None and await self._answers_a_probe(request, tries.failed_at):
            total = tries.attempts + request.failed_attempts
            is_alone = len(self._tries) == 1 and not self.gate.in_flight
            is_over = time.monotonic() - tries.began >= self.patience_seconds
            if (total >= MAX_ROW_ATTEMPTS and is_over) or (
                tries.attempts >= MAX_ATTEMPTS and (is_alone or await self._answers_again(request))
            ):
                if tries.is_suspect:
                    raise gave_up(total, failed)
                tries.is_suspect, tries.of_server = True, MAX_ATTEMPTS - 1
                return True
            tries.of_server = 0
            return False
        if self._return is None:
            for each in self._tries.values():  # it failed with the server, whosesoever fault it is
                each.of_row -= each.counted_at > self._last_answer
                each.is_suspect = False
            waiting = self._wait_for_server(request, failed, tries)
            self._return = asyncio.create_task(waiting, context=self._context)
        await asyncio.shield(self._return)
        if tries.is_of_row():
            raise gave_up(tries.attempts, failed)
        tries.of_server = 0
        return True

    async def _answers_again(self, request: Request) -> bool:
        """Whether the server answers the start of what it answered to a request of the same task.

        False where more requests fail than MAX_FAILING_SHARE of those that were answered.
        """
        answered = self._answered.get((request.model, request.task))
        if answered is None or len(self._tries) > max(8, MAX_FAILING_SHARE * self._answers):
            return False
        return await self._probe_failure(answered, anew=True, full=True) is None

    async def _falls_again(self, request: Request) -> bool:
        """Whether a server that is back answers the start of what it answered before, and then not
        that of the request whose failures it was away after; no other is sent meanwhile."""
        answered = self._answered.get((request.model, request.task))
        return (
            answered is not None
            and await self._probe_failure(answered, anew=True, full=True) is None
            and await self._probe_failure(request, anew=True, full=True) is not None
        )

    async def _wait_for_server(self, request: Request, failed: Exception, tries: _Tries) -> None:
        """Probe the server until it answers; meanwhile no request is sent.

        Raises ServerFailed once the patience is over, ProviderError for what no waiting mends: a
        page to sign in, or a page from a server that never answered the run otherwise.
        """
        urls = self.endpoints.urls()
        first: list[Exception] = []  # what is known without a probe

        async def probe() -> None:
            error = first.pop() if first else await self._probe_failure(request, anew=True)
            if isinstance(error, Page) and not (self._was_reached or self._answers):
                raise only_pages(error, urls) from error
            if error is not None:
                if error is not failed:
                    raise_if_final(error, request, urls)
                raise error

        try:
            while True:
                first.append(failed)
                await self.patiently(
                    probe,
                    lambda error: isinstance(error, FAILURES),
                    known_since=self._silent_since(),
                    max_retry_after=self.max_retry_after.get(request.task),
                )
                if not await self._falls_again(request):
                    return
                tries.falls += 1
                if tries.is_of_row():
                    return
        except RowFailed:
            return  # it read the request
        except FAILURES as error:
            reason, silent = describe(error), time.monotonic() - self._last_answer
            raise ServerFailed(
                f"the server at {urls} has given no answer for {silent:.0f} s ({reason})",
                "check it, then resume: nothing is lost",
                attempts=tries.attempts,
                last_error=reason,
                code="server_silent",
            ) from error
        finally:
            self._return = None

    def _silent_since(self) -> datetime:
        """When the server gave its last answer, or this process began."""
        return utc_now() - timedelta(seconds=time.monotonic() - self._last_answer)

    async def _refuses_only(self, request: Request, error: Exception) -> bool:
        """Whether the server refuses this request and answers others: it must not end the run."""
        task_works = (request.model, request.task) in self._answered
        return (
            may_be_about_one_request(error, task_works=task_works)
            and await self._probe_failure(request, strict=True) is None
        )

    async def _refuses_all(self, request: Request) -> bool:
        """Whether a small request to the same model is refused, too: of a proxy's key, say."""
        failed = await self._probe_failure(request, strict=True)
        return isinstance(failed, openai.APIStatusError) and failed.status_code < 500

    async def _answers_a_probe(self, request: Request, since: float) -> bool:
        """Whether an endpoint answers a small request to the same model, sent after `since`."""
        return await self._probe_failure(request, since=since) is None

    async def _probe_failure(
        self,
        request: Request,
        *,
        anew: bool = False,
        full: bool = False,
        strict: bool = False,
        since: float = -math.inf,
    ) -> Exception | None:
        """Why no endpoint answers a small request to the same model; None where one does.

        `full`: the request itself, of which a few tokens are to be answered, with a beginning that
        no cache of prompts or answers knows. `strict`: a request that is read and refused is a
        failure.
        """
        options = self._options(request)
        options["timeout"] = min(options["timeout"], MAX_PROBE_SECONDS)

        async def send(endpoint: Endpoint) -> tuple[int, int]:
            name = self._limit_name(request, endpoint)
            body = probe_body(request.model, name)
            if full:
                form = endpoint.form.get(request.model, 0)
                body = self.body(request, endpoint, form) | {name: PROBE_TOKENS}
                first, *others = body["messages"]
                new = {"content": f"({self._jitter.getrandbits(64):x}) {first['content']}"}
                body["messages"] = [first | new, *others]
            sent = await endpoint.client.post(
                endpoint.path,
                cast_to=httpx2.Response,
                body=body,
                options=options,
            )
            completion = read_body(sent.content, partial(_charset, sent))
            found = read_completion(completion)
            self._probed[request.model] = str(completion.get("model") or "")
            if how_it_ended(found.finish_reason) == "exhausted":
                raise Unusable(f"the server ended the answer with “{found.finish_reason}”")
            return found.input_tokens or PROBE_TOKENS, found.output_tokens or PROBE_TOKENS

        sends = [partial(send, endpoint) for endpoint in self.endpoints.all]
        price = self._prices.get(request.model)
        most = (max_input_tokens(request) if full else PROBE_TOKENS, PROBE_TOKENS)
        return await self._probe.failure(
            *(request.model, sends, price), most=most, anew=anew, strict=strict, since=since
        )

    def _backoff(self, tries: _Tries) -> float:
        """Seconds before the next attempt: doubling, with jitter so that not all come at once."""
        is_refused = tries.refused_at < math.inf
        longest = min(MAX_BACKOFF_SECONDS, SLOW_FAILURE if is_refused else math.inf)
        ceiling: float = min(longest, BACKOFF_SECONDS * 2 ** (tries.attempts - 1))
        return ceiling * (0.5 + self._jitter.random() / 2)
