"""The tasks of a curation run: what each is given and what it gives back.

`inputs` is what a prompt may name in braces. The passages a validator sees come in the order
shown, without labels or roles: it cannot know which is which.
"""

from dataclasses import dataclass
from typing import Final, Literal

Task = Literal[
    "instruction_positive",
    "instruction_negative",
    "query_negative",
    "passage_instruction_negative",
    "passage_query_negative",
    "validation",
]
Gives = Literal["Instruction", "Query", "Passage", "Choice"]


@dataclass(frozen=True)
class TaskWords:
    """A task: the inputs its prompt may name, the label of its answer, the stage it belongs to."""

    inputs: tuple[str, ...]
    gives: Gives
    stage: str


TASKS: Final[dict[Task, TaskWords]] = {
    "instruction_positive": TaskWords(("document", "query_positive"), "Instruction", "instruction"),
    "instruction_negative": TaskWords(
        ("document", "query_positive", "instruction_positive"), "Instruction", "negatives"
    ),
    "query_negative": TaskWords(
        ("document", "query_positive", "instruction_positive"), "Query", "negatives"
    ),
    "passage_instruction_negative": TaskWords(
        ("document", "query_positive", "instruction_positive", "instruction_negative"),
        "Passage",
        "passages",
    ),
    "passage_query_negative": TaskWords(
        ("document", "query_positive", "instruction_positive", "query_negative"),
        "Passage",
        "passages",
    ),
    "validation": TaskWords(("instruction", "query", "passages"), "Choice", "validation"),
}
