"""The tasks of a curation run: one for each text of a shape to write, and validation.

`inputs` are the names that a prompt may use in braces. The passages of a validator come in the
order shown, without labels or roles: it cannot know which is which.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from db.question import Kind
from db.shape import INF_IR, GroupText, Shape

Task = str
Gives = Literal["Instruction", "Query", "Passage", "Choice", "Answer", "Grade", "Score"]
GIVES: Final[dict[str, Gives]] = {
    "instruction": "Instruction",
    "query": "Query",
    "passage": "Passage",
}
# what answers to questions are labelled with: the last line of a judge's answer
ANSWERED_WITH: Final[dict[Kind, Gives]] = {
    "pick": "Choice",
    "yes_no": "Answer",
    "grade": "Grade",
    "score": "Score",
}
JUDGED: Final = frozenset(ANSWERED_WITH.values())
VALIDATION: Final = "validation"
WRITING: Final = ("instruction", "negatives", "passages")


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


_JUDGING: Final = TaskSpec(
    ("instruction", "query", "passages"),
    "Choice",
    VALIDATION,
    needed=("query", "instruction", "passages"),
)


@lru_cache(maxsize=64)
def stages_of(shape: Shape) -> dict[str, tuple[GroupText, ...]]:
    """The stages of writing in their order, each with the texts that are written side by side."""
    written = [
        text for role in shape.roles for text in shape.introduced(role) if not text.from_source
    ]
    return {
        stage: tuple(text for text in written if _stage_of(shape, text) == stage)
        for stage in WRITING
    }


@lru_cache(maxsize=64)
def tasks_of(shape: Shape) -> dict[Task, TaskSpec]:
    """The tasks of a shape in the order of their stages, validation last."""
    written = [text for texts in stages_of(shape).values() for text in texts]
    return {text.task: _facts(shape, text) for text in written} | {VALIDATION: _JUDGING}


def _stage_of(shape: Shape, text: GroupText) -> str:
    """The first scenario's instruction; what differs from it or from the query; the passages."""
    if text.field == "passage":
        return "passages"
    return "instruction" if text.introduced_by == shape.first.role else "negatives"


def _facts(shape: Shape, text: GroupText) -> TaskSpec:
    stage = _stage_of(shape, text)
    given = ("document", shape.first.query.column, "language")
    earlier = stages_of(shape)["instruction"] if stage != "instruction" else ()
    instruction, query, _ = shape.scenarios[text.introduced_by].columns
    own = (instruction, query) if text.field == "passage" else ()
    return TaskSpec(
        inputs=tuple(dict.fromkeys((*given, *(one.column for one in earlier), *own))),
        gives=GIVES[text.field],
        stage=stage,
        needed=(query, instruction) if text.field == "passage" else (),
        text=text,
    )


TASKS: Final = tasks_of(INF_IR)
