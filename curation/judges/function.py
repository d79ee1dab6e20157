"""A Python function as a judge: a model judge, named by the hash of its source.

It judges in the process that has it, as a program cannot be handed to a job of another. Another
source, be it a comment, is another judge: its name has the hash. What the function calls or reads
from outside is not in the hash.
"""

import hashlib
import inspect
import textwrap
from collections.abc import Callable, Sequence

from curation.judges.judge import Choice, ItemView
from db.errors import BadInput

Function = Callable[[ItemView], int | None]
HASH_CHARACTERS = 12


class FunctionJudge:
    """A function that gives the position of the right candidate, from 0; None for none of them."""

    kind, provider = "model", "python"
    offline, simulated, at_once = False, False, 1

    def __init__(self, label: str, function: Function) -> None:
        self.function = function
        self.model = hashlib.sha256(_source(function).encode()).hexdigest()
        self.name = f"python:{label}@{self.model[:HASH_CHARACTERS]}"

    def __call__(self, view: ItemView) -> int | None:
        return self.function(view)

    def choose(
        self, views: Sequence[ItemView], *, check: Callable[[], None] | None = None
    ) -> list[Choice]:
        """As `ItemJudge.choose`. Raises BadInput for what is no position."""
        found = []
        for view in views:
            position = self.function(view)
            is_position = isinstance(position, int) and not isinstance(position, bool)
            if position is not None and not (is_position and 0 <= position < len(view.candidates)):
                raise BadInput(
                    f"{self.name} answered {position!r}: a position is 0 to "
                    f"{len(view.candidates) - 1}, or nothing",
                    "return the place of a candidate in `view.candidates`",
                    code="judge_answer_invalid",
                )
            found.append(Choice(position=position))
        return found


def judge(label: str) -> Callable[[Function], FunctionJudge]:
    """Make a function a judge, as `@judge("length")`. Raises BadInput without its source."""
    if not (label.isprintable() and label.strip() == label and label):
        raise BadInput(
            f"{label!r} is no name of a judge", "name it by visible text", code="judge_name_invalid"
        )
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
