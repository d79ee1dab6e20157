"""The tasks of a curation run: one for each text of `db.scenarios` to write, and validation.

`inputs` are the names that a prompt may use in braces. The passages of a validator come in the
order shown, without labels or roles: it cannot know which is which.
"""

from dataclasses import dataclass
from typing import Final, Literal

from db.scenarios import FIRST_ROLE, SCENARIOS, GroupText, introduced

Task = str
Gives = Literal["Instruction", "Query", "Passage", "Choice"]
GIVES: Final[dict[str, Gives]] = {
    "instruction": "Instruction",
    "query": "Query",
    "passage": "Passage",
}
VALIDATION: Final = "validation"


@dataclass(frozen=True)
class TaskSpec:
    """A task: the inputs its prompt may name, those it must name, and the label of its answer.

    Only what the prompt names is sent, and only that is part of a call's key. `text` is the text
    of a group that the task writes; None for validation.
    """

    inputs: tuple[str, ...]
    gives: Gives
    stage: str
    needed: tuple[str, ...] = ()
    text: GroupText | None = None


_GIVEN = ("document", "query_positive", "language")


def _stage_of(text: GroupText) -> str:
    """I+ first; then what differs from it or from Q+; then the passages written for those."""
    if text.field == "passage":
        return "passages"
    return "instruction" if text.introduced_by == FIRST_ROLE else "negatives"


_WRITTEN = tuple(text for role in SCENARIOS for text in introduced(role) if not text.from_source)
# The stages of writing in their order, each with the texts that are written side by side.
STAGES: Final[dict[str, tuple[GroupText, ...]]] = {
    stage: tuple(text for text in _WRITTEN if _stage_of(text) == stage)
    for stage in ("instruction", "negatives", "passages")
}


def _facts(text: GroupText) -> TaskSpec:
    stage = _stage_of(text)
    before = tuple(one.column for one in STAGES["instruction"]) if stage != "instruction" else ()
    scenario = SCENARIOS[text.introduced_by]
    instruction, query, _ = scenario.columns
    own = (instruction, query) if text.field == "passage" else ()
    return TaskSpec(
        inputs=tuple(dict.fromkeys((*_GIVEN, *before, *own))),
        gives=GIVES[text.field],
        stage=stage,
        needed=(query, instruction) if text.field == "passage" else (),
        text=text,
    )


TASKS: Final[dict[Task, TaskSpec]] = {
    text.task: _facts(text) for texts in STAGES.values() for text in texts
} | {
    VALIDATION: TaskSpec(
        ("instruction", "query", "passages"),
        "Choice",
        VALIDATION,
        needed=("query", "instruction", "passages"),
    )
}
