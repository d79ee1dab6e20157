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
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import openai

from curation.providers.client import make_endpoints
from curation.providers.endpoints import Endpoint, Endpoints
from curation.providers.failures import (
    LIMIT_NAMES,
    max_retry_after,
    may_be_about_form,
    may_be_about_one_request,
    raise_if_final,
    refuses_limit_name,
    retry_after_seconds,
)
from curation.providers.gate import Gate
from curation.providers.models import check_models, check_reported_model
from curation.providers.probe import PROBE_TOKENS, Probe, probe_body
from curation.providers.provider import (
    MAX_ROW_ATTEMPTS,
    Answer,
    ProviderState,
    Request,
    RowFailed,
    ServerFailed,
)
from curation.providers.request_body import (
    build_body,
    estimated_input_tokens,
    max_input_tokens,
    max_output_tokens,
)
from curation.providers.trouble import TroubleLog, describe
from curation.recipe.completion import read_completion
from curation.recipe.prices import Price, how_to_price, load_prices
from curation.recipe.recipe import Recipe
from curation.servers.connection import Server
from db.errors import BadInput, ProviderError

logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs a line for every call otherwise
MAX_ATTEMPTS: Final = 6
BACKOFF_SECONDS: Final = 0.5
MAX_BACKOFF_SECONDS: Final = 20.0
TIMEOUT_SECONDS: Final = 600.0  # a local server may think for minutes before it answers
SILENT_FOR_SECONDS: Final = 600.0  # no answer to any request: then the run stops
MIN_ATTEMPTS: Final = 3  # before that: one slow request may last as long and prove nothing


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
    ) -> None:
        self.endpoints, self._prices = Endpoints(endpoints), prices
        self._timeout_seconds = timeout_seconds
        self.gate = Gate(
            concurrency, per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute
        )
        self._last_answer = time.monotonic()
        self._answered_tasks: set[tuple[str, str]] = set()
        self._jitter = random.Random()
        self.failures = 0
        self._open_requests = 0  # requests without an answer yet, between attempts too
        self._trouble = TroubleLog()
        self._probe = Probe()
        self.max_retry_after: dict[str, float] = {}  # by task
        self.limit_names: dict[str, str] = {}  # by task: the server's name of max_output_tokens
        self.timeouts: dict[str, float] = {}  # by task
        self.headers: dict[str, dict[str, str]] = {}  # by task

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
        return provider

    @property
    def answered_as(self) -> dict[str, str]:
        """Models that answered under another name than they were requested by, with that name."""
        every = (each.reported.items() for each in self.endpoints.all)
        return {model: name for of in every for model, name in of if name != model}

    def parameters(self) -> dict[str, Any]:
        """Empty: the recipe alone decides what is sent."""
        return {}

    async def check_models(self, models: Sequence[str]) -> None:
        """Compare with the servers' lists of models; a server without such a list has them all.

        An endpoint that does not respond is left out where another one does.
        """
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
                "start it, or set OPENAI_BASE_URL, or choose another connection",
                code="server_unreachable",
            ) from silent[0]

    def max_usd(self, request: Request) -> float:
        """The price of every byte of the prompt as a token and of all the output it may have."""
        price = self._prices.get(request.model)
        if price is None:
            return 0.0
        return price.usd(max_input_tokens(request), max_output_tokens(request))

    def _counted_tokens(self, request: Request) -> float:
        """What counts against a limit of tokens: the prompt at four bytes each, and the output."""
        return max_input_tokens(request) / 4 + max_output_tokens(request)

    def state(self) -> ProviderState:
        """The gate's state and how many attempts failed."""
        return ProviderState(
            self.gate.in_flight,
            self.gate.width,
            self.failures,
            self.gate.throttles,
            self._trouble.state(),
            self._probe.spent_usd,
        )

    def stop(self) -> None:
        """Let no further call start."""
        self.gate.close()

    def set_concurrency(self, concurrency: int) -> None:
        """Change the gate's ceiling."""
        self.gate.set_ceiling(concurrency)

    async def close(self) -> None:
        """Close the connections."""
        for endpoint in self.endpoints.all:
            await endpoint.client.close()

    async def answer(self, request: Request) -> Answer:
        """One answer, with further attempts where they can help."""
        self._open_requests += 1
        try:
            return await self._answer(request)
        finally:
            self._open_requests -= 1

    async def _answer(self, request: Request) -> Answer:
        """Send until there is an answer.

        A failure counts against the row only where another request was answered after it: the
        server works then, and it is this request that it cannot answer. Failures without that are
        the server's: nothing is dropped for them, and MAX_ATTEMPTS of them stop the run.
        """
        attempts = of_row = of_server = passed_on = 0
        first, failed_at = time.monotonic(), math.inf
        form = 0  # the simplest that this request has needed
        renamed = False  # the limit of output tokens: once, else two names would alternate
        while True:
            delay: float | None = None
            async with self.gate.slot(lambda: self._counted_tokens(request)) as started:
                endpoint = self.endpoints.choose()
                form = max(form, endpoint.form.get(request.model, 0))
                body = self.body(request, endpoint, form)
                attempts += 1
                endpoint.open_requests += 1
                try:
                    # not `chat.completions.create`, which walks through every message and schema
                    # to rename fields, and builds models of the response: a third of all CPU
                    # time, and there is nothing to rename
                    # the SDK's timeout is one of silence: a slow drip never ends by it
                    async with asyncio.timeout(self._timeout(request)):
                        completion = await endpoint.client.post(
                            endpoint.path,
                            cast_to=object,
                            body=body,
                            options=self._options(request),
                        )
                    answer = self.read(request, completion, time.monotonic() - started)
                    check_reported_model(endpoint, request.model, completion)
                except Exception as error:
                    if not renamed and refuses_limit_name(error):
                        renamed = self._rename_limit(request, endpoint, body)
                        if renamed:
                            continue
                    if may_be_about_form(error) and "response_format" in body:
                        form += 1  # kept for the model where the simpler request is answered
                        continue
                    self._trouble.failed(error)
                    if isinstance(error, openai.APIStatusError):
                        delay = retry_after_seconds(error, self.max_retry_after.get(request.task))
                    failed = error
                    if (
                        self.endpoints.pass_on(endpoint, error, delay)
                        and passed_on < len(self.endpoints.all)  # else a poisoned row would circle
                    ):
                        self.failures += 1
                        passed_on += 1
                        self._trouble.retrying(None)
                        continue
                    passed_on = 0
                    try:
                        raise_if_final(error, request, endpoint.url)
                    except ProviderError:
                        if not await self._refuses_only(request, error):
                            raise
                        raise RowFailed("request_refused", describe(error)) from error
                    if isinstance(error, openai.RateLimitError):
                        self.gate.throttled(started, delay)
                    else:
                        self.failures += 1
                        if self._last_answer > failed_at:
                            of_row, of_server = of_row + 1, 0
                        of_server += 1
                        failed_at = time.monotonic()
                else:
                    self._last_answer = time.monotonic()
                    self._answered_tasks.add((request.model, request.task))
                    self.gate.worked()
                    self.endpoints.answered(endpoint)
                    endpoint.form[request.model] = max(form, endpoint.form.get(request.model, 0))
                    return replace(answer, attempts=attempts)
                finally:
                    endpoint.open_requests -= 1
            self.gate.check()  # a run that stops judges no row: those beside it were stopped, too
            if of_row >= MAX_ATTEMPTS - 1:
                raise RowFailed("server_error", f"gave up after {attempts} attempts: {failed}")
            silent = time.monotonic() - max(self._last_answer, first)
            silent_for_long = silent > SILENT_FOR_SECONDS and attempts >= MIN_ATTEMPTS
            if of_server >= MAX_ATTEMPTS or silent_for_long:
                await self._give_up(request, failed, attempts)
                of_server = 0
            self._trouble.retrying(delay)
            await self.gate.pause(delay if delay else self._backoff(attempts))

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

    def read(self, request: Request, completion: Any, seconds: float) -> Answer:
        """The answer of a completion. Raises ValueError for what is no completion."""
        found = read_completion(completion)
        input_tokens, output_tokens = found.input_tokens, found.output_tokens
        if input_tokens is None or output_tokens is None:
            input_tokens, output_tokens = estimated_input_tokens(request), len(found.text) // 4
        price = self._prices.get(request.model)
        return Answer(
            text=found.text,
            finish_reason=found.finish_reason,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            reasoning_tokens=found.reasoning_tokens,
            cost_usd=price.usd(input_tokens, output_tokens) if price else 0.0,
            latency_seconds=seconds,
        )

    async def _give_up(self, request: Request, failed: Exception, attempts: int) -> None:
        """Stop the run, drop the row, or return for further attempts.

        No other request was answered since this one fails, which a small probe now makes up for.
        Without its answer the server is down. With it the row is to blame; but where others fail
        too, all of them have MAX_ROW_ATTEMPTS before they are dropped, as a server that is out of
        memory, say, answers small requests only, and may recover.
        """
        what = describe(failed)
        if await self._answers_a_probe(request):
            alone = self._open_requests == 1
            total = attempts + request.failed_attempts
            if alone or total >= MAX_ROW_ATTEMPTS:
                raise RowFailed("server_error", f"gave up after {total} attempts: {what}")
            return
        silent = time.monotonic() - self._last_answer
        raise ServerFailed(
            f"the server at {self.endpoints.urls()} has given no answer for {silent:.0f} s "
            f"({what})",
            "check it, then resume the run: no group is lost",
            attempts=attempts,
            last_error=what,
            code="server_silent",
        ) from failed

    async def _refuses_only(self, request: Request, error: Exception) -> bool:
        """Whether the server refuses this request and answers others: it must not end the run."""
        task_works = (request.model, request.task) in self._answered_tasks
        return may_be_about_one_request(
            error, task_works=task_works
        ) and await self._answers_a_probe(request)

    async def _answers_a_probe(self, request: Request) -> bool:
        """Whether an endpoint answers a small request to the same model."""

        async def send(endpoint: Endpoint) -> tuple[int, int]:
            sent = await endpoint.client.post(
                endpoint.path,
                cast_to=object,
                body=probe_body(request.model, self._limit_name(request, endpoint)),
                options=self._options(request),
            )
            found = read_completion(sent)
            return found.input_tokens or PROBE_TOKENS, found.output_tokens or PROBE_TOKENS

        sends = [partial(send, endpoint) for endpoint in self.endpoints.all]
        return await self._probe.answered(request.model, sends, self._prices.get(request.model))

    def _backoff(self, attempts: int) -> float:
        """Seconds before the next attempt: doubling, with jitter so that not all come at once."""
        ceiling: float = min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2 ** (attempts - 1))
        return ceiling * (0.5 + self._jitter.random() / 2)


def require_prices(recipe: Recipe, prices: dict[str, Price]) -> None:
    """Raise BadInput where the cost of a call has no upper bound: a budget could not hold."""
    for task, stage in recipe.stages.items():
        if stage.model not in prices:
            raise BadInput(how_to_price(stage.model), code="price_unknown")
        if not stage.parameters.get("max_output_tokens"):
            raise BadInput(
                "a budget requires a limit of output tokens",
                f"give one with `set={task}.max_output_tokens=NUMBER`",
                code="budget_needs_token_limit",
            )
