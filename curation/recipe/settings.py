"""The settings of a recipe: names, defaults and meanings, in one table per part of the file.

The documentation's page of recipe settings is written from here (`tests/reference_pages.py`). To
add a filter or a setting of the validation, add a field; to add one of a stage, a row of PARAMETERS
or TRANSPORT.
"""

import difflib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

from db.errors import BadInput
from db.values import AMBIGUOUS

# of every stage: name → (default, meaning)
REQUIRED: Final = {
    "model": ("required", "Name of the model at the server."),
    "prompt": (
        "required",
        "A prompt file next to the recipe or of `curation/recipe/prompts/`.",
    ),
}
# part of an answer's key: another value requests another answer
PARAMETERS: Final = {
    "temperature": ("the server's", "Sampling temperature."),
    "top_p": ("the server's", "Nucleus sampling: share of the probability that is sampled from."),
    "max_output_tokens": (
        "the server's",
        "Limit of output tokens, reasoning included. A run with a budget needs it.",
    ),
    "reasoning_effort": ("the server's", "Effort of a model that reasons, e.g. `low`."),
    "seed": ("none", "Seed that is sent with each request, for servers that take one."),
    "output": (
        "`text`",
        "`json` requests JSON by schema where the server takes one; `text` the prompt's format.",
    ),
    "extra_body": ("none", "A table of further fields of the request, e.g. to turn thinking off."),
}
# no part of an answer's key
TRANSPORT: Final = {
    "timeout_seconds": ("`600`, less where a call hangs", "Limit of one call."),
    "max_retry_after_seconds": (
        "`INF_MAX_RETRY_AFTER_SECONDS`",
        "The longest wait that a server's Retry-After can impose.",
    ),
    "headers": ("none", "A table of further HTTP headers."),
    "limit_name": (
        "found out",
        "The server's name of the token limit: `max_tokens` or `max_completion_tokens`.",
    ),
    "answers_as": (
        "`own`",
        "By which name the model may answer: its `own`, with a provider or version; `one` other, "
        "behind an alias; `any`, behind a router. Each answer's name is stored.",
    ),
}
# of a stage: name → (type, what the number is above)
NUMBERS: Final[Mapping[str, tuple[Any, int]]] = {
    "temperature": (int | float, -1),
    "top_p": (int | float, 0),
    "max_output_tokens": (int, 0),
    "seed": (int, -1),
    "timeout_seconds": (int | float, 0),
    "max_retry_after_seconds": (int | float, 0),
}
ANSWERS_AS: Final = ("own", "one", "any")
SERVERS: Final = {
    "endpoints": ("`OPENAI_BASE_URL`", "A list of addresses that share the requests."),
    "server_group": ("after the endpoints", "The name under which answers are kept for reuse."),
}
HEAD: Final = {
    "name": ("the file's name", "Name of the recipe."),
    "description": ("empty", "One line about it, shown where recipes are chosen."),
}


def _setting(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True)
class Validation:
    """The item of each scenario: the passages added to the three, and how often it is judged."""

    distractors: int = _setting(3, "Random passages added to the three of a group.")
    hard_distractors: int = _setting(0, "Passages that BM25 finds for the query, on top of those.")
    votes: int = _setting(
        1, "How often an item is judged, each time in another order; more than half must agree."
    )
    agree: int = _setting(
        0, "How many of the votes must agree, more than half in any case; `0`: more than half."
    )
    distractors_in_language: bool = _setting(
        True,
        "Added passages are in the language of the pair's passage, as far as there are enough; "
        "`false` in runs made before there was this setting.",
    )

    def decide(self, choices: Sequence[str]) -> str:
        """The choice of the votes that have to agree; "ambiguous" if there is none."""
        choice, count = Counter(choices).most_common(1)[0]
        return choice if 2 * count > len(choices) and count >= self.agree else AMBIGUOUS

    @property
    def counts(self) -> tuple[int, int]:
        """Random and hard passages shown with those of the group."""
        return self.distractors, self.hard_distractors


@dataclass(frozen=True)
class Filters:
    """What the rule filter lets through; lengths in words."""

    max_instruction_words: int = _setting(120, "Longest instruction that is kept, in words.")
    max_query_words: int = _setting(60, "Longest generated query that is kept, in words.")
    max_passage_words: int = _setting(600, "Longest generated passage that is kept, in words.")
    quoted_words: int = _setting(
        8, "A passage that repeats this many words in a row from its instruction is dropped."
    )
    same_language: bool = _setting(
        False, "Both instructions must name the programming language of the pair."
    )
    in_pair_language: bool = _setting(
        False,
        "Every written text must be in the language of the pair's passage, as far as both are "
        "clear; passages that BM25 adds are found by that language's stemmer.",
    )


VALIDATION: Final = tuple(each.name for each in fields(Validation))
FILTERS: Final = tuple(each.name for each in fields(Filters))
YES_OR_NO: Final = tuple(
    each.name for table in (Validation, Filters) for each in fields(table) if each.type is bool
)
# First name → present name: in recipe files and stores made before the names were changed, and in
# the hash of a recipe (`Recipe.sha256`).
FORMER_FILTERS: Final = {
    "most_instruction_words": "max_instruction_words",
    "most_query_words": "max_query_words",
    "most_passage_words": "max_passage_words",
}


def present_names(filters: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Filters under their present names. Raises BadInput where one stands there by both."""
    for former, name in FORMER_FILTERS.items():
        if former in filters and name in filters:
            raise BadInput(
                f"{where} has {former!r} and {name!r}, which are one",
                f"leave {name!r}",
                code="setting_named_twice",
            )
    return {FORMER_FILTERS.get(name, name): value for name, value in filters.items()}


def validation_to_store(validation: Validation) -> dict[str, Any]:
    """The validation of a recipe to store and to hash.

    What came later is left out where it is off: a recipe without it keeps its hash, and a run
    that is resumed asks what it asked before.
    """
    body = asdict(validation)
    for name in ("distractors_in_language", "agree"):
        if not body[name]:
            del body[name]
    return body


def validation_from_store(body: Mapping[str, Any]) -> Validation:
    """The validation of a stored recipe; see `validation_to_store`."""
    return Validation(**{"distractors_in_language": False, **body["validation"]})


def filters_to_store(filters: Filters) -> dict[str, Any]:
    """The filters of a recipe to store and to hash; what came later is left out where it is off."""
    body = asdict(filters)
    if not filters.in_pair_language:
        del body["in_pair_language"]
    return body


def filters_from_store(body: Mapping[str, Any]) -> Filters:
    """The filters of a stored recipe; those it does not name have their defaults."""
    return Filters(**present_names(body.get("filters", {}), "the stored recipe"))


USUAL_NAMES = {  # of other programs
    "api_base": "endpoints",
    "base_url": "endpoints",
    "max_completion_tokens": "max_output_tokens",
    "max_new_tokens": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "response_format": "output",
    "samples": "votes",
    "self_consistency": "votes",
    "timeout": "timeout_seconds",
}


def require_table(table: Any, where: str) -> None:
    """Raise BadInput for what is no table."""
    if not isinstance(table, dict):
        raise BadInput(
            f"{where} is not a table",
            "write it as one: its name in single brackets, or { name = value }",
            code="recipe_table_invalid",
        )


def require_text(value: Any, name: str, where: str) -> None:
    """Raise BadInput for what is no text."""
    if not isinstance(value, str):
        raise BadInput(
            f"{where}: {name} = {value!r} is not a text",
            f'write it in quotes, as in {name} = "{value}"',
            code="recipe_text_invalid",
        )


def require_known(table: Any, known: Collection[str], where: str) -> None:
    """Raise BadInput for what is no table, or has another key, with the name it may mean."""
    require_table(table, where)
    for name in table:
        if name not in known:
            near = USUAL_NAMES.get(name, "")
            if near not in known:
                near = "".join(difflib.get_close_matches(name, known, n=1))
            question = f"did you mean {near!r}? " if near else ""
            raise BadInput(
                f"{where} has an unknown {name!r}; {question}Known: {', '.join(known)}",
                "correct its name, or leave it out",
                code="recipe_key_unknown",
            )
