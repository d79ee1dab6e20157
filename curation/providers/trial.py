"""A trial of a server: its models, the time of one call, and what it supports.

Three small calls are paid for. What a server does not show stays None, "unknown".
"""

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any, Final

import openai
from openai import AsyncAzureOpenAI

from curation.providers.client import make_endpoints
from curation.providers.endpoints import Endpoint
from curation.providers.failures import (
    LIMIT_NAMES,
    WIRE_ERRORS,
    raise_if_quota_is_spent,
    raise_if_sign_in,
    refuses_limit_name,
    wrong_key,
)
from curation.providers.models import LIST_SECONDS
from curation.providers.trouble import describe
from curation.recipe.completion import Completion, read_body, read_completion
from curation.servers.connection import Server
from db.errors import BadInput, ProviderError

CALL_SECONDS: Final = 60.0  # a local server may load the model first
TOKENS: Final = 200  # enough for a short thought and a few words
MAX_MODELS: Final = 500
PROMPT: Final = "Reply with OK."
SCHEMA: Final = {
    "type": "json_schema",
    "json_schema": {
        "name": "reply",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"reply": {"type": "string"}},
            "required": ["reply"],
            "additionalProperties": False,
        },
    },
}


@dataclass(frozen=True)
class Trial:
    """What a server answered. `answered_as`: the name under which its model answered.

    `schema`: it keeps to a JSON schema; `reasoning`: its model thinks before it answers; `batch`:
    it has a Batch API. None: unknown.
    """

    models: tuple[str, ...]
    model: str
    answered_as: str
    seconds: float
    schema: bool | None
    reasoning: bool | None
    batch: bool | None


def try_server(server: Server, model: str = "") -> Trial:
    """Try a server with a model of its list, by default the first one.

    Raises ProviderError where it cannot be used, BadInput for a model that it lacks.
    """
    return asyncio.run(_try(server, model))


async def _try(server: Server, model: str) -> Trial:
    (endpoint, *_) = make_endpoints(server)
    try:
        models = await _models(endpoint)
        if not models:
            await _raise_without_v1(endpoint)
        model = model or next(iter(models), "")
        if not model or (models and model not in models):
            listed = f"it has {', '.join(models[:12])}" if models else "name a model of it"
            raise BadInput(
                f"the server has no model {model!r}" if model else "the server lists no models",
                listed,
                code="model_unknown_to_server",
            )
        began = time.monotonic()
        body, first = await _answer(endpoint, model)
        seconds = time.monotonic() - began
        schema, formed = await _supported(endpoint, model, response_format=SCHEMA)
        effort, thought = await _supported(endpoint, model, reasoning_effort="low")
        thinks = any(_thinks(each) for each in (first, formed, thought))
        return Trial(
            models=models,
            model=model,
            answered_as=str(body.get("model") or model),
            seconds=seconds,
            schema=_is_of_schema(formed) if schema else schema,
            reasoning=thinks or (False if effort is False else None),
            batch=await _has_batches(endpoint),
        )
    finally:
        await endpoint.client.close()


async def _models(endpoint: Endpoint) -> tuple[str, ...]:
    if isinstance(endpoint.client, AsyncAzureOpenAI):
        return ()  # a deployment's name is the user's own, and none of them is listed
    try:
        found = [model.id async for model in endpoint.client.models.list(timeout=LIST_SECONDS)]
    except WIRE_ERRORS as error:
        _raise_if_unusable(endpoint, error)
        return ()
    except (TypeError, AttributeError):  # a body that is no list
        return ()
    return tuple(sorted(str(name) for name in found)[:MAX_MODELS])


async def _raise_without_v1(endpoint: Endpoint) -> None:
    """Raise where the models are listed one level below the address, or a key is wanted for that.

    Another server may list nothing, or stand at another path: its address is not to blame.
    """
    if isinstance(endpoint.client, AsyncAzureOpenAI) or endpoint.url.rstrip("/").endswith("/v1"):
        return
    longer = f"{endpoint.url.rstrip('/')}/v1"
    below = endpoint.client.base_url.join("v1/")  # the client's ends with a slash
    client = endpoint.client.with_options(base_url=below)
    try:
        is_there = bool([model.id async for model in client.models.list(timeout=LIST_SECONDS)])
    except openai.AuthenticationError:
        is_there = True
    except (*WIRE_ERRORS, TypeError, AttributeError):
        is_there = False
    if not is_there:
        return
    raise ProviderError(
        f"no models are listed at {endpoint.url}; its models are listed at {longer}",
        f"give {longer}",
        code="server_address_without_v1",
    )


async def _answer(endpoint: Endpoint, model: str, **more: Any) -> tuple[dict[str, Any], Completion]:
    """A completion of one small call. Raises ProviderError without one."""
    limit = "max_tokens" if endpoint.own_server else "max_completion_tokens"
    for name in (limit, *(each for each in LIMIT_NAMES if each != limit)):
        body = {"model": model, "messages": [{"role": "user", "content": PROMPT}], name: TOKENS}
        try:
            async with asyncio.timeout(CALL_SECONDS):
                sent = await endpoint.client.post(
                    endpoint.path,
                    cast_to=object,
                    body=body | more,
                    options={"timeout": CALL_SECONDS},
                )
            found: Any = read_body(sent.encode()) if isinstance(sent, str) else sent
            return found, read_completion(found)
        except WIRE_ERRORS as error:
            if refuses_limit_name(error) and name == limit:
                continue
            _raise_if_unusable(endpoint, error)
            raise ProviderError(
                f"{endpoint.url} does not answer as {model!r} ({describe(error)})",
                "choose another model of the server, or look into its log",
                code="server_refuses_call",
            ) from error
    raise AssertionError("unreachable")


async def _supported(
    endpoint: Endpoint, model: str, **more: Any
) -> tuple[bool | None, Completion | None]:
    """Whether a call with these parameters is answered, and the answer; None: unknown."""
    try:
        return True, (await _answer(endpoint, model, **more))[1]
    except ProviderError as error:
        refused = openai.BadRequestError | openai.UnprocessableEntityError
        return (False if isinstance(error.__cause__, refused) else None), None


async def _has_batches(endpoint: Endpoint) -> bool | None:
    try:
        async for _ in endpoint.client.batches.list(limit=1, timeout=LIST_SECONDS):
            break
    except (openai.NotFoundError, openai.BadRequestError):
        return False
    except openai.APIStatusError as error:
        return False if error.status_code in (405, 501) else None
    except (*WIRE_ERRORS, TypeError, AttributeError):
        return None
    return True


def _raise_if_unusable(endpoint: Endpoint, error: Exception) -> None:
    """Raise for what no call of the server can get around."""
    raise_if_sign_in(error, endpoint.url)
    if isinstance(error, openai.APIStatusError):
        raise_if_quota_is_spent(error)
        if isinstance(error, openai.AuthenticationError):
            raise wrong_key(error) from error
        if 300 <= error.status_code < 400:
            raise ProviderError(
                f"{endpoint.url} sends requests on to another address",
                "give that address, if it is the server's",
                code="server_redirects",
            ) from error
    elif isinstance(error, openai.APIConnectionError | TimeoutError | OSError):
        raise ProviderError(
            f"no server responds at {endpoint.url}",
            "start it, or correct the address",
            code="server_unreachable",
        ) from error


def _thinks(answer: Completion | None) -> bool:
    return answer is not None and (answer.reasoning_tokens > 0 or "<think>" in answer.text)


def _is_of_schema(answer: Completion | None) -> bool:
    """Whether an answer is what SCHEMA wants; a server may take the parameter and ignore it."""
    text = "" if answer is None else answer.text.rpartition("</think>")[2]
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return isinstance(found, dict) and isinstance(found.get("reply"), str)
