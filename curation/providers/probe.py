"""A small call that distinguishes a server that is down from a request it cannot answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import openai

from curation.providers.failures import WIRE_ERRORS
from curation.recipe.prices import Price

PROBE_TOKENS = 16  # at most of output; also what is counted where the server counts nothing
VALID_SECONDS = 2.0  # one probe serves all requests that fail at the same time


Send = Callable[[], Awaitable[tuple[int, int]]]


class Probe:
    """Probes each model at most once in VALID_SECONDS; `spent_usd` is what they cost so far."""

    def __init__(self) -> None:
        self.spent_usd = 0.0
        self._lock = asyncio.Lock()
        self._last: dict[str, tuple[float, bool]] = {}

    async def answered(self, model: str, sends: Sequence[Send], price: Price | None) -> bool:
        """Whether the model answers any of the calls; each returns its tokens in and out."""
        async with self._lock:
            at, works = self._last.get(model, (-VALID_SECONDS, False))
            if time.monotonic() - at < VALID_SECONDS:
                return works
            works = False
            for send in sends:
                try:
                    tokens = await send()
                except (openai.BadRequestError, openai.UnprocessableEntityError):
                    works = True  # it read the request
                except (*WIRE_ERRORS, TypeError):
                    continue
                else:
                    works = True
                    self.spent_usd += price.usd(*tokens) if price else 0.0
                break
            self._last[model] = (time.monotonic(), works)
            return works


def probe_body(model: str, limit_name: str) -> dict[str, Any]:
    """The body of a probe."""
    return {
        "model": model,
        "messages": [{"role": "user", "content": "Reply with OK."}],
        limit_name: PROBE_TOKENS,
    }
