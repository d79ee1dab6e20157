"""Drop reasons: what each means, and what to change if it is frequent."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from db.question import CHECK
from db.shape import SPARE, STANDS_IN, TAKEN_OUT


class Reason(NamedTuple):
    """The meaning of a drop reason, and the remedy if many groups of a run share it."""

    meaning: str
    remedy: str


MISSED: Final = "judge_missed_"  # and the role of the scenario
_JUDGE = "look at dropped groups: the texts or the validator's model do not fit the data"
_PROMPT = "try another model or prompt for the stage"

DROP_REASONS: Final[dict[str, Reason]] = {
    "empty": Reason(
        "the answer holds no text, or nothing but the model's thinking",
        "raise max_output_tokens, or turn thinking off with extra_body",
    ),
    "unparsable": Reason("the answer is not in the form that the prompt asks for", _PROMPT),
    "leftover": Reason(
        "the text holds debris: the end of a JSON object, a fence, a tag, a token, a list of "
        "sources, a server's message, a chat's greeting or end, words of the prompt",
        _PROMPT,
    ),
    "cut_off": Reason(
        "the server ended the answer before its end: at the token limit, or for an error",
        "raise max_output_tokens (thinking counts), turn thinking off with extra_body, or, if the "
        "detail names no limit, read the server's log",
    ),
    "refused": Reason("the model or a content filter refused", "choose another model"),
    "unknown_candidate": Reason("the judge chose a passage that it was not shown", _PROMPT),
    "too_long": Reason("a text has more words than the filter lets through", "see [filters]"),
    "too_long_for_model": Reason(
        "the prompt is longer than the model's context", "choose a model with a longer context"
    ),
    "unchanged": Reason("the text repeats its positive counterpart", _PROMPT),
    "repeated": Reason("the text repeats another one of its slot", _PROMPT),
    "too_few_texts": Reason(
        "fewer texts of a slot passed their checks than a group needs",
        "look at the dropped texts, lower at_least, or try another model or prompt",
    ),
    SPARE: Reason("it stands in for a text that passed by itself", ""),
    TAKEN_OUT: Reason("a person took it out of the group", ""),
    STANDS_IN: Reason("it took the place of a text that failed", ""),
    "personal_data": Reason("the text holds what looks like personal data", _PROMPT),
    "language_changed": Reason("the text is in another language than its pair", _PROMPT),
    "language_not_named": Reason("the instruction does not name the programming language", _PROMPT),
    "no_language": Reason("the pair has no programming language", "import pairs with a language"),
    "quotes_instruction": Reason("the passage quotes its instruction", _PROMPT),
    "judge_none": Reason("the judge found no passage that fits", _JUDGE),
    "judge_ambiguous": Reason("the judge found several passages that fit", _JUDGE),
    "no_rule_fits": Reason(
        "the offline rules find nothing in the pair to ask for, or to put in its place",
        "a language model has no such limit: choose another provider",
    ),
    "language_without_rules": Reason(
        "the pair is in a language that the offline rules do not write",
        "choose another provider: a language model is given the pair's language by its prompt",
    ),
    "not_recorded": Reason(
        "the recording has no answer for this pair or for these candidates",
        "`recorded` replays the demo set alone: choose another provider for data of your own",
    ),
    "request_refused": Reason(
        "the server refuses the request with a status that a retry does not fix",
        "read the server's message and change the recipe with `set=`",
    ),
    "server_error": Reason(
        "the server failed on this request again and again, while others were answered",
        "read the server's log, then grow these pairs again in a run of their own (`query_id=`)",
    ),
}


def find_reason(reason: str) -> Reason | None:
    """A drop reason, of any shape's scenarios and checks; None for an unknown one."""
    if reason.startswith(CHECK):
        name = reason.removeprefix(CHECK)
        return Reason(f"an answer to the check “{name}” is not the expected one", _JUDGE)
    if reason.startswith(MISSED):
        role = reason.removeprefix(MISSED).replace("_", " ")
        return Reason(f"the judge chose another passage than that of “{role}”", _JUDGE)
    return DROP_REASONS.get(reason)


def reason_text(reason: str) -> str:
    """A drop reason in words; of an unknown one, its name."""
    known = find_reason(reason)
    return known.meaning if known else reason.replace("_", " ")


TOO_WEAK: Final = frozenset(  # more than chance misses: the model does not do what it is asked
    {"unparsable", "leftover", "unchanged", "repeated", "unknown_candidate", "quotes_instruction"}
)


def what_to_change(kept: int, dropped: Mapping[str, int]) -> str:
    """What to change before a larger run, by how many groups were dropped for what; "" where half
    of the finished groups or more are kept."""
    lost = sum(dropped.values())
    if kept >= lost:
        return ""
    if 2 * sum(count for reason, count in dropped.items() if reason in TOO_WEAK) > kept + lost:
        return "the model is too weak for its prompts: try a larger one, or shorter prompts"
    reason = min(dropped, key=lambda name: (-dropped[name], name))
    known = find_reason(reason)
    return known.remedy if known else ""
