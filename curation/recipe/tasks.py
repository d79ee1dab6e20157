"""The tasks of a curation run: one for each step of its shape, and validation.

A shape without steps has one for each text that is written.

`inputs` are the names that a prompt may use in braces. The passages of a validator come in the
order shown, without labels or roles: it cannot know which is which.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from db.question import Kind
from db.shape import GroupText, Shape, Step

Task = str
Gives = Literal["Instruction", "Query", "Passage", "Texts", "Choice", "Answer", "Grade", "Score"]
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

    Only what the prompt names is sent, and only that is part of a call's key. `texts` are those of
    a group that the task writes, none for validation; several are one JSON object (`Texts`).
    """

    inputs: tuple[str, ...]
    gives: Gives
    stage: str
    needed: tuple[str, ...] = ()
    texts: tuple[GroupText, ...] = ()


_JUDGING: Final = TaskSpec(
    ("instruction", "query", "passages"),
    "Choice",
    VALIDATION,
    needed=("query", "instruction", "passages"),
)


class Level(NamedTuple):
    """Tasks that write side by side, and the stage of a run they are counted under."""

    stage: str
    tasks: tuple[Task, ...]


@lru_cache(maxsize=64)
def levels_of(shape: Shape) -> tuple[Level, ...]:
    """The tasks that write a group's texts in the order of a run."""
    if not shape.steps:
        return tuple(
            Level(stage, tasks)
            for stage in WRITING
            if (tasks := tuple(t.task for t in _written(shape) if _stage_of(shape, t) == stage))
        )
    found, place = list[Level](), 0
    for number, steps in enumerate(shape.levels):
        fields = {shape.slots[sign].field for step in steps for sign in step.gives}
        # a stage is never before that of an earlier level: a run counts who reached it
        place = max(place, 2 if "passage" in fields else min(number, 1))
        found.append(Level(WRITING[place], tuple(step.name for step in steps)))
    return tuple(found)


@lru_cache(maxsize=64)
def tasks_of(shape: Shape) -> dict[Task, TaskSpec]:
    """The tasks of a shape in the order of their levels, validation last."""
    if shape.steps:
        found = {
            step.name: _of_step(shape, step, level.stage)
            for level, steps in zip(levels_of(shape), shape.levels, strict=True)
            for step in steps
        }
    else:
        written = {text.task: text for text in _written(shape)}
        found = {
            task: _facts(shape, written[task]) for level in levels_of(shape) for task in level.tasks
        }
    return found | {VALIDATION: _JUDGING}


# of the pair: its programming language, and the language of its texts in English ("German")
TEXT_LANGUAGE: Final = "text_language"
OF_PAIR: Final = ("language", TEXT_LANGUAGE)


def _written(shape: Shape) -> list[GroupText]:
    return [text for role in shape.roles for text in shape.introduced(role) if not text.from_source]


def _of_step(shape: Shape, step: Step, stage: str) -> TaskSpec:
    texts = tuple(shape.slots[sign] for sign in step.gives)
    is_one = len(texts) == 1 and texts[0].sign in shape.texts
    names = (shape.slots[one].column if one in shape.slots else one for one in step.inputs)
    return TaskSpec(
        # the pair's own texts are part of every call's key, as of tasks without steps
        inputs=tuple(dict.fromkeys((*_own(shape), *names, *OF_PAIR))),
        gives=GIVES[texts[0].field] if is_one else "Texts",
        stage=stage,
        texts=texts,
    )


def _own(shape: Shape) -> tuple[str, str]:
    """The columns of the pair's query and passage."""
    return shape.first.query.column, shape.first.passage.column


def _stage_of(shape: Shape, text: GroupText) -> str:
    """The first scenario's instruction; what differs from it or from the query; the passages."""
    if text.field == "passage":
        return "passages"
    return "instruction" if text.introduced_by == shape.first.role else "negatives"


def _facts(shape: Shape, text: GroupText) -> TaskSpec:
    stage = _stage_of(shape, text)
    given = ("document", shape.first.query.column, *OF_PAIR)
    earlier = (
        [one for one in _written(shape) if _stage_of(shape, one) == "instruction"]
        if stage != "instruction"
        else []
    )
    instruction, query, _ = shape.scenarios[text.introduced_by].columns
    own = (instruction, query) if text.field == "passage" else ()
    return TaskSpec(
        inputs=tuple(dict.fromkeys((*given, *(one.column for one in earlier), *own))),
        gives=GIVES[text.field],
        stage=stage,
        needed=(query, instruction) if text.field == "passage" else (),
        texts=(text,),
    )
