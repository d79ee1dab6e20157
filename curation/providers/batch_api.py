"""OpenAI's Batch API: files to the server, batches, files from it.

Every failure is a ProviderError; a server that is away is waited for first.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import aiohttp
import httpx2
import openai
from openai import AsyncAzureOpenAI

from curation.providers.batch_files import AnswerLine, RemoteBatch
from curation.providers.failures import (
    may_be_about_form,
    raise_if_final,
    raise_if_quota_is_spent,
    raise_if_sign_in,
    wrong_key,
)
from curation.providers.openai_server import OpenAIProvider
from curation.providers.provider import Request
from curation.providers.request_body import FORMS
from curation.recipe.completion import Page, read_body
from db.errors import ProviderError

log = logging.getLogger("inf.curate")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
MIN_SECONDS: Final = 20.0  # a server that is away is waited for without any patience, too
AWAY: Final = (
    *(openai.APIConnectionError, aiohttp.ClientError, httpx2.HTTPError),
    *(ValueError, TimeoutError, OSError),  # of a body that is a page, or cut
)


class BatchApi:
    """The Batch API of a provider's server."""

    def __init__(self, wire: OpenAIProvider) -> None:
        self._wire = wire
        if len(wire.endpoints.all) > 1:
            raise ProviderError(
                "batch mode uses one endpoint",
                "name one in OPENAI_BASE_URL",
                code="batch_needs_one_endpoint",
            )
        self._endpoint = wire.endpoints.all[0]
        self._client = self._endpoint.client

    def body(self, request: Request) -> dict[str, Any]:
        """The body of a request, in the form that the model's server takes."""
        form = self._endpoint.form.get(request.model, 0)
        return self._wire.body(request, self._endpoint, form)

    @property
    def url(self) -> str:
        """The address that each line of a file names."""
        azure = isinstance(self._client, AsyncAzureOpenAI)
        return "/chat/completions" if azure else "/v1/chat/completions"

    async def create(
        self, name: str, content: bytes, is_to_send: Callable[[], Awaitable[bool]]
    ) -> str | None:
        """Send a file and create its batch; the server's id of it.

        Where a response is lost, the file and the batch are searched by name before a second one
        is sent. None where the batch is not to be sent any more: meanwhile it was taken for lost.
        """
        try:
            file_id = await self._patiently(self._once(self._find_file, self._send, name, content))
            create = partial(self._create, is_to_send)
            return await self._patiently(self._once(self._find, create, name, file_id))
        except ProviderError as error:
            if not isinstance(error.__cause__, openai.NotFoundError):
                raise
            raise ProviderError(
                f"the server at {self._client.base_url} has no Batch API",
                "start the run without `batch=`",
                code="server_without_batch_api",
            ) from error

    def _once(
        self,
        find: Callable[[str, T], Awaitable[str | None]],
        make: Callable[[str, T], Awaitable[str | None]],
        name: str,
        given: T,
    ) -> Callable[[], Awaitable[str | None]]:
        """Makes what is to exist once: an attempt after a failed one looks for it first."""
        attempts = 0

        async def attempt() -> str | None:
            nonlocal attempts
            attempts += 1
            found = await find(name, given) if attempts > 1 else None
            return found or await make(name, given)

        return attempt

    async def _send(self, name: str, content: bytes) -> str:
        file = (f"{name}.jsonl", content)
        return _read(await self._client.files.create(file=file, purpose="batch")).id

    async def _find_file(self, name: str, content: bytes) -> str | None:
        wanted = (f"{name}.jsonl", len(content))
        try:
            files = self._listed("/files", {"purpose": "batch"})
            return await anext((f["id"] async for f in files if _file(f) == wanted), None)
        except openai.NotFoundError:  # a file that is there twice costs nothing
            return None

    async def _create(
        self, is_to_send: Callable[[], Awaitable[bool]], name: str, file_id: str | None
    ) -> str | None:
        if file_id is None or not await is_to_send():
            return None
        created = await self._client.batches.create(
            input_file_id=file_id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={"inf_batch": name},
        )
        return _read(created).id

    async def find(self, name: str) -> str | None:
        """The server's id of a batch of ours, by the name in its metadata."""
        return await self._patiently(partial(self._find, name))

    async def _find(self, name: str, _file_id: object = None) -> str | None:
        listed = self._listed("/batches", {"limit": 100})
        return await anext((b["id"] async for b in listed if _name(b) == name), None)

    async def _listed(self, path: str, params: Mapping[str, object]) -> AsyncIterator[Any]:
        """What a list holds, all its pages. The SDK's own cannot take a proxy's page for them."""
        options: Any = {"params": params}
        while True:
            response = await self._client.get(path, cast_to=httpx2.Response, options=options)
            found = read_body(response.content)
            for each in found["data"]:
                yield each
            if not found.get("has_more"):
                return
            options = {"params": {**params, "after": found["last_id"]}}

    async def show(self, remote_id: str) -> RemoteBatch:
        """The status of a batch."""

        async def retrieve() -> openai.types.Batch:
            return _read(await self._client.batches.retrieve(remote_id))

        remote = await self._patiently(retrieve)
        errors = (remote.errors and remote.errors.data) or []
        files = (remote.output_file_id, remote.error_file_id)
        return RemoteBatch(
            id=remote.id,
            status=remote.status,
            seconds=float((remote.completed_at or remote.created_at) - remote.created_at),
            file_ids=tuple(file_id for file_id in files if file_id),
            errors=tuple((error.code or "", error.message or "") for error in errors),
        )

    async def take_lines(self, file_id: str, take: Callable[[bytes], None]) -> None:
        """Pass on each line of a file on the server, once: after a cut, those that did not come.

        A text may hold any line break but \\n.
        """
        taken = 0

        async def read() -> None:
            nonlocal taken
            number, rest = 0, b""
            async with self._client.files.with_streaming_response.content(file_id) as response:
                if "html" in response.headers.get("content-type", ""):
                    raise Page((await response.read()).decode(errors="replace"))
                async for part in response.iter_bytes():
                    *lines, rest = (rest + part).split(b"\n")
                    for line in lines:
                        number += 1
                        if number > taken:
                            taken = number
                            _take_line(line, take)
            _take_line(rest, take)

        await self._patiently(read)

    async def cancel(self, remote_id: str) -> None:
        """Cancel a batch; one that has ended stays as it is."""
        try:
            await self._client.batches.cancel(remote_id)
        except openai.APIError as error:
            log.warning("batch %s could not be cancelled: %s", remote_id, error)

    def raise_for(self, line: AnswerLine, request: Request) -> None:
        """Raise what another attempt cannot fix, as for a single call; return for the rest."""
        message = str(line.error.get("message") or line.error or "no reason given")
        http = httpx2.Response(line.status or 500, request=httpx2.Request("POST", self.url))
        if line.status == 429 and line.error.get("code") == "insufficient_quota":
            raise ProviderError(
                f"the quota is spent: {message}", "add credit, then resume", code="quota_spent"
            )
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
        error = kind(message, response=http, body=line.error)
        form = self._endpoint.form.get(request.model, 0)
        wants_json = request.parameters.get("output") == "json"
        if may_be_about_form(error) and wants_json and form < len(FORMS) - 1:
            self._endpoint.form[request.model] = form + 1
            return
        raise_if_final(error, request, str(self._client.base_url))

    async def _patiently(self, work: Callable[[], Awaitable[R]]) -> R:
        """The result of the work; a server that is away is waited for, as by single calls."""
        server = str(self._client.base_url)
        try:
            return await self._wire.patiently(work, partial(_is_away, server), MIN_SECONDS)
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise wrong_key(error) from error
        except (*AWAY, openai.APIError) as error:
            raise ProviderError(
                f"the server at {server}: {type(error).__name__}: {error}",
                "check it, then resume the run: what is in batches is not lost",
                code="batch_server_failed",
            ) from error


def _is_away(server: str, error: Exception) -> bool:
    """Whether a failure means that the server is away or too busy. Raises ProviderError for what
    no waiting mends."""
    if isinstance(error, openai.APIStatusError):
        raise_if_quota_is_spent(error)
        return error.status_code in (408, 409, 429) or error.status_code >= 500
    raise_if_sign_in(error, server)
    return isinstance(error, AWAY)


def _read(answer: S) -> S:
    """An answer of the SDK, which returns the text of what is no JSON. Raises Page for a page."""
    if isinstance(answer, str):
        raise Page(answer)
    return answer


def _name(batch: Any) -> object:
    return (batch.get("metadata") or {}).get("inf_batch")


def _file(file: Any) -> tuple[object, object]:
    return file.get("filename"), file.get("bytes")


def _take_line(line: bytes, take: Callable[[bytes], None]) -> None:
    if line.strip():
        take(line)
