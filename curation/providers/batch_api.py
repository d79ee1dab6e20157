"""OpenAI's Batch API: files to the server, batches, files from it.

Every failure is a ProviderError; the SDK itself repeats what can be repeated.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx2
import openai
from openai import AsyncAzureOpenAI

from curation.providers.batch_files import AnswerLine, RemoteBatch
from curation.providers.failures import may_be_about_form, raise_if_final, wrong_key
from curation.providers.openai_server import OpenAIProvider
from curation.providers.provider import Request
from curation.providers.request_body import FORMS
from db.errors import ProviderError

log = logging.getLogger("inf.curate")
MAX_ATTEMPTS: Final = 6


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
        self._client = self._endpoint.client.with_options(max_retries=MAX_ATTEMPTS)

    def body(self, request: Request) -> dict[str, Any]:
        """The body of a request, in the form that the model's server takes."""
        form = self._endpoint.form.get(request.model, 0)
        return self._wire.body(request, self._endpoint, form)

    @property
    def url(self) -> str:
        """The address that each line of a file names."""
        azure = isinstance(self._client, AsyncAzureOpenAI)
        return "/chat/completions" if azure else "/v1/chat/completions"

    async def create(self, name: str, content: bytes, *, max_wait: float) -> str:
        """Send a file and create its batch; the server's id of it.

        Where the response is lost, the batch is searched by its name before a second one is
        created.
        """
        with self._translated_errors():
            try:
                sent = await self._client.files.create(
                    file=(f"{name}.jsonl", content), purpose="batch", timeout=600.0
                )
                return await self._create_once(name, sent.id, max_wait)
            except openai.NotFoundError as error:
                raise ProviderError(
                    f"the server at {self._client.base_url} has no Batch API",
                    "start the run without `batch=`",
                    code="server_without_batch_api",
                ) from error

    async def _create_once(self, name: str, file_id: str, max_wait: float) -> str:
        once = self._endpoint.client.with_options(max_retries=0)
        for attempt in range(MAX_ATTEMPTS):
            try:
                created = await once.batches.create(
                    input_file_id=file_id,
                    endpoint="/v1/chat/completions",
                    completion_window="24h",
                    metadata={"inf_batch": name},
                )
                return created.id
            except (
                openai.APIConnectionError,
                openai.InternalServerError,
                openai.RateLimitError,
            ):
                if attempt == MAX_ATTEMPTS - 1:
                    raise
                await asyncio.sleep(min(max_wait, 2.0**attempt))
                found = await self.find(name)
                if found is not None:
                    return found
        raise AssertionError("unreachable")

    async def find(self, name: str) -> str | None:
        """The server's id of a batch of ours, by the name in its metadata."""
        with self._translated_errors():
            async for remote in self._client.batches.list(limit=100):
                if (remote.metadata or {}).get("inf_batch") == name:
                    return remote.id
        return None

    async def show(self, remote_id: str) -> RemoteBatch:
        """The status of a batch."""
        with self._translated_errors():
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
        """The lines of a file on the server; a text may hold any line break but \n."""
        rest = b""
        with self._translated_errors():
            async with self._client.files.with_streaming_response.content(file_id) as response:
                async for part in response.iter_bytes():
                    *lines, rest = (rest + part).split(b"\n")
                    for line in lines:
                        if line.strip():
                            yield line
        if rest.strip():
            yield rest

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

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except openai.AuthenticationError as error:
            raise wrong_key(error) from error
        except openai.APIError as error:
            raise ProviderError(
                f"the server at {self._client.base_url}: {type(error).__name__}: {error}",
                "check it, then resume the run: what is in batches is not lost",
                code="batch_server_failed",
            ) from error
