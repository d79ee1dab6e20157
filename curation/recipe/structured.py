"""Answers as JSON: the schema requested from a server. Pure.

With `output = "json"` a stage requests JSON by schema if the server takes one; otherwise, or if it
answers in text all the same, the text format of the prompt holds. Either is parsed strictly: a JSON
answer has exactly the keys of its schema.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

from curation.recipe.tasks import JUDGED, Gives, Task
from db.question import Question
from db.shape import GroupText
from db.values import AMBIGUOUS

Output = Literal["text", "json"]
OUTPUTS: Final[tuple[Output, ...]] = ("text", "json")
DESCRIPTIONS: Final[dict[Gives, str]] = {
    "Instruction": "The instruction alone, in one line, without a label.",
    "Query": "The query alone, in one line, without a label.",
    "Passage": "The passage alone, without a label.",
    "Texts": "",  # each has its own
    "Choice": 'The number of the passage, or "none" or "ambiguous".',
    "Answer": 'yes or no; "ambiguous" if it cannot be decided.',
    "Grade": 'The grade; "ambiguous" if it cannot be decided.',
    "Score": 'A number from 0 to 1, as in "0.85"; "ambiguous" if it cannot be decided.',
}


def response_format(
    task: Task,
    gives: Gives,
    question: Question | None = None,
    texts: Sequence[GroupText] = (),
) -> dict[str, Any]:
    """The `response_format` of a request (OpenAI's Structured Outputs); `gives` as in `parse`.

    `question`: whose answers the schema lists, where they are a list. `texts`: those of a step
    that gives several.
    """
    if gives == "Texts":
        return _schema(task, {text.column: _of_text(text) for text in texts})
    value: dict[str, Any] = {"type": "string", "description": DESCRIPTIONS[gives]}
    if question is not None and question.labels:
        value["description"] = "; ".join(f"{one}: {of}" for one, of in question.labels.items())
    if question is not None and question.answers:
        value["enum"] = [*question.answers, AMBIGUOUS]
    properties: dict[str, Any] = {gives.lower(): value}
    if gives in JUDGED:  # a judge thinks before it answers, as the text prompt lets it
        what = "Which passage fits, and why the others do not."
        reasoning = {
            "type": "string",
            "description": what if gives == "Choice" else "Why this answer and not another.",
        }
        properties = {"reasoning": reasoning, **properties}
    return _schema(task, properties)


def _of_text(text: GroupText) -> dict[str, Any]:
    if (count := len(text.names)) > 1:
        what = f"At most {count}, each alone: {text.meaning}."
        return {"type": "array", "items": {"type": "string"}, "description": what}
    return {"type": "string", "description": f"Alone, without a label: {text.meaning}."}


def _schema(task: Task, properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "json_schema",
        "json_schema": {
            "name": task,
            "strict": True,
            "schema": {
                "type": "object",
                "properties": properties,
                "required": list(properties),
                "additionalProperties": False,
            },
        },
    }


def json_hint(
    task: Task,
    gives: Gives,
    question: Question | None = None,
    texts: Sequence[GroupText] = (),
) -> str:
    """The text added to a prompt if a server takes `json_object` and no schema."""
    schema = response_format(task, gives, question, texts)["json_schema"]["schema"]
    properties = schema["properties"]
    keys = ", ".join(f'"{name}": "{one["description"]}"' for name, one in properties.items())
    return f"\n\nIn place of that form, answer with one JSON object and nothing else: {{{keys}}}"
