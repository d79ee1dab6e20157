"""The endpoints of a run: where its requests go, balanced by open requests.

An endpoint that fails is left out and tried again later, by one request at a time; the others take
its requests meanwhile. A run with one endpoint waits for that one.
"""

import asyncio
import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import openai
from openai import AsyncAzureOpenAI, AsyncOpenAI

from curation.providers.failures import WIRE_ERRORS, error_code

log = logging.getLogger("inf.curate")
LEFT_OUT_SECONDS: Final = 5.0  # after the first failure; doubled with each further one
MAX_LEFT_OUT_SECONDS: Final = 60.0


@dataclass(eq=False)
class Endpoint:
    """A server at one address.

    `own_server`: not the vendor's. `form`: by model, how many steps of FORMS it has refused.
    `limit_name`: by model, the name of the limit of output tokens that it wants.
    `reported`: by model, the names under which it answers, in order. `failures`: since its last
    answer. `first`: by model, set once its first attempt has ended. `has_one`: its list has one
    model.
    `newest_start`: of the requests it answered, when the newest was sent.
    """

    url: str
    client: AsyncOpenAI
    own_server: bool
    form: dict[str, int] = field(default_factory=dict)
    limit_name: dict[str, str] = field(default_factory=dict)
    reported: dict[str, dict[str, None]] = field(default_factory=dict)
    first: dict[str, asyncio.Event] = field(default_factory=dict)
    has_one: bool = False
    open_requests: int = 0
    answers: int = 0
    failures: int = 0
    not_before: float = 0.0
    newest_start: float = 0.0

    def __post_init__(self) -> None:
        # built once; Azure's SDK adds the deployment to a relative path
        is_azure = isinstance(self.client, AsyncAzureOpenAI)
        self.path = "/chat/completions" if is_azure else f"{self.client.base_url}chat/completions"


class Endpoints:
    """Chooses the endpoint of each request."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self.all = list(endpoints)

    def urls(self) -> str:
        """The addresses, for messages."""
        return ", ".join(each.url for each in self.all)

    def choose(self, passed: Collection[str] = ()) -> Endpoint:
        """The endpoint for a request: one that is due for a trial, else the least busy one.

        Where all are left out, the one that is due first. passed: addresses that passed this
        request on; it tries none of them while another one is ready.
        """
        if len(self.all) == 1:
            return self.all[0]
        now = time.monotonic()
        ready = [each for each in self.all if each.not_before <= now]
        if not ready:
            return min(self.all, key=lambda each: each.not_before)
        ready = [each for each in ready if each.url not in passed] or ready
        for each in ready:
            if each.not_before:  # it was left out: one request tries it
                each.not_before = now + _delay(each.failures)
                return each
        return min(ready, key=lambda each: (each.open_requests, each.answers))

    def answered(self, endpoint: Endpoint) -> None:
        """Record an answer: the endpoint takes its share again."""
        if endpoint.not_before:
            log.info("the endpoint %s answers again", endpoint.url)
        endpoint.answers += 1
        endpoint.failures, endpoint.not_before = 0, 0.0

    def pass_on(self, endpoint: Endpoint, error: Exception, retry_after: float | None) -> bool:
        """Record a failure; whether another endpoint takes the request now.

        A first server error may be the request's own: the endpoint is left out after the second
        without an answer in between.
        """
        if len(self.all) == 1 or not _is_of_endpoint(error):
            return False
        endpoint.failures += 1
        if endpoint.failures > 1 or not _may_be_of_request(error):
            seconds = retry_after or _delay(endpoint.failures)
            endpoint.not_before = time.monotonic() + seconds
            log.warning(
                "the endpoint %s is left out for %.0f s (%s: %s)",
                *(endpoint.url, seconds, type(error).__name__, error),
            )
        now = time.monotonic()
        return any(each.not_before <= now for each in self.all if each is not endpoint)


def _delay(failures: int) -> float:
    return min(MAX_LEFT_OUT_SECONDS, LEFT_OUT_SECONDS * 2.0 ** max(0, min(failures, 10) - 1))


def _is_of_endpoint(error: Exception) -> bool:
    """Whether another endpoint may answer what this one did not."""
    if isinstance(error, openai.APIStatusError):
        return (
            error.status_code in (401, 402, 403, 404, 408, 409, 429)
            or error.status_code >= 500
            or error_code(error) == "insufficient_quota"
        )
    return isinstance(error, WIRE_ERRORS)


def _may_be_of_request(error: Exception) -> bool:
    is_server_error = isinstance(error, openai.APIStatusError) and error.status_code >= 500
    return is_server_error or isinstance(error, ValueError | openai.APIResponseValidationError)
