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
    """A task: the inputs its prompt may name, the label of its answer, the stage it belongs to.

    Only what the prompt names is sent, and only that is part of a call's key.
    """

    inputs: tuple[str, ...]
    gives: Gives
    stage: str


_GIVEN = ("document", "query_positive", "language")
_GIVEN_LATER = (*_GIVEN, "instruction_positive")

TASKS: Final[dict[Task, TaskWords]] = {
    "instruction_positive": TaskWords(_GIVEN, "Instruction", "instruction"),
    "instruction_negative": TaskWords(_GIVEN_LATER, "Instruction", "negatives"),
    "query_negative": TaskWords(_GIVEN_LATER, "Query", "negatives"),
    "passage_instruction_negative": TaskWords(
        (*_GIVEN_LATER, "instruction_negative"), "Passage", "passages"
    ),
    "passage_query_negative": TaskWords((*_GIVEN_LATER, "query_negative"), "Passage", "passages"),
    "validation": TaskWords(("instruction", "query", "passages"), "Choice", "validation"),
}
