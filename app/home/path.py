"""The steps from pairs to an evaluated model: which are done and good, and which is next. Pure.

A step is done when its quality is there: 10 of 90 judgments, or a kappa of 0.05, are no tick. A
step says "to do" only where something can be done in it: what is measured as far as it can be, of
too few, deserves a look.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from app.home.quality import HIDDEN, TOO_MANY, Level, Light, Quality
from app.text.numbers import counted
from db.outcome.overview import Overview

JUDGED_ENOUGH: Final = 0.9  # of a study's planned judgments
REVIEWED_ENOUGH: Final = 20  # groups
NOT_HERE = (HIDDEN, TOO_MANY)  # why a kappa is not known though people judged enough
ORDER: Final[tuple[Level, ...]] = ("problem", "unknown", "look", "good")  # the worst first


@dataclass(frozen=True)
class Step:
    """A step: its page, title, how good it is, its state, the button to go on, and the command
    that does the same, if one does."""

    view: str
    title: str
    level: Level
    state: str
    button: str
    command: str
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether it is done and good."""
        return self.level == "good"


@dataclass(frozen=True)
class Judged:
    """How far the judging of a study is: judgments by people, of those planned.

    `is_own`: one for the user that closes with the last answer; `is_closed`: it takes no more;
    `other_id`: another study that is open, has places left and is no such one.
    """

    study_id: int
    done: int
    planned: int
    is_own: bool = False
    is_closed: bool = False
    other_id: int | None = None

    @property
    def is_enough(self) -> bool:
        """Whether nearly all planned judgments are there."""
        return self.planned > 0 and self.done >= JUDGED_ENOUGH * self.planned


def path_of(
    found: Overview,
    quality: Quality,
    judged: Judged | None = None,
    *,
    may_open: Callable[[str], bool] = lambda view: True,
) -> list[Step]:
    """The steps with their state in this store: all ten, or those whose page the user may open.

    What a user may not see is left out: it is neither to do nor done.
    """
    steps = [
        Step(
            "datasets",
            "Import",
            _exists(found.pairs),
            counted(found.pairs, "pair")
            if found.pairs
            else "import queries and the passages that answer them",
            "Import your data",
            "inf datasets import NAME --pairs pairs.jsonl --passages passages.jsonl",
        ),
        *_curate(quality.kept, quality.leakage),
        *_judge(quality.people, judged),
        *_agreement(quality.precision, judged),
        Step(
            "diversity",
            "Diversity",
            _exists(found.analyses.get("diversity", 0)),
            "computed"
            if found.analyses.get("diversity")
            else "measure how varied the instructions and queries are",
            "Measure diversity",
            "inf analyze diversity --dataset NAME",
        ),
        Step(
            "coverage",
            "Coverage",
            _exists(found.analyses.get("coverage", 0)),
            "computed" if found.analyses.get("coverage") else "map the texts",
            "Map the texts",
            "inf analyze coverage --dataset NAME",
        ),
        _review(found),
        Step(
            "releases",
            "Release",
            _exists(found.releases),
            counted(found.releases, "release")
            if found.releases
            else "export the kept groups with a dataset card",
            "Create a release",
            "inf releases create NAME --out DIR --format parquet",
        ),
        Step(
            "train",
            "Train",
            _exists(found.checkpoints),
            counted(found.checkpoints, "checkpoint")
            if found.checkpoints
            else "fine-tune an embedding model on a release",
            "Train a model",
            "inf trainings create --release DIR --out MODEL_DIR",
        ),
        *_evaluate(quality.flip),
    ]
    return [step for step in steps if may_open(step.view)]


def _exists(count: int) -> Level:
    return "good" if count else "unknown"


def _measured(light: Light, todo: str) -> str:
    if light.level == "unknown":
        return f"{todo}: {light.why}"
    if light.level == "good":
        return f"{light.label} {light.value}"
    return f"{light.label} {light.value}: {light.why}"


def _curate(kept: Light | None, leakage: Light | None) -> list[Step]:
    """The worse of what was kept and how it leaks; the drop reasons where too little was kept."""
    if kept is None or leakage is None:
        return []
    worst = min((kept, leakage), key=lambda light: ORDER.index(light.level))
    command = "inf runs create NAME --provider offline"
    if kept.level == "unknown" and kept.value == "–":
        todo = "generate instructions and hard negatives from the pairs, and validate them"
        return [Step("curate", "Curate", "unknown", todo, "Curate these pairs", command)]
    state = _measured(worst, f"{kept.label} {kept.value}")
    if worst is kept and worst.level in ("look", "problem"):
        parameters = {**worst.parameters, "verdict": "dropped"}
        button = "Review what was dropped"
        return [Step("groups", "Curate", worst.level, state, button, command, parameters)]
    if worst.level == "good":
        state = f"{kept.value} kept, leakage {leakage.value}"
    button = "Look at the run"
    return [Step("curate", "Curate", worst.level, state, button, command, worst.parameters)]


def _judge(people: Light | None, judged: Judged | None) -> list[Step]:
    """Judged to the end, and with people who agree."""
    if people is None:
        return []
    command = "inf studies create NAME --items 50 --overlap 3"
    if judged is None:
        todo = "let people and models pick the right passage"
        return [Step("studies", "Judge", "unknown", todo, "Create a study", command)]
    parameters = {"study": str(judged.study_id)}
    state = f"{judged.done:,} of {counted(judged.planned, 'judgment')} by people"
    is_undefined = people.level == "unknown" and people.why not in NOT_HERE
    if is_undefined and (judged.is_enough or judged.is_closed):
        return [_judge_elsewhere(state, judged.other_id, command)]
    if not judged.is_enough and not judged.is_closed:
        level: Level = "problem" if people.level == "problem" else "unknown"
        state += f", {people.label} {people.value}" if level == "problem" else ""
        if judged.is_own:
            return [Step("judge", "Judge", level, state, "Judge them", "", parameters)]
        button = "Judge or invite people"
        return [Step("studies", "Judge", level, state, button, command, parameters)]
    level = people.level
    if level == "unknown" or not judged.is_enough:  # closed early, or its figures show elsewhere
        level = "problem" if level == "problem" else "look"
    state += f", {_measured(people, 'agreement')}"
    button = "See where people disagree" if level == "problem" else "See the study"
    return [Step("studies", "Judge", level, state, button, command, parameters)]


def _judge_elsewhere(state: str, other_id: int | None, command: str) -> Step:
    """What is left where no two people judged the same items, and none will in this study."""
    if other_id is None:
        todo = f"{state}; create a study in which several people judge the same items"
        return Step("studies", "Judge", "unknown", todo, "Create a study", command)
    todo = f"{state}; let several people judge the items of study {other_id}"
    button, parameters = "Judge or invite people", {"study": str(other_id)}
    return Step("studies", "Judge", "unknown", todo, button, command, parameters)


def _agreement(precision: Light | None, judged: Judged | None) -> list[Step]:
    """The precision; still not known where all have judged, it deserves a look."""
    if precision is None:
        return []
    level = precision.level
    if level == "unknown" and judged is not None and (judged.is_enough or judged.is_closed):
        level = "look"
    state = _measured(precision, "estimate how much of the kept data people confirm")
    button, command = "See the agreement", "inf analyze agreement --study ID"
    return [Step("agreement", "Agreement", level, state, button, command, precision.parameters)]


def _evaluate(flip: Light | None) -> list[Step]:
    if flip is None:
        return []
    state = _measured(flip, "compare the base model and the trained model")
    button = "Compare with the base model"
    command = "inf evaluations create --model MODEL_DIR --release DIR"
    return [Step("evaluations", "Evaluate", flip.level, state, button, command)]


def _review(found: Overview) -> Step:
    """At least REVIEWED_ENOUGH groups, or all there are."""
    wanted = min(REVIEWED_ENOUGH, found.kept + found.dropped)
    is_enough = wanted > 0 and found.reviews >= wanted
    state = f"{counted(found.reviews, 'group')} reviewed"
    if not is_enough:
        least = counted(wanted or REVIEWED_ENOUGH, "group")
        state = f"approve, reject or edit at least {least}: {state}"
    return Step(
        "groups",
        "Review",
        "good" if is_enough else "unknown",
        state,
        "Review groups",
        "inf reviews set ID --approve",
    )


def next_step(steps: Sequence[Step]) -> Step | None:
    """The first step with a problem or nothing yet, else the first that deserves a look."""
    for levels in (("problem", "unknown"), ("look",)):
        if found := next((step for step in steps if step.level in levels), None):
            return found
    return None
