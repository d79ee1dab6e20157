"""Models that reason: the thinking taken out of an answer, and the limit they need. Pure.

Reasoning counts as output: at the 160 tokens that suffice for an instruction such a model is cut
off in mid-thought, every time. A limit costs nothing by itself: what is generated is paid.

Servers with a reasoning parser put the thinking into a field of its own; without one (or with the
wrong one) it is in the text, in the tags of the model's template. What a model thinks holds
drafts in the very form of the answer, so nothing of it may reach the parser: from the first opening
tag to the *last* closing one everything goes, also where a thought names its own tag.
"""

import re
from typing import Final

REASONING_TOKENS: Final = 8192
_REASONS = re.compile(
    r"(?:^|[/:_-])(?:o[1-9](?:$|[-_.:])|gpt-5(?!-chat)|gpt-oss|qwq|qwen-?3|magistral|glm-4\.[5-9]|glm-[5-9]"
    r"|deepseek-(?:r|v3\.[1-9])|r1(?:$|[-_.:])|kimi-k2|minimax-m|phi-4-(?:mini-)?reason|nemotron"
    r"|gemini-(?:2\.5|[3-9])|grok-[3-9]|smollm3|seed-oss)|reason|think",
    re.IGNORECASE,
)
_TAGS = "think(?:ing)?|thoughts?|reason(?:ing)?|reflect(?:ion)?|analysis|scratchpad|seed:think"
_OPEN = re.compile(
    rf"<(?:{_TAGS})\b[^>]*>|<details\s+type=.?reasoning[^>]*>|◁think▷|\[THINK\]"
    r"|<\|channel>|<\|START_THINKING\|>|<\|begin_of_thought\|>|<unused94>",
    re.IGNORECASE,
)
_CLOSE = re.compile(
    rf"</(?:{_TAGS})\s*>|</details>|◁/think▷|\[/THINK\]"
    r"|<channel\|>|<\|END_THINKING\|>|<\|end_of_thought\|>|<unused95>",
    re.IGNORECASE,
)
_HARMONY = re.compile(r"<\|channel\|>")
_HARMONY_FINAL = re.compile(r"<\|channel\|>\s*final[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>")
# the same answer where the server's detokeniser left the special tokens out
_HARMONY_BARE = re.compile(r"\s*analysis.*assistantfinal", re.DOTALL)
_COMMAND_LINE = re.compile(r"\s*Thinking\.\.\.\n.*\n\.\.\.done thinking\.", re.DOTALL)
_TURN_BEGINS = re.compile(
    r"\s*(?:<s>|<bos>|<\|begin_of_text\|>|<\|im_start\|>\s*assistant\b"
    r"|<\|start_header_id\|>assistant<\|end_header_id\|>|<\|START_RESPONSE\|>|<\|assistant\|>)\s*"
)
_TURN_ENDS = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|return|endoftext|end_of_text|END_RESPONSE|end_of_solution)\|>"
    r"|</s>|<eos>|<end_of_turn>|<｜end▁of▁sentence｜>"
)
_ANSWER_TAG = re.compile(r"\s*<(answer|response|output)>(.*)</\1>\s*", re.IGNORECASE | re.DOTALL)


class UnclosedReasoning(ValueError):
    """The thinking begins and never ends: there is no answer."""


def strip_reasoning(text: str) -> str:
    """The answer without thinking, without the tokens that begin and end a turn.

    Everything after the first end of the turn is a turn that the model made up. Raises
    UnclosedReasoning.
    """
    text = _without_channels(text.removeprefix("\ufeff"))
    if _HARMONY_BARE.match(text):
        text = text.rpartition("assistantfinal")[2]
    if shown := _COMMAND_LINE.match(text):
        text = text[shown.end() :]
    text = _without_tags(text)
    if begins := _TURN_BEGINS.match(text):
        text = text[begins.end() :]
    if ends := _TURN_ENDS.search(text):
        text = text[: ends.start()]
    answer = _ANSWER_TAG.fullmatch(text)
    return answer[2] if answer else text


def _without_channels(text: str) -> str:
    """Of the channels of OpenAI's harmony format, the last final one."""
    if _HARMONY.search(text) is None:
        return text
    finals = list(_HARMONY_FINAL.finditer(text))
    if not finals:
        raise UnclosedReasoning("the answer has thinking channels and no final one")
    return text[finals[-1].end() :]


def _without_tags(text: str) -> str:
    opening = _OPEN.search(text)
    closings = list(_CLOSE.finditer(text))
    # `</details>` and the like without reasoning before them are text
    if opening is None and closings and closings[-1].group().lower() == "</details>":
        return text
    if closings:
        last = closings[-1]
        # the R1 template opens the tag in the prompt: all before the closing tag is thinking
        start = opening.start() if opening and opening.start() < last.start() else 0
        text = text[:start] + text[last.end() :]
        opening = _OPEN.search(text)
    if opening is not None:
        raise UnclosedReasoning("the model's thinking begins and never ends")
    return text


def is_reasoning_model(model: str) -> bool:
    """Whether a model's name is one of those that reason by default."""
    return not re.search(r"non-?(?:reason|think)|instruct", model, re.IGNORECASE) and bool(
        _REASONS.search(model)
    )


def with_room_to_reason(model: str, limit: int) -> int:
    """The limit for a model: at least REASONING_TOKENS where it reasons."""
    return max(limit, REASONING_TOKENS) if is_reasoning_model(model) else limit
