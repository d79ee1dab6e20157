"""The steps from pairs to an evaluated model: which are done and good, and which is next. Pure.

A step is done when its quality is there: 10 of 90 judgments, or a kappa of 0.05, are no tick.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from app.home.quality import Level, Light, Quality
from app.text.numbers import counted
from db.outcome.overview import Overview

JUDGED_ENOUGH: Final = 0.9  # of a study's planned judgments
REVIEWED_ENOUGH: Final = 20  # groups
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
    """How far the judging of a study is: judgments by people, of those planned; `is_own`: one that
    closes with its judge's last answer."""

    study_id: int
    done: int
    planned: int
    is_own: bool = False

    @property
    def is_enough(self) -> bool:
        """Whether nearly all planned judgments are there."""
        return self.planned > 0 and self.done >= JUDGED_ENOUGH * self.planned


def path_of(found: Overview, quality: Quality, judged: Judged | None = None) -> list[Step]:
    """The ten steps with their state in this store."""
    return [
        Step(
            "datasets",
            "Import",
            _exists(found.pairs),
            f"{counted(found.pairs, 'pair')}, {counted(found.passages, 'passage')}"
            if found.pairs
            else "import queries and the passages that answer them",
            "Import your data",
            "inf import --dataset NAME --pairs pairs.jsonl --passages passages.jsonl",
        ),
        _curate(quality),
        _judge(quality.people, judged),
        Step(
            "agreement",
            "Agreement",
            quality.precision.level,
            _measured(quality.precision, "estimate how much of the kept data people confirm"),
            "See the agreement",
            "inf analyze agreement --study ID",
            quality.precision.parameters,
        ),
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
            "inf export --dataset NAME --out DIR --format parquet",
        ),
        Step(
            "train",
            "Train",
            _exists(found.checkpoints),
            counted(found.checkpoints, "checkpoint")
            if found.checkpoints
            else "fine-tune an embedding model on a release",
            "Train a model",
            "inf train --release DIR --out MODEL_DIR",
        ),
        Step(
            "evaluations",
            "Evaluate",
            quality.flip.level,
            _measured(quality.flip, "compare the base model and the trained model"),
            "Compare with the base model",
            "inf evaluate --model MODEL_DIR --release DIR",
        ),
    ]


def _exists(count: int) -> Level:
    return "good" if count else "unknown"


def _measured(light: Light, todo: str) -> str:
    if light.level == "unknown":
        return f"{todo}: {light.why}"
    if light.level == "good":
        return f"{light.label} {light.value}"
    return f"{light.label} {light.value}: {light.why}"


def _curate(quality: Quality) -> Step:
    """The worse of what was kept and how it leaks; the drop reasons where too little was kept."""
    worst = min((quality.kept, quality.leakage), key=lambda light: ORDER.index(light.level))
    command = "inf curate --dataset NAME --provider offline"
    if quality.kept.level == "unknown" and quality.kept.value == "–":
        todo = "generate instructions and hard negatives from the pairs, and validate them"
        return Step("curate", "Curate", "unknown", todo, "Curate these pairs", command)
    state = _measured(worst, f"{quality.kept.label} {quality.kept.value}")
    if worst is quality.kept and worst.level in ("look", "problem"):
        parameters = {**worst.parameters, "verdict": "dropped"}
        button = "Review what was dropped"
        return Step("groups", "Curate", worst.level, state, button, command, parameters)
    if worst.level == "good":
        state = f"{quality.kept.value} kept, leakage {quality.leakage.value}"
    return Step(
        "curate", "Curate", worst.level, state, "Look at the run", command, worst.parameters
    )


def _judge(people: Light, judged: Judged | None) -> Step:
    """Judged to the end, and with people who agree."""
    command = "inf study create --dataset NAME --items 50 --overlap 3"
    if judged is None:
        todo = "let people and models pick the right passage"
        return Step("studies", "Judge", "unknown", todo, "Create a study", command)
    parameters = {"study": str(judged.study_id)}
    count = f"{judged.done:,} of {counted(judged.planned, 'judgment')} by people"
    if not judged.is_enough:
        level: Level = "problem" if people.level == "problem" else "unknown"
        why = f", {people.label} {people.value}" if level == "problem" else ""
        if judged.is_own:
            return Step("judge", "Judge", level, count + why, "Judge them", "", parameters)
        button = "Judge or invite people"
        return Step("studies", "Judge", level, count + why, button, command, parameters)
    state = f"{count}, {_measured(people, 'let a second person judge the same items')}"
    button = "See where people disagree" if people.level == "problem" else "See the study"
    return Step("studies", "Judge", people.level, state, button, command, parameters)


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
        "inf review --group ID --approve",
    )


def next_step(steps: Sequence[Step]) -> Step | None:
    """The first step with a problem or nothing yet, else the first that deserves a look."""
    for levels in (("problem", "unknown"), ("look",)):
        if found := next((step for step in steps if step.level in levels), None):
            return found
    return None
