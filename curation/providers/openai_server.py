"""Answers from any OpenAI-compatible server, through the `openai` SDK with its aiohttp transport.

OPENAI_BASE_URL and OPENAI_API_KEY (or AZURE_OPENAI_ENDPOINT, AZURE_OPENAI_API_KEY and
OPENAI_API_VERSION) say which. The SDK's own retries are off: they know nothing of our gate.

What stops the whole run at once: a wrong key, an unknown model, spent quota, a parameter that the
server refuses, a server that answers nobody. What costs one row: a refusal, an input that is too
long, a call that keeps failing while others are answered.
"""

import asyncio
import json
import logging
import math
import os
import random
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx2
import openai
from openai import AsyncAzureOpenAI, AsyncOpenAI, DefaultAioHttpClient

from curation.providers.batch_files import AnswerLine, RemoteBatch
from curation.providers.gate import Gate
from curation.providers.provider import Answer, ProviderState, Request, RowFailed
from curation.recipe.completion import read_completion
from curation.recipe.prices import Price, how_to_price, load_prices
from curation.recipe.prompt import messages
from curation.recipe.recipe import Recipe
from curation.recipe.structured import json_hint, response_format
from db.errors import BadInput, ProviderError
from db.tables import utc_now

log = logging.getLogger("inf.curate")
logging.getLogger("httpx2").setLevel(logging.WARNING)  # it has a line for every call otherwise
MAX_ATTEMPTS: Final = 6
BACKOFF_SECONDS: Final = 0.5
MAX_BACKOFF_SECONDS: Final = 20.0
TIMEOUT_SECONDS: Final = 600.0  # a local server thinks for minutes before it answers
MAX_RETRY_AFTER_SECONDS: Final = 600.0  # some servers ask for a day
THROTTLED_FOR_SECONDS: Final = 600.0  # nothing but 429 to anybody: then the run stops
QUOTA, TOO_LONG = "insufficient_quota", "context_length_exceeded"
FORMS: Final = ("json_schema", "json_object", "text")
MESSAGE_TOKENS: Final = 32
GUESSED_OUTPUT_TOKENS: Final = 4096


class OpenAIProvider:
    """A language-model server behind a gate that adapts to it."""

    name = "openai"
    offline = False
    budget_seconds = 1.0
    groups_per_call = 1  # a group has up to three calls at once: that fills the wire

    def __init__(
        self,
        client: AsyncOpenAI,
        *,
        concurrency: int,
        prices: dict[str, Price],
        own_server: bool,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.client, self._prices, self._own_server = client, prices, own_server
        self._path = (  # put together once; Azure's SDK adds the deployment to a relative one
            "/chat/completions"
            if isinstance(client, AsyncAzureOpenAI)
            else f"{client.base_url}chat/completions"
        )
        self._timeout_seconds = timeout_seconds
        self.gate = Gate(
            concurrency, per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute
        )
        self._last_answer = time.monotonic()
        self._jitter = random.Random()
        self.failures = 0
        self._asking = 0  # requests that wait for an answer, tried again or not
        self._dropped_alone = -math.inf
        self.limit_names: dict[str, str] = {}  # by task: how a server calls max_output_tokens
        # how many steps of FORMS a model's server has refused; for this run
        self.form: dict[str, int] = {}
        self.timeouts: dict[str, float] = {}  # by task
        self.headers: dict[str, dict[str, str]] = {}  # by task

    @classmethod
    def from_environment(
        cls,
        recipe: Recipe,
        *,
        concurrency: int,
        with_budget: bool,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        batch: bool = False,
    ) -> "OpenAIProvider":
        """The server that the environment names.

        Raises ProviderError without a key, BadInput where a budget is set and a price or a limit
        of output tokens is missing.
        """
        prices = load_prices()
        if with_budget:
            require_prices(recipe, prices)
        if batch:
            prices = {model: price.batched() for model, price in prices.items()}
        client, own_server = _client()
        provider = cls(
            client,
            concurrency=concurrency,
            prices=prices,
            own_server=own_server,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
        )
        for task, stage in recipe.stages.items():
            if "timeout_seconds" in stage.transport:
                provider.timeouts[task] = float(stage.transport["timeout_seconds"])
            if "limit_name" in stage.transport:
                provider.limit_names[task] = str(stage.transport["limit_name"])
            provider.headers[task] = dict(stage.transport.get("headers", {}))
        return provider

    def parameters(self) -> dict[str, Any]:
        """Nothing but the recipe decides what is asked."""
        return {}

    async def check_models(self, models: Sequence[str]) -> None:
        """Ask the server for its list of models; one without such a list is taken at its word."""
        if isinstance(self.client, AsyncAzureOpenAI):
            return  # a deployment's name is the user's own
        try:
            known = [model.id async for model in self.client.models.list(timeout=20.0)]
        except openai.AuthenticationError as error:
            raise _wrong_key(error) from error
        except openai.APIConnectionError as error:
            raise ProviderError(
                f"no server answers at {self.client.base_url}: start it, or set OPENAI_BASE_URL"
            ) from error
        except (openai.APIError, ValueError, TypeError, AttributeError):
            return
        for model in models:
            if known and model not in known:
                shown = ", ".join(sorted(known)[:12]) + (", …" if len(known) > 12 else "")
                raise ProviderError(
                    f"the server has no model {model!r}: choose another with "
                    f"`--set STAGE.model=NAME` or `--set model=NAME` for all; it has {shown}"
                )

    def most_usd(self, request: Request) -> float:
        """The price of every byte of the prompt as a token and of all the output it may have."""
        price = self._prices.get(request.model)
        if price is None:
            return 0.0
        size = _bytes_of(request)
        return price.usd(size, request.parameters.get("max_output_tokens") or GUESSED_OUTPUT_TOKENS)

    def _most_tokens(self, request: Request) -> float:
        """What counts against a limit of tokens: the prompt at four bytes each, and the output."""
        output = request.parameters.get("max_output_tokens") or GUESSED_OUTPUT_TOKENS
        return _bytes_of(request) / 4 + float(output)

    def state(self) -> ProviderState:
        """The gate's state and how many tries failed."""
        return ProviderState(
            self.gate.in_flight, self.gate.width, self.failures, self.gate.throttles
        )

    def stop(self) -> None:
        """Let no call start any more."""
        self.gate.close()

    def set_concurrency(self, concurrency: int) -> None:
        """Another ceiling for the gate."""
        self.gate.set_ceiling(concurrency)

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()

    async def answer(self, request: Request) -> Answer:
        """One answer, tried again where that can help."""
        self._asking += 1
        try:
            return await self._answer(request)
        finally:
            self._asking -= 1

    async def _answer(self, request: Request) -> Answer:
        """Ask until there is an answer.

        A failure counts against the row only where another request was answered after it: the
        server works then, and it is this request that it cannot answer. Failures without that are
        the server's: nothing is dropped for them, and MAX_ATTEMPTS of them stop the run.
        """
        attempts = of_row = of_server = 0
        first, failed_at = time.monotonic(), math.inf
        form = 0
        while True:
            delay: float | None = None
            async with self.gate.slot(lambda: self._most_tokens(request)) as started:
                form = max(form, self.form.get(request.model, 0))
                body = self.body(request, form)
                attempts += 1
                try:
                    # not `chat.completions.create`, which walks through every message and schema
                    # to rename fields, and makes models of what came: a third of all processor
                    # time, and nothing to rename
                    completion = await self.client.post(
                        self._path,
                        cast_to=object,
                        body=body,
                        options=self._options(request),
                    )
                    answer = self.read(request, completion, time.monotonic() - started)
                except openai.RateLimitError as error:
                    _raise_if_quota_is_spent(error)
                    delay = _retry_after(error)
                    self.gate.throttled(started, delay)
                    failed: Exception = error
                except Exception as error:
                    if _is_about_form(error) and "response_format" in body:
                        form += 1  # kept for the model where the simpler request is answered
                        continue
                    _raise_if_final(error, request, str(self.client.base_url))
                    failed = error
                    self.failures += 1
                    if self._last_answer > failed_at:
                        of_row, of_server = of_row + 1, 0
                    of_server += 1
                    failed_at = time.monotonic()
                else:
                    self._last_answer = time.monotonic()
                    self.gate.worked()
                    self.form[request.model] = max(form, self.form.get(request.model, 0))
                    return _with_attempts(answer, attempts)
            if of_row >= MAX_ATTEMPTS - 1:
                raise RowFailed("server_error", f"gave up after {attempts} attempts: {failed}")
            silent = time.monotonic() - max(self._last_answer, first)
            if of_server >= MAX_ATTEMPTS or silent > THROTTLED_FOR_SECONDS:
                await self._give_up(failed, attempts)
            await self.gate.pause(delay if delay else self._backoff(attempts))

    def _options(self, request: Request) -> Any:
        """The SDK's options of a request, whose type it does not export."""
        options: dict[str, Any] = {
            "timeout": self.timeouts.get(request.task, self._timeout_seconds)
        }
        if headers := self.headers.get(request.task):
            options["headers"] = headers
        return options

    def body(self, request: Request, form: int | None = None) -> dict[str, Any]:
        """The body of a request; `form` is its step of FORMS, by default the model's."""
        parameters = dict(request.parameters)
        step = FORMS[self.form.get(request.model, 0) if form is None else form]
        if parameters.pop("output", "text") == "json" and step == "json_schema":
            parameters["response_format"] = response_format(request.task)
        elif request.parameters.get("output") == "json" and step == "json_object":
            parameters["response_format"] = {"type": "json_object"}
        limit = parameters.pop("max_output_tokens", None)
        if limit is not None:
            # OpenAI's reasoning models refuse the old name, most other servers the new one
            usual = "max_tokens" if self._own_server else "max_completion_tokens"
            parameters[self.limit_names.get(request.task, usual)] = limit
        extra = parameters.pop("extra_body", {})
        sent = messages(request.prompt, request.inputs)
        if step == "json_object" and "response_format" in parameters:
            sent[-1] = sent[-1] | {"content": sent[-1]["content"] + json_hint(request.task)}
        return {"model": request.model, "messages": sent, **parameters, **extra}

    def read(self, request: Request, completion: Any, seconds: float) -> Answer:
        """The answer of a completion. Raises ValueError for what is no completion."""
        found = read_completion(completion)
        input_tokens, output_tokens = found.input_tokens, found.output_tokens
        if input_tokens is None or output_tokens is None:
            sent = sum(
                len(message["content"]) for message in messages(request.prompt, request.inputs)
            )
            input_tokens, output_tokens = sent // 4, len(found.text) // 4
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

    async def _give_up(self, failed: Exception, attempts: int) -> None:
        """Stop the run, or drop the row where it is the last one and the server itself lives.

        A last row has no other whose answer could tell its failure from the server's. So that an
        outage costs one row at most, a second one without an answer in between stops the run.
        """
        what = f"{type(failed).__name__}: {failed}"
        alone = self._asking == 1 and self._dropped_alone < self._last_answer
        if alone and isinstance(failed, openai.APIStatusError) and await self._lists_models():
            self._dropped_alone = time.monotonic()
            raise RowFailed("server_error", f"gave up after {attempts} attempts: {what}")
        silent = time.monotonic() - self._last_answer
        raise ProviderError(
            f"the server at {self.client.base_url} has answered nothing for {silent:.0f} s "
            f"({what}); see to it, then resume the run: no group is lost"
        ) from failed

    async def _lists_models(self) -> bool:
        try:
            await self.client.models.list(timeout=20.0)
        except openai.APIError:
            return False
        return True

    def _backoff(self, tries: int) -> float:
        """Seconds before the next try: doubling, with chance so that not all come at once."""
        longest: float = min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2 ** (tries - 1))
        return longest * (0.5 + self._jitter.random() / 2)


def _bytes_of(request: Request) -> int:
    """The size of a prompt, with what every message adds."""
    return sum(
        len(message["content"].encode()) + MESSAGE_TOKENS
        for message in messages(request.prompt, request.inputs)
    )


def _client() -> tuple[AsyncOpenAI, bool]:
    """The SDK's client, and whether the server is not the vendor's."""
    endpoint = os.environ.get("AZURE_OPENAI_ENDPOINT")
    http_client = DefaultAioHttpClient()
    if endpoint:
        key, version = os.environ.get("AZURE_OPENAI_API_KEY"), os.environ.get("OPENAI_API_VERSION")
        if not key or not version:
            raise ProviderError(
                "AZURE_OPENAI_ENDPOINT is set: set AZURE_OPENAI_API_KEY and OPENAI_API_VERSION, too"
            )
        return (
            AsyncAzureOpenAI(
                azure_endpoint=endpoint,
                api_key=key,
                api_version=version,
                http_client=http_client,
                max_retries=0,
            ),
            False,
        )
    base_url, key = os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY")
    if not key and not base_url:
        raise ProviderError(
            "no OPENAI_API_KEY in the environment: set it, or OPENAI_BASE_URL for a server of your "
            "own, or use --provider offline"
        )
    own = bool(base_url) and "api.openai.com" not in str(base_url)
    return (
        AsyncOpenAI(
            api_key=key or "none", base_url=base_url, http_client=http_client, max_retries=0
        ),
        own,
    )


def require_prices(recipe: Recipe, prices: dict[str, Price]) -> None:
    for task, stage in recipe.stages.items():
        if stage.model not in prices:
            raise BadInput(how_to_price(stage.model))
        if not stage.parameters.get("max_output_tokens"):
            raise BadInput(
                f"a budget needs an end to every answer: --set {task}.max_output_tokens=NUMBER"
            )


def _raise_if_final(error: Exception, request: Request, server: str) -> None:
    """Raise what trying again cannot mend; return for what it may."""
    if isinstance(error, openai.APIStatusError):
        _raise_if_quota_is_spent(error)
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        raise _wrong_key(error) from error
    if isinstance(error, openai.NotFoundError):
        raise ProviderError(
            f"{server} does not know the model {request.model!r} ({error.message}): "
            "choose another with `--set STAGE.model=NAME`"
        ) from error
    if isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
        code = _code(error)
        if code in ("content_filter", "content_policy_violation"):
            raise RowFailed("refused", error.message) from error
        if code == "context_length_exceeded" or "context length" in error.message.lower():
            raise RowFailed("too_long_for_model", error.message) from error
        if error.param:
            raise ProviderError(
                f"the server refuses the parameter {error.param!r} for {request.model!r} "
                f"({error.message}): change the recipe with `--set {request.task}.KEY=VALUE`"
            ) from error
        raise RowFailed("request_refused", error.message) from error
    if isinstance(error, openai.APIError | json.JSONDecodeError | ValueError):
        return
    raise error


def _is_about_form(error: Exception) -> bool:
    """Whether a refusal may be one of the response format: servers say so in many ways.

    Asking in a simpler form tells: that form is kept where it is answered. Left out is what has a
    cause of its own: key, quota, model, time, size, rate, content filter, length of the context.
    """
    return (
        isinstance(error, openai.APIStatusError)
        and 400 <= error.status_code < 500
        and error.status_code not in (401, 402, 403, 404, 408, 409, 413, 429)
        and _code(error) not in ("content_filter", "content_policy_violation", QUOTA, TOO_LONG)
    )


def _raise_if_quota_is_spent(error: openai.APIStatusError) -> None:
    if error.status_code == 402 or _code(error) == QUOTA:
        raise ProviderError(
            f"the server says that the quota is spent: {error.message}; add credit, then resume"
        ) from error


def _wrong_key(error: openai.APIStatusError) -> ProviderError:
    return ProviderError(
        f"the server refuses the key ({error.status_code}): check OPENAI_API_KEY, then resume"
    )


def _code(error: openai.APIError) -> str:
    body = error.body if isinstance(error.body, dict) else {}
    return str(error.code or body.get("type") or "")


def _retry_after(error: openai.RateLimitError) -> float | None:
    """Seconds that the server asks to wait, in seconds or as a date; None where it does not say.

    At most INF_MAX_RETRY_AFTER_SECONDS, by default ten minutes.
    """
    headers = error.response.headers
    most = float(os.environ.get("INF_MAX_RETRY_AFTER_SECONDS") or MAX_RETRY_AFTER_SECONDS)
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        asked = headers.get(name)
        if asked is None:
            continue
        try:
            seconds = float(asked) * factor
        except ValueError:
            try:
                seconds = (parsedate_to_datetime(asked) - utc_now()).total_seconds()
            except (ValueError, TypeError):
                continue
        if math.isfinite(seconds):
            return min(max(0.0, seconds), most)
    return None


def _with_attempts(answer: Answer, attempts: int) -> Answer:
    return Answer(**{**answer.__dict__, "attempts": attempts})


class BatchApi:
    """The Batch API of a provider's server: files to it, batches, files from it.

    Every failure is a ProviderError; the SDK tries again by itself what can be tried again.
    """

    def __init__(self, wire: OpenAIProvider) -> None:
        self._wire = wire
        self._client = wire.client.with_options(max_retries=MAX_ATTEMPTS)

    @property
    def url(self) -> str:
        """What the lines of a file name as their address."""
        azure = isinstance(self._client, AsyncAzureOpenAI)
        return "/chat/completions" if azure else "/v1/chat/completions"

    async def create(self, name: str, content: bytes, *, longest_wait: float) -> str:
        """Send a file and make its batch; the server's id of it.

        Where the answer to the making is lost, it is looked for under its name before anything is
        made again.
        """
        with self._told():
            try:
                sent = await self._client.files.create(
                    file=(f"{name}.jsonl", content), purpose="batch", timeout=600.0
                )
                return await self._create_once(name, sent.id, longest_wait)
            except openai.NotFoundError as error:
                raise ProviderError(
                    f"the server at {self._client.base_url} has no Batch API: start the run "
                    "without --batch"
                ) from error

    async def _create_once(self, name: str, file_id: str, longest_wait: float) -> str:
        once = self._wire.client.with_options(max_retries=0)
        for attempt in range(MAX_ATTEMPTS):
            try:
                made = await once.batches.create(
                    input_file_id=file_id,
                    endpoint="/v1/chat/completions",
                    completion_window="24h",
                    metadata={"inf_batch": name},
                )
                return made.id
            except (
                openai.APIConnectionError,
                openai.InternalServerError,
                openai.RateLimitError,
            ):
                if attempt == MAX_ATTEMPTS - 1:
                    raise
                await asyncio.sleep(min(longest_wait, 2.0**attempt))
                found = await self.find(name)
                if found is not None:
                    return found
        raise AssertionError("unreachable")

    async def find(self, name: str) -> str | None:
        """The server's id of a batch of ours, by the name that went with it."""
        with self._told():
            async for remote in self._client.batches.list(limit=100):
                if (remote.metadata or {}).get("inf_batch") == name:
                    return remote.id
        return None

    async def show(self, remote_id: str) -> RemoteBatch:
        """How a batch stands."""
        with self._told():
            remote = await self._client.batches.retrieve(remote_id)
        errors = (remote.errors and remote.errors.data) or []
        files = (remote.output_file_id, remote.error_file_id)
        return RemoteBatch(
            id=remote.id,
            status=remote.status,
            seconds=float((remote.completed_at or remote.created_at) - remote.created_at),
            file_ids=tuple(file_id for file_id in files if file_id),
            errors=tuple((error.code or "", error.message or "") for error in errors),
        )

    async def lines(self, file_id: str) -> AsyncIterator[bytes]:
        """A file of the server's, a line at a time; a text may hold any other line break."""
        rest = b""
        with self._told():
            async with self._client.files.with_streaming_response.content(file_id) as response:
                async for part in response.iter_bytes():
                    *lines, rest = (rest + part).split(b"\n")
                    for line in lines:
                        if line.strip():
                            yield line
        if rest.strip():
            yield rest

    async def cancel(self, remote_id: str) -> None:
        """Take a batch back; one that is over already stays as it is."""
        try:
            await self._client.batches.cancel(remote_id)
        except openai.APIError as error:
            log.warning("batch %s could not be cancelled: %s", remote_id, error)

    def raise_for(self, line: AnswerLine, request: Request) -> None:
        """Raise what asking again cannot mend, as for a call of its own; return for the rest."""
        words = str(line.error.get("message") or line.error or "no reason given")
        http = httpx2.Response(line.status or 500, request=httpx2.Request("POST", self.url))
        if line.status == 429 and line.error.get("code") == "insufficient_quota":
            raise ProviderError(f"the quota is spent: {words}; add credit, then resume")
        kinds: dict[int, type[openai.APIStatusError]] = {
            400: openai.BadRequestError,
            401: openai.AuthenticationError,
            403: openai.PermissionDeniedError,
            404: openai.NotFoundError,
            422: openai.UnprocessableEntityError,
        }
        kind = kinds.get(line.status)
        if kind is None:
            return
        error = kind(words, response=http, body=line.error)
        form = self._wire.form.get(request.model, 0)
        asked_json = request.parameters.get("output") == "json"
        if _is_about_form(error) and asked_json and form < len(FORMS) - 1:
            self._wire.form[request.model] = form + 1
            return
        _raise_if_final(error, request, str(self._client.base_url))

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except openai.AuthenticationError as error:
            raise _wrong_key(error) from error
        except openai.APIError as error:
            raise ProviderError(
                f"the server at {self._client.base_url}: {type(error).__name__}: {error}; see to "
                "it, then resume the run: what is in batches is not lost"
            ) from error
