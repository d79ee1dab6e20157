"""Which models a server has, and whether the one that answers is still the same."""

import re
from collections.abc import Sequence
from typing import Final

import openai
from openai import AsyncAzureOpenAI

from curation.providers.endpoints import Endpoint
from curation.providers.failures import wrong_key
from db.errors import ProviderError

LIST_SECONDS = 20.0


async def check_models(endpoint: Endpoint, models: Sequence[str]) -> None:
    """Raise ProviderError for a model that is not in the server's list, or a refused key.

    A server without such a list has them all. Raises APIConnectionError where it does not respond.
    """
    if isinstance(endpoint.client, AsyncAzureOpenAI):
        return  # a deployment's name is the user's own
    try:
        known = [model.id async for model in endpoint.client.models.list(timeout=LIST_SECONDS)]
    except openai.AuthenticationError as error:
        raise wrong_key(error) from error
    except openai.APIConnectionError:
        raise
    except (openai.APIError, ValueError, TypeError, AttributeError):
        return
    endpoint.has_one = len(known) == 1
    for model in models:
        if known and model not in known:
            shown = ", ".join(sorted(known)[:12]) + (", …" if len(known) > 12 else "")
            raise ProviderError(
                f"the server has no model {model!r}",
                "choose another with `set=STAGE.model=NAME`, or `set=model=NAME` for all; it has "
                f"{shown}",
                code="model_unknown_to_server",
            )


def refused_model(
    endpoint: Endpoint, model: str, reported: str, answers_as: str
) -> ProviderError | None:
    """The error that stops a run whose endpoint answers as another model; None where it may.

    A local server may come back with other weights and answer to any name, a gateway may take
    another model's place. Versions of the requested one may change: vendors mix them. `answers_as`
    is a recipe's: by its `own` name, by `one` other, the first, or by `any`. A deployment of
    Azure is named by its user, and a server with one model in its list has no other to take its
    place: both may answer by one other.
    """
    names = endpoint.reported.setdefault(model, {})
    first = next(iter(names), "")
    is_alias = answers_as == "one" or endpoint.has_one
    is_alias = is_alias or isinstance(endpoint.client, AsyncAzureOpenAI)
    may_differ = answers_as == "any" or (is_alias and not first)
    is_known = reported in names or any(is_own_name(one, reported) for one in (model, first))
    if not reported or may_differ or is_known:
        if reported:
            names[reported] = None
        return None
    again = f"load {first or model} again and resume the run"
    return ProviderError(
        f"{endpoint.url} answered {model!r} as {reported!r}" + (f" after {first!r}" * bool(first)),
        f"{again}, or start one with `set=model={reported}`, which pays for all answers; or with "
        "`set=answers_as=one` where that is the name behind an alias, with `set=answers_as=any` "
        "where a router chooses among models: these reuse what is answered",
        code="served_model_changed",
    )


_PROVIDER: Final = re.compile(r"^(?:[a-z-]+\.)+(?=[a-z])")  # us.anthropic.NAME
_FILE: Final = re.compile(r"\.(gguf|ggml|bin|safetensors)$")
_VERSION: Final = re.compile(  # a date, a snapshot, a version, how its weights are stored
    r"[-_.]((20)?\d\d-?\d\d(-?\d\d)?|\d{3}|\d\d-\d\d|v\d+|latest|preview|exp"
    r"|fp\d+|bf16|f16|int\d|awq|gptq|gguf|i?q\d(_\w+)?)$"
)


_ALIAS: Final = re.compile(r"-(0|latest|default)$")  # of any version of its family
_SIZE: Final = re.compile(r"e?\d+(\.\d+)?(x\d+)?[bmk]\b")  # Ollama's tags: NAME:0.5b
_NUMBER: Final = re.compile(r"-\d+(\.\d+)*(?=-|$)")


def is_own_name(model: str, reported: str) -> bool:
    """Whether a reported name is that of a model, but for who serves it and how, and for a version
    where the model's name has none. `FAMILY-latest` without a number may be of any number."""
    (wanted, version, tag), (name, its_version, its_tag) = _parts(model), _parts(reported)
    if model.endswith("-latest") and not any(each.isdigit() for each in wanted):
        name = _NUMBER.sub("", name)
    fits = version in its_version or not its_version
    return wanted == name and fits and (tag == its_tag or not (tag and its_tag))


def _parts(model: str) -> tuple[str, str, str]:
    """A model's name without its provider ("azure/Name:free") and version, the version, and its
    tag. A tag that is a size belongs to the name."""
    name, _, tag = re.split(r"[/\\]", model.lower())[-1].replace("@", "-").partition(":")
    if _SIZE.match(tag):
        name, tag = f"{name}-{tag}", ""
    whole = name = _PROVIDER.sub("", _FILE.sub("", name))
    while (shorter := _VERSION.sub("", _ALIAS.sub("", name))) != name:
        name = shorter
    return name, _ALIAS.sub("", whole).removeprefix(name), "" if tag == "latest" else tag
