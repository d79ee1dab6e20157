"""A Python function as a judge: a model judge, named by the hash of its source.

It judges in the process that has it, which leases items and sends answers, as a program cannot be
handed to a job of another. Another source, be it a comment, is another judge: its name has the
hash. What the function calls or reads from outside is not in the hash.
"""

import hashlib
import inspect
import textwrap
from collections.abc import Callable

from curation.judges.judge import ItemView
from db.errors import BadInput

Function = Callable[[ItemView], int | str | None]
PROVIDER, HASH_CHARACTERS = "python", 12


class FunctionJudge:
    """A function that gives the position of the right candidate, from 0, or None for none of them;
    of a question that is no pick, its answer as text. `model`: the sha256 of its source."""

    def __init__(self, label: str, function: Function) -> None:
        self.label, self.function = label, function
        self.model = hashlib.sha256(_source(function).encode()).hexdigest()
        self.name = name_of(label, self.model)

    def __call__(self, view: ItemView) -> int | str | None:
        return self.function(view)

    def answer(self, view: ItemView) -> int | str | None:
        """What the function answers. Raises BadInput for what is no answer to the question."""
        given = self.function(view)
        places = range(len(view.candidates))
        is_place = type(given) is int and given in places
        if not is_place and not isinstance(given, str | None):
            raise BadInput(
                f"{self.name} answered {given!r}: a position is 0 to {len(places) - 1}, or nothing",
                "return the place of a candidate in `view.candidates`",
                code="judge_answer_invalid",
            )
        view.question.chosen([""] * len(places), given)
        return given


def name_of(label: str, model: str) -> str:
    """The name of the judge that a function is. Raises BadInput for a label of no visible text."""
    if not (label.isprintable() and label.strip() == label and label):
        raise BadInput(
            f"{label!r} is no name of a judge", "name it by visible text", code="judge_name_invalid"
        )
    return f"{PROVIDER}:{label}@{model[:HASH_CHARACTERS]}"


def judge(label: str) -> Callable[[Function], FunctionJudge]:
    """Make a function a judge, as `@judge("length")`. Raises BadInput without its source."""
    name_of(label, "")
    return lambda function: FunctionJudge(label, function)


def _source(function: Function) -> str:
    """The source of a function without the lines of its decorators and its indentation."""
    try:
        lines, _ = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise BadInput(
            f"the source of {function!r} cannot be read, by which a judge is named",
            "define it in a file or a cell of a notebook",
            code="judge_without_source",
        ) from error
    while lines and lines[0].lstrip().startswith("@"):
        lines = lines[1:]
    return textwrap.dedent("".join(lines))
