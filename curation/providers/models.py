"""Which models a server has, and whether the one that answers is still the same."""

import re
from collections.abc import Sequence
from typing import Any

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
    for model in models:
        if known and model not in known:
            shown = ", ".join(sorted(known)[:12]) + (", …" if len(known) > 12 else "")
            raise ProviderError(
                f"the server has no model {model!r}",
                "choose another with `set=STAGE.model=NAME`, or `set=model=NAME` for all; it has "
                f"{shown}",
                code="model_unknown_to_server",
            )


def check_reported_model(endpoint: Endpoint, model: str, completion: Any) -> None:
    """Raise ProviderError where an endpoint answers as another model than before.

    A local server may come back with other weights and answer to any name. Versions of the
    requested model ("NAME-2025-08-07", "azure/NAME") may change: vendors and gateways mix them.
    """
    reported = completion.get("model") if isinstance(completion, dict) else None
    if not isinstance(reported, str) or not reported:
        return
    before = endpoint.reported.setdefault(model, reported)
    if before == reported:
        return
    wanted, first, now = map(_plain_name, (model, before, reported))
    if first == now or (wanted in first and wanted in now):
        return
    raise ProviderError(
        f"{endpoint.url} answered {model!r} as {before!r} and now as {reported!r}",
        "load the first model again and resume the run, or start a new run with `fresh=`; where a "
        "router chooses among models, name one of them with `set=model=NAME`",
        code="served_model_changed",
    )


def _plain_name(model: str) -> str:
    """A model's name without who serves it and how: "azure/Name:free", "name@2025"."""
    return re.split("[:@]", model.lower().rpartition("/")[2])[0]
