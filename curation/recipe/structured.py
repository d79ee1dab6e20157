"""Answers as JSON: the schema that a server is asked to keep to, and reading what comes. Pure.

With `output = "json"` a stage asks for JSON by schema where the server takes one; where it does
not, or where it answers in text all the same, the text format of the prompt holds. Either is parsed
strictly: a JSON answer has exactly the keys of its schema.
"""

import json
from typing import Any, Final, Literal

from curation.recipe.tasks import TASKS, Gives, Task

Output = Literal["text", "json"]
OUTPUTS: Final[tuple[Output, ...]] = ("text", "json")
WORDS: Final[dict[Gives, str]] = {
    "Instruction": "The instruction alone, in one line, without a label.",
    "Query": "The query alone, in one line, without a label.",
    "Passage": "The passage alone, without a label.",
    "Choice": 'The number of the passage, or "none" or "ambiguous".',
}


class NotToSchema(ValueError):
    """A JSON answer that does not keep to its schema; says what is wrong."""


def response_format(task: Task) -> dict[str, Any]:
    """What goes out as `response_format` (OpenAI's Structured Outputs)."""
    gives = TASKS[task].gives
    properties: dict[str, Any] = {gives.lower(): {"type": "string", "description": WORDS[gives]}}
    if gives == "Choice":  # a judge thinks before it chooses, as the text prompt lets it
        said = {"type": "string", "description": "Which passage fits, and why the others do not."}
        properties = {"reasoning": said, **properties}
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


def is_json(answer: str) -> bool:
    """Whether an answer is meant as a JSON object."""
    return answer.lstrip().startswith("{")


def read_json(task: Task, answer: str) -> str:
    """The text under the key of the task. Raises NotToSchema."""
    wanted = response_format(task)["json_schema"]["schema"]["properties"]
    try:
        told = json.loads(answer)
    except ValueError as error:
        raise NotToSchema(f"{task}: broken JSON ({error})") from error
    if not isinstance(told, dict) or set(told) != set(wanted):
        keys = ", ".join(map(str, told)) if isinstance(told, dict) else type(told).__name__
        raise NotToSchema(f"{task}: the JSON has {keys or 'nothing'}, not {', '.join(wanted)}")
    text = told[TASKS[task].gives.lower()]
    if not isinstance(text, str):
        raise NotToSchema(f"{task}: {TASKS[task].gives.lower()} is {text!r}, not a text")
    return text
