"""A small call that distinguishes a server that is down from a request it cannot answer."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import openai

from curation.providers.failures import WIRE_ERRORS, is_lost
from curation.recipe.completion import Unusable
from curation.recipe.prices import Price

PROBE_TOKENS = 16  # at most of output; also what is counted where the server counts nothing
VALID_SECONDS = 2.0  # one probe serves all requests that fail at the same time


UNREADABLE = (TypeError, LookupError, AttributeError, RecursionError)  # bodies of odd shapes
FAILURES = (*WIRE_ERRORS, *UNREADABLE)  # what a probe may find
_REFUSALS = (openai.BadRequestError, openai.UnprocessableEntityError)  # it read the request
Send = Callable[[], Awaitable[tuple[int, int]]]


class Probe:
    """Probes each model at most once in VALID_SECONDS; `spent_usd` is what they cost so far, one
    whose answer was lost or cannot be read at its maximum."""

    def __init__(self) -> None:
        self.spent_usd = 0.0
        self._lock = asyncio.Lock()
        self._last: dict[str, tuple[float, float, Exception | None]] = {}

    async def failure(
        self,
        model: str,
        sends: Sequence[Send],
        price: Price | None,
        *,
        most: tuple[int, int],
        anew: bool = False,
        strict: bool = False,
        since: float = -math.inf,
    ) -> Exception | None:
        """Why the model answers none of the calls, None where it answers one, or reads and refuses
        it and `strict` is not set.

        Each call returns its tokens in and out, `most` at most. `anew`: also where one was just
        made. `since`: an answer to one that was sent before says nothing.
        """
        if anew:  # nobody waits for what hangs
            return _failure(await self._try(model, sends, price, most), strict=strict)
        async with self._lock:
            began, ended, failed = self._last.get(model, (0.0, -VALID_SECONDS, None))
            is_old = time.monotonic() - ended >= VALID_SECONDS
            if is_old or (failed is None and began < since):
                failed = await self._try(model, sends, price, most)
            return _failure(failed, strict=strict)

    async def _try(
        self, model: str, sends: Sequence[Send], price: Price | None, most: tuple[int, int]
    ) -> Exception | None:
        failed: Exception | None = None
        began = time.monotonic()
        for send in sends:
            tokens, failed = most, None
            try:
                tokens = await send()
            except _REFUSALS as error:
                tokens, failed = (0, 0), error
            except FAILURES as error:
                failed = error
                if not (isinstance(error, (*UNREADABLE, Unusable)) or is_lost(error)):
                    tokens = (0, 0)
            finally:  # also where it is cancelled
                self.spent_usd += price.usd(*tokens) if price else 0.0
            if failed is None or isinstance(failed, _REFUSALS):
                break
        self._last[model] = (began, time.monotonic(), failed)
        return failed


def _failure(failed: Exception | None, *, strict: bool) -> Exception | None:
    return None if isinstance(failed, _REFUSALS) and not strict else failed


def probe_body(model: str, limit_name: str) -> dict[str, Any]:
    """The body of a probe."""
    return {
        "model": model,
        "messages": [{"role": "user", "content": "Reply with OK."}],
        limit_name: PROBE_TOKENS,
    }
