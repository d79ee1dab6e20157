"""The steps from pairs to an evaluated model: which are done, which is next."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.text.numbers import counted
from db.outcome.overview import Overview


@dataclass(frozen=True)
class Step:
    """A step: its page, title, whether it is done, its state, what to do, and the command."""

    view: str
    title: str
    done: bool
    state: str
    todo: str
    command: str


def path_of(found: Overview) -> list[Step]:
    """The ten steps with their state in this store."""
    kinds = found.analyses
    return [
        Step(
            "datasets",
            "Import",
            found.pairs > 0,
            f"{counted(found.pairs, 'pair')}, {counted(found.passages, 'passage')}",
            "import queries and the passages that answer them",
            "inf import --dataset NAME --pairs pairs.jsonl --passages passages.jsonl",
        ),
        Step(
            "curate",
            "Curate",
            found.kept + found.dropped > 0,
            f"{counted(found.kept, 'group')} kept, {found.dropped:,} dropped",
            "generate instructions and hard negatives from the pairs, and validate them",
            "inf curate --dataset NAME --provider offline",
        ),
        Step(
            "studies",
            "Judge",
            found.judgments > 0,
            f"{counted(found.judgments, 'judgment')} in "
            f"{counted(found.studies, 'study', 'studies')}",
            "let people and models pick the right passage",
            "inf study create --dataset NAME --items 50 --overlap 3",
        ),
        Step(
            "agreement",
            "Agreement",
            kinds.get("agreement", 0) > 0 or found.judgments > 0,
            "computed for every pair of judges",
            "measure how well people and models agree",
            "inf analyze agreement --study ID",
        ),
        Step(
            "diversity",
            "Diversity",
            kinds.get("diversity", 0) > 0,
            "computed",
            "measure how varied the instructions and queries are",
            "inf analyze diversity --dataset NAME",
        ),
        Step(
            "coverage",
            "Coverage",
            kinds.get("coverage", 0) > 0,
            "computed",
            "map the texts",
            "inf analyze coverage --dataset NAME",
        ),
        Step(
            "groups",
            "Review",
            found.reviews > 0,
            f"{counted(found.reviews, 'group')} reviewed",
            "approve, reject or edit groups",
            "inf review --group ID --approve",
        ),
        Step(
            "releases",
            "Release",
            found.releases > 0,
            counted(found.releases, "release"),
            "export the kept groups with a dataset card",
            "inf export --dataset NAME --out DIR --format parquet",
        ),
        Step(
            "train",
            "Train",
            found.checkpoints > 0,
            counted(found.checkpoints, "checkpoint"),
            "fine-tune an embedding model on a release",
            "inf train --release DIR --out MODEL_DIR",
        ),
        Step(
            "evaluations",
            "Evaluate",
            found.evaluations > 0,
            counted(found.evaluations, "evaluation"),
            "compare the base model and the trained model",
            "inf evaluate --model MODEL_DIR --release DIR",
        ),
    ]


def next_step(steps: Sequence[Step]) -> Step | None:
    """The first step that is not done; None if all are."""
    return next((step for step in steps if not step.done), None)
