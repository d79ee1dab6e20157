"""The protocol of a provider of answers: a language-model server, or the offline rules.

A call is identified by its content: task, prompt, provider, model, parameters, inputs and sample
number. What is sent to a provider is the same whatever the group, the run or the worker.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from curation.recipe.prompt import Inputs, Prompt, escapes
from curation.recipe.tasks import Gives, Task
from db.corpus.datasets import text_sha256
from db.errors import ProviderError
from db.question import Question
from db.run.workers import Trouble
from db.shape import GroupText
from db.tables import utc_now

LONG_TEXT = 160
OF_ANOTHER = "another model"  # why an answer is kept aside that `takes_other` takes
MAX_ROW_ATTEMPTS = 24  # of a request that fails again and again, over all resumes of the run


@dataclass(frozen=True)
class Request:
    """A call to make.

    `scope`: what limits whose answers it takes: the server group, the seed, a fresh run. Calls
    before servers were recorded have none; they are looked up by `older_key`. `gives`: what the
    answer is labelled with. `question`: a check's.
    `texts`: those of a group that a step gives; `pair`: its query and passage, for rules.
    `takes_other`: also the answer that was refused as another model's.
    """

    task: Task
    provider: str
    model: str
    parameters: Mapping[str, Any]
    prompt: Prompt
    inputs: Inputs
    sample: int = 0
    failed_attempts: int = 0  # of its group, in earlier lives of the run; no part of the key
    scope: Mapping[str, Any] = field(default_factory=dict)
    # no part of the key: the task and its prompt determine them
    gives: Gives = field(kw_only=True)
    question: Question | None = None
    texts: tuple[GroupText, ...] = ()
    pair: tuple[str, str] = ("", "")
    takes_other: bool = False

    @cached_property
    def key(self) -> str:
        """The content key under which the answer is journaled."""
        return self._key(self.scope)

    @cached_property
    def older_key(self) -> str | None:
        """The key of the answer before servers were recorded; None where it may not be used."""
        return self._key({}) if set(self.scope) == {"server_group"} else None

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys to look for, the call's own first."""
        other = self.aside(OF_ANOTHER).key if self.takes_other else None
        return tuple(key for key in (self.key, self.older_key, other) if key is not None)

    def aside(self, why: str) -> "Request":
        """The request under whose key an answer is kept that this one does not take."""
        return replace(self, scope={**self.scope, "aside": why})

    def _key(self, scope: Mapping[str, Any]) -> str:
        content = self._content
        if scope:  # the list's last entry
            content = (
                f"{content[:-1]}, {json.dumps(dict(scope), sort_keys=True, ensure_ascii=False)}]"
            )
        return text_sha256(content)

    @cached_property
    def _content(self) -> str:
        """What the keys are of but for the scope, as JSON; once for both of them."""
        content: list[Any] = [
            self.task,
            self.prompt.sha256,
            self.provider,
            self.model,
            self.parameters,
            self.inputs,
            self.sample,
        ]
        if escapes(self.prompt, self.inputs):
            content.append("escaped")
        return json.dumps(content, sort_keys=True, ensure_ascii=False)

    def journal(self) -> dict[str, Any]:
        """The request as the journal keeps it: long texts by their sha256, which `passage` has."""
        return {
            "parameters": dict(self.parameters),
            "sample": self.sample,
            "inputs": {
                name: [_short(one) for one in value] if isinstance(value, list) else _short(value)
                for name, value in self.inputs.items()
            },
        }


@dataclass(frozen=True)
class Answer:
    """The raw answer and its cost. `model`: the name under which the server's model answered."""

    text: str
    finish_reason: str = "stop"
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    attempts: int = 1
    latency_seconds: float = 0.0
    model: str = ""


def call_row(request: Request, answer: Answer) -> dict[str, Any]:
    """What the journal keeps of an answered request, as `db.run.calls.add_calls` takes it."""
    return {
        "key": request.key,
        "task": request.task,
        "provider": request.provider,
        "model": request.model,
        "server_group": request.scope.get("server_group"),
        "prompt_sha256": request.prompt.sha256,
        "request": request.journal()
        | ({"answered_as": answer.model} if answer.model not in ("", request.model) else {}),
        "answer": answer.text,
        "finish_reason": answer.finish_reason,
        "input_tokens": answer.input_tokens,
        "output_tokens": answer.output_tokens,
        "reasoning_tokens": answer.reasoning_tokens,
        "cost_usd": answer.cost_usd,
        "attempts": answer.attempts,
        "latency_seconds": answer.latency_seconds,
        "created_at": utc_now(),
    }


class RowFailed(Exception):
    """This call alone cannot be answered; `reason` is the drop reason of its group."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        super().__init__(detail)


class ServerFailed(ProviderError):
    """The server answers nothing, after `attempts` of this request; the run stops.

    `last_error` is the server's message.
    """

    def __init__(
        self, message: str, remedy: str, *, attempts: int, last_error: str, code: str
    ) -> None:
        self.attempts, self.last_error = attempts, last_error
        super().__init__(message, remedy, code=code)


class TryLater(Exception):
    """An attempt failed, and another one in `seconds` may not; the caller's place is free."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"another attempt in {seconds:.1f} s")


class Stopped(Exception):
    """No further call is made: the budget is used up, or a stop was requested."""


@dataclass(frozen=True)
class ProviderState:
    """The provider's state for display: calls in flight, the width it allows, failures."""

    in_flight: int = 0
    width: float = 0.0
    failures: int = 0
    throttled: int = 0
    trouble: Trouble = field(default_factory=Trouble)
    errors: dict[str, int] = field(default_factory=dict)  # failed attempts by kind
    unanswered_usd: float = 0.0  # the cost so far of probes, and of answers lost on their way
    lent: int = 0  # places beside those of calls that hang


@runtime_checkable
class Keeps(Protocol):
    """A provider that gets answers which are paid for and not used; `keep` stores them."""

    keep: Callable[[Request, Answer], object]


class Provider(Protocol):
    """Answers requests. Raises RowFailed for one row, db.errors.ProviderError to stop the run, and
    TryLater where another attempt may help later."""

    name: str
    offline: bool
    groups_per_call: int  # groups in work for each call that may be in flight
    budget_seconds: float  # maximum interval between checks whether the budget has room again

    def parameters(self) -> dict[str, Any]:
        """What decides its answers besides the recipe; part of every content key."""
        ...

    async def check_models(self, models: Sequence[str]) -> None:
        """Raise ProviderError where the provider does not have one of these models."""
        ...

    def stop(self) -> None:
        """Send nothing further: waiting calls raise Stopped, those in flight end."""
        ...

    def set_limits(self, calls: int, part: float) -> None:
        """How many calls may be in flight from now on, and its part of the limits per minute."""
        ...

    async def answer(self, request: Request) -> Answer:
        """The answer to one request."""
        ...

    def state(self) -> ProviderState:
        """Its present state."""
        ...

    def max_usd(self, request: Request) -> float:
        """The maximum cost of a request; reserved from the budget before it is sent."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


def _short(text: str) -> str | dict[str, str]:
    return text if len(text) <= LONG_TEXT else {"sha256": text_sha256(text)}
