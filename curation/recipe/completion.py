"""Reading the body of a chat completion, in the variants of different servers. Pure.

What was answered is paid: it is stored whatever its shape, and understood afterwards. So nothing
here raises but for a body that is no completion at all.
"""

import base64
import html
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from curation.recipe.answers import storable

MAX_TOKENS = 2**31 - 1  # the limit of the store's integer column
Ending = Literal["complete", "cut_off", "refused", "exhausted"]
# Reasons to end as servers name them, after `how_it_ended` has made them snake case.
_ENDINGS: Final[dict[Ending, str]] = {
    "complete": "stop stopped stop_sequence stop_token stop_word stop_string stop_string_found eos "
    "eos_token eos_found end end_turn end_of_turn end_of_text endoftext im_end eot_id complete "
    "completed done finished "
    "success succeeded normal tool_calls tool_call tool_use function_call no_choice unknown_shape",
    "refused": "refusal refused content_filter content_filtered filtered safety image_safety "
    "recitation prohibited_content blocklist blocked spii language guardrail_intervened guardrail "
    "sensitive error_toxic moderation policy_violation",
    "exhausted": "insufficient_system_resource insufficient_system_resources overloaded",
}
_ENDING_OF: Final = {name: ending for ending, all_ in _ENDINGS.items() for name in all_.split()}
_EVENT = ("data:", ":", "event:", "id:", "retry:")  # what a line of a stream begins with
_SIDES = ("prompt", "completion")
_LINE_END = re.compile(r"\r\n|\n|\r")  # in a stream; a text may have U+2028 or U+0085
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_SIGN_IN = re.compile(  # a field for a password, a form that goes on to an identity provider
    r"""<input[^>]*\btype\s*=\s*["']?password\b|\bname\s*=\s*["']?SAMLRequest\b"""
    # or a page that sends the reader on to where people sign in
    r"""|(<meta[^>]*\burl\s*=|\blocation(\.\w+)?\s*(=|\())\s*["']?[^"'<>\s]*"""
    r"""(log-?in|sign-?in|\bsso\b|saml|oauth)""",
    re.IGNORECASE,
)
_SIGN_IN_TITLE = re.compile(
    r"\b(sign|log)[ -]?(in|on)\b|\bsso\b|\bsingle sign-on|\bcaptive portal|\banmeld|\bconnexion\b",
    re.IGNORECASE,
)


def how_it_ended(finish_reason: str) -> Ending:
    """Whether an answer is whole, by its server's reason to end.

    Only what is known to end a whole answer does: servers have many names for an answer that broke
    off (`error`, `abort`, `MAX_TOKENS`, `model_length`) and invent further ones. One that is
    `exhausted` had no resources left: another attempt may have.
    """
    name = _CAMEL.sub("_", finish_reason.strip().rpartition(".")[2]).lower()
    name = re.sub(r"[\s-]+", "_", name.strip("<|>"))
    name = name.removeprefix("finish_reason_").removeprefix("stop_reason_")
    return _ENDING_OF.get(name, "cut_off")


class NotACompletion(ValueError):
    """A body that no model wrote: a page of a proxy, or an error under a status of success."""


class Page(NotACompletion):
    """A page of HTML under a status of success. `title`: its own, else its beginning.

    `asks_to_sign_in`: by a field for a password, a form or a script that goes on to where people
    sign in, or its title: no waiting mends that. Any other page, such as a proxy's "We are
    restarting", also one with a link to its sign-in, is taken for an outage.
    """

    def __init__(self, text: str) -> None:
        found = _TITLE.search(text)
        self.title = " ".join(html.unescape(found[1]).split())[:100] if found else text[:200]
        in_title = found is not None and _SIGN_IN_TITLE.search(self.title) is not None
        self.asks_to_sign_in = in_title or _SIGN_IN.search(text) is not None
        super().__init__(f"the server sent a page: {self.title!r}")


class Unusable(ValueError):
    """A paid answer of which nothing can be used, and whose cost is counted."""


@dataclass(frozen=True)
class Completion:
    """The text of a completion, why it ended, and its tokens; None where the server gave none.

    `text` has the model's thinking before it, in `<think>` tags, where the server sent it apart.
    """

    text: str
    finish_reason: str
    input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int


def read_body(content: bytes, charset: Callable[[], str | None] = lambda: None) -> Any:
    """The JSON of a response, whatever its content type. Raises ValueError for what is none.

    UTF-16 and UTF-32 are recognized with and without a mark, other bytes are read in the declared
    charset, else as Windows-1252: what was written is paid for. Of a stream of server-sent events
    its parts are one completion, also where comments (`: PROCESSING`) come before a body of JSON.
    """
    text = _decoded(content, charset)
    start = text.lstrip()
    if start.startswith("<"):
        raise Page(start)
    if start.startswith(_EVENT):
        return _of_events(start)
    return json.loads(text, strict=False)  # a line break in a text breaks no answer


def _decoded(content: bytes, charset: Callable[[], str | None]) -> str:
    """The text of a body; the charset is read from its header where it is needed alone."""
    for name in (json.detect_encoding(content), "utf-8-sig", None, "cp1252"):
        try:
            return content.decode(name or charset() or "cp1252").removeprefix("\ufeff")
        except (UnicodeError, LookupError):
            continue
    return content.decode("latin-1")


def usage_of(content: bytes) -> tuple[int, int] | None:
    """The tokens in and out that a body reports which is no completion as a whole."""
    text = _decoded(content, lambda: None)
    found = [re.search(rf'"{name}_tokens"\s*:\s*(\d{{1,9}})', text) for name in _SIDES]
    first, second = (None if one is None else int(one[1]) for one in found)
    return None if first is None or second is None else (first, second)


def as_stored(content: bytes) -> str:
    """Any bytes as a text that every store takes: as they are, or as a data URL."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    return f"data:;base64,{base64.b64encode(content).decode()}" if "\0" in text else text


def _of_events(text: str) -> Any:
    """The completion of a stream of server-sent events. Raises ValueError where it broke off."""
    fields = [line.partition(":") for line in _LINE_END.split(text) if line.strip()]
    sent = [value.strip() for name, _, value in fields if name.strip() == "data"]
    if not sent:
        rest = [line for line in _LINE_END.split(text) if not line.startswith(_EVENT)]
        return json.loads("\n".join(rest), strict=False)
    events = [json.loads(one, strict=False) for one in sent if one != "[DONE]"]
    parts = [one for one in events if isinstance(one, dict)]
    if failed := next((one["error"] for one in parts if one.get("error")), None):
        raise NotACompletion(f"the server sent an error in a stream: {str(failed)[:200]}")
    choices = [
        one["choices"][0]
        for one in parts
        if isinstance(one.get("choices"), list) and one["choices"]
    ]
    whole = [one for one in choices if isinstance(one, dict) and "message" in one]
    choice = whole[-1] if whole else _joined_deltas(choices)
    if not whole and choice["finish_reason"] is None and "[DONE]" not in sent:
        raise ValueError("the stream of an answer broke off")
    body: dict[str, Any] = {"choices": [choice]}
    for one in parts:
        body |= {name: one[name] for name in ("model", "usage") if one.get(name)}
    return body


def _joined_deltas(choices: Sequence[Any]) -> dict[str, Any]:
    """One choice of the parts of a stream."""
    texts: dict[str, str] = {}
    arguments: dict[int, str] = {}
    finish: str | None = None
    for choice in choices:
        delta = choice.get("delta") if isinstance(choice, dict) else None
        if not isinstance(delta, dict):
            continue
        for name, part in delta.items():
            if name != "role" and isinstance(part, str):
                texts[name] = texts.get(name, "") + part
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            index = int(call.get("index") or 0)
            arguments[index] = arguments.get(index, "") + _arguments_of(call.get("function"))
        finish = choice.get("finish_reason") or finish
    called = [{"function": {"arguments": one}} for one in arguments.values()]
    return {"message": texts | {"tool_calls": called}, "finish_reason": finish}


def read_completion(body: Any) -> Completion:
    """The completion in a response's JSON. Raises ValueError for what is none."""
    if not isinstance(body, dict) or not isinstance(body.get("choices"), list):
        raise NotACompletion(f"the server sent no completion: {str(body)[:200]!r}")
    text, finish = "", "no_choice"
    if body["choices"]:
        text, finish = _read_choice(body["choices"][0])
    given = body.get("usage")
    usage: dict[str, Any] = given if isinstance(given, dict) else {}
    details = usage.get("completion_tokens_details")
    return Completion(
        text=storable(text),
        finish_reason=storable(finish),
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        reasoning_tokens=(_count(details.get("reasoning_tokens")) or 0)
        if isinstance(details, dict)
        else 0,
    )


def _read_choice(choice: Any) -> tuple[str, str]:
    """The text of a choice and why it ended; a refusal is its text."""
    if not isinstance(choice, dict):
        return _dumped(choice), "unknown_shape"
    failed = choice.get("error")
    finish = "error" if failed else str(choice.get("finish_reason") or "stop")
    message = choice.get("message")
    if not isinstance(message, dict):
        if isinstance(choice.get("text"), str):  # the older completions protocol
            return choice["text"], finish
        return _dumped(choice), "unknown_shape"
    if message.get("refusal"):
        return str(message["refusal"]), "refusal"
    text = _content(message.get("content"))
    if not text.strip():
        text = _arguments_of(message.get("function_call")) or text  # before there were tools
    if not text.strip():
        text = _tool_arguments(message.get("tool_calls")) or text
    thinking = (
        message.get("reasoning_content")
        or message.get("reasoning")
        or message.get("thinking")
        or _thinking_parts(message.get("content"))
    )
    if isinstance(thinking, str) and thinking.strip():
        thinking = thinking.replace("<think>", "").replace("</think>", "")
        text = f"<think>\n{thinking.strip()}\n</think>\n{text}"
    return text, finish


def _content(content: Any) -> str:
    """Content as one text: of a list its parts but for thinking; anything else as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return _joined([text for text in map(_part, content) if text])
    return _dumped(content)


def _joined(parts: Sequence[str]) -> str:
    """Parts that end between two words are one text; any other is a paragraph of its own."""
    text = ""
    for part in parts:
        is_cut = not text or text[-1].isspace() or part[0].isspace()
        text += part if is_cut else f"\n{part}"
    return text


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("type", "text") not in ("text", "output_text"):
        return ""
    if part.get("thought") is True:
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else ""


def _thinking_parts(content: Any) -> str:
    """The thinking among the parts of a content: a text, or a list of parts of its own."""
    parts = content if isinstance(content, list) else []
    found = [one for one in parts if isinstance(one, dict) and _is_thinking(one)]
    return "\n".join(_content(one.get("thinking") or one.get("text")) for one in found)


def _is_thinking(part: dict[str, Any]) -> bool:
    return part.get("type") == "thinking" or part.get("thought") is True


def _tool_arguments(calls: Any) -> str:
    """The arguments of the one tool call that some servers make of a schema; two equal are one."""
    listed = calls if isinstance(calls, list) else []
    found = {_arguments_of(one.get("function")) for one in listed if isinstance(one, dict)}
    return found.pop() if len(found) == 1 else ""


def _arguments_of(function: Any) -> str:
    arguments = function.get("arguments") if isinstance(function, dict) else None
    return (
        arguments if isinstance(arguments, str) else "" if arguments is None else _dumped(arguments)
    )


def _count(tokens: Any) -> int | None:
    """A number of tokens, also where it comes as a float or in a string; None for anything else."""
    if isinstance(tokens, bool) or not isinstance(tokens, int | float | str):
        return None
    try:
        number = float(tokens)
    except (ValueError, OverflowError):
        return None
    return int(number) if math.isfinite(number) and 0 <= number <= MAX_TOKENS else None


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
