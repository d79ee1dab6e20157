"""Answers as JSON: the schema that a server is asked to keep to, and reading what comes. Pure.

With `output = "json"` a stage asks for JSON by schema where the server takes one; where it does
not, or where it answers in text all the same, the text format of the prompt holds. Either is parsed
strictly: a JSON answer has exactly the keys of its schema.
"""

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


def json_hint(task: Task) -> str:
    """What is added to a prompt where a server takes `json_object` and no schema."""
    properties = response_format(task)["json_schema"]["schema"]["properties"]
    keys = ", ".join(f'"{name}": "{one["description"]}"' for name, one in properties.items())
    return f"\n\nIn place of that form, answer with one JSON object and nothing else: {{{keys}}}"
