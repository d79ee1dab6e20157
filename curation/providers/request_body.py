"""The body of a chat completion request, in the forms that servers accept, and its size. Pure."""

from typing import Any, Final

from curation.providers.provider import Request
from curation.recipe.prompt import messages
from curation.recipe.structured import json_hint, response_format

# a server that refuses one form of a structured answer is sent the next
FORMS: Final = ("json_schema", "json_object", "text")
MESSAGE_TOKENS: Final = 32  # what every message adds to a prompt, rather too many than too few
GUESSED_OUTPUT_TOKENS: Final = 4096  # without a limit in the recipe


def build_body(request: Request, *, form: int, limit_name: str) -> dict[str, Any]:
    """The body to send; `form` is a step of FORMS, `limit_name` the server's name of the limit."""
    parameters = dict(request.parameters)
    wants_json = parameters.pop("output", "text") == "json"
    step = FORMS[form]
    sent = messages(request.prompt, request.inputs)
    if wants_json and step == "json_schema":
        parameters["response_format"] = response_format(
            request.task, request.gives, request.question, request.texts
        )
    elif wants_json and step == "json_object":
        parameters["response_format"] = {"type": "json_object"}
        sent[-1] = sent[-1] | {
            "content": sent[-1]["content"]
            + json_hint(request.task, request.gives, request.question, request.texts)
        }
    limit = parameters.pop("max_output_tokens", None)
    if limit is not None:
        parameters[limit_name] = limit
    extra = parameters.pop("extra_body", {})
    return {"model": request.model, "messages": sent, **parameters, **extra}


def max_input_tokens(request: Request) -> int:
    """An upper bound of a prompt's tokens: every byte is one, and every message adds some."""
    return sum(
        len(message["content"].encode()) + MESSAGE_TOKENS
        for message in messages(request.prompt, request.inputs)
    )


def max_output_tokens(request: Request) -> int:
    """The limit of the answer's tokens, or a guess where the recipe has none."""
    return request.parameters.get("max_output_tokens") or GUESSED_OUTPUT_TOKENS


def estimated_input_tokens(request: Request) -> int:
    """A prompt's tokens at four characters each, for servers that report no usage."""
    return sum(len(one["content"]) for one in messages(request.prompt, request.inputs)) // 4
