"""Limits of output tokens for models that reason before they answer. Pure.

Reasoning counts as output: at the 160 tokens that suffice for an instruction such a model is cut
off in mid-thought, every time. A limit costs nothing by itself: what is generated is paid.
"""

import re
from typing import Final

REASONING_TOKENS: Final = 8192
_REASONING = re.compile(
    r"(?:^|[/:_-])(?:o[1-9](?:$|[-_.:])|gpt-5(?!-chat)|gpt-oss|qwq|qwen-?3|magistral|glm-4\.[5-9]|glm-[5-9]"
    r"|deepseek-(?:r|v3\.[1-9])|r1(?:$|[-_.:])|kimi-k2|minimax-m|phi-4-(?:mini-)?reason|nemotron"
    r"|gemini-(?:2\.5|[3-9])|grok-[3-9]|smollm3|seed-oss)|reason|think",
    re.IGNORECASE,
)


def is_reasoning_model(model: str) -> bool:
    """Whether a model's name is one of those that reason by default."""
    return not re.search(r"non-?(?:reason|think)|instruct", model, re.IGNORECASE) and bool(
        _REASONING.search(model)
    )


def with_room_to_reason(model: str, limit: int) -> int:
    """The limit for a model: at least REASONING_TOKENS where it reasons."""
    return max(limit, REASONING_TOKENS) if is_reasoning_model(model) else limit
