"""Answers as JSON: the schema requested from a server. Pure.

With `output = "json"` a stage requests JSON by schema if the server takes one; otherwise, or if it
answers in text all the same, the text format of the prompt holds. Either is parsed strictly: a JSON
answer has exactly the keys of its schema.
"""

from typing import Any, Final, Literal

from curation.recipe.tasks import TASKS, Gives, Task

Output = Literal["text", "json"]
OUTPUTS: Final[tuple[Output, ...]] = ("text", "json")
DESCRIPTIONS: Final[dict[Gives, str]] = {
    "Instruction": "The instruction alone, in one line, without a label.",
    "Query": "The query alone, in one line, without a label.",
    "Passage": "The passage alone, without a label.",
    "Choice": 'The number of the passage, or "none" or "ambiguous".',
}


def response_format(task: Task, gives: Gives | None = None) -> dict[str, Any]:
    """The `response_format` of a request (OpenAI's Structured Outputs); `gives` as in `parse`."""
    gives = gives or TASKS[task].gives
    properties: dict[str, Any] = {
        gives.lower(): {"type": "string", "description": DESCRIPTIONS[gives]}
    }
    if gives == "Choice":  # a judge thinks before it chooses, as the text prompt lets it
        reasoning = {
            "type": "string",
            "description": "Which passage fits, and why the others do not.",
        }
        properties = {"reasoning": reasoning, **properties}
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


def json_hint(task: Task, gives: Gives | None = None) -> str:
    """The text added to a prompt if a server takes `json_object` and no schema."""
    properties = response_format(task, gives)["json_schema"]["schema"]["properties"]
    keys = ", ".join(f'"{name}": "{one["description"]}"' for name, one in properties.items())
    return f"\n\nIn place of that form, answer with one JSON object and nothing else: {{{keys}}}"
