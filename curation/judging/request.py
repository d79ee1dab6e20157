"""What studies and jobs of judging are asked for, as commands, pages and handlers share it."""

from typing import Any, Literal, Self

from pydantic import model_validator

from curation.judging.sampling import Sample, Sampling, Stratum
from db.requests import Request, option
from db.values import Verdict


class JudgeStart(Request):
    """Let a model answer what it has not judged of a study, or of all groups of a run.

    Without a judge the run's validator judges its edited groups, or the one of `group_id`.
    """

    study_id: int | None = option(None, "A study.", names=(), metavar="STUDY")
    run_id: int | None = option(
        None, "Instead of a study: every group of this run.", names=("--run",)
    )
    judge: str | None = option(None, "The judge; none: the run's validator.")
    group_id: int | None = option(None, "Only this edited group.", names=())

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.study_id is None) == (self.run_id is None):
            raise ValueError("give either a study or a run")
        if self.judge is None and self.run_id is None:
            raise ValueError("give a judge for the study")
        return self


class AgreementStart(Request):
    """Compute and store the figures of a study's agreement for a reader."""

    what: Literal["agreement"] = option("agreement", "What is done with the study.")
    study_id: int = option(..., "The study.", names=("--study",))
    reader: str = option("", "Whose hidden items are left out: a member's name; empty: nobody's.")

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, given: Any) -> Any:
        """They called the study `study`, and had no reader or None."""
        if isinstance(given, dict) and "study" in given:
            rest = {name: value for name, value in given.items() if name != "study"}
            given = {"study_id": given["study"], **rest, "reader": given.get("reader") or ""}
        return given


class StudyPlan(Request):
    """Create a study of items sampled from all groups of a run that reached validation."""

    dataset: str = option(..., "Name of the dataset.", names=(), metavar="DATASET")
    items: int | None = option(None, "Number of items (default: all of the list).", ge=1)
    overlap: int = option(..., "Judges per item.", ge=1)
    seed: int = option(0, "Seed of the sampling.")
    sample: Sample = option(
        "stratified", "Stratified, random, by disagreement of judges, or from a list."
    )
    strata: tuple[Stratum, ...] = option(
        ("scenario",), "Strata of a stratified sample; repeatable."
    )
    only: Verdict | None = option(
        None,
        "Only kept or only dropped groups [both]; such a study knows one part of the run.",
    )
    apart_from: tuple[int, ...] = option(
        (), "Leave out groups that this study has items of; repeatable.", metavar="STUDY"
    )
    of_study: int | None = option(None, "For disagreement: the judges of this earlier study.")
    judges: tuple[str, ...] = option(
        (),
        "For disagreement: these judges; repeatable [all model judges and the validator].",
        names=("--judge",),
    )
    lines: tuple[str, ...] = option(
        (), "For a list: lines GROUP, GROUP SCENARIO or item ITEM.", names=("--list",)
    )
    file: str = option("the list", "For a list: its name in messages.", names=())
    run_id: int | None = option(None, "A run of the dataset [latest finished].", names=("--run",))
    name: str = option("", "The name shown to judges.")
    guidelines: str | None = option(None, "Markdown (default: a short text on relevance).")
    qualification: int = option(
        0, "Qualification examples before the study, from approved groups.", ge=0
    )
    gold: int = option(0, "Gold items hidden in the study, from approved groups.", ge=0)
    close_when_done: bool = option(
        False,
        "The last answer closes the study: answers are final, and people see how they agree with "
        "the validator.",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, given: Any) -> Any:
        """They had the sampling as a mapping of its own, with "" for no verdict."""
        if isinstance(given, dict) and isinstance(given.get("sampling"), dict):
            rest = {name: value for name, value in given.items() if name != "sampling"}
            given = given["sampling"] | rest
        if isinstance(given, dict) and given.get("only") == "":
            given = given | {"only": None}
        return given

    @property
    def sampling(self) -> Sampling:
        """The method of sampling. Raises BadInput for parts that do not go together."""
        return Sampling(
            sample=self.sample,
            strata=self.strata or ("scenario",),
            of_study=self.of_study,
            judges=self.judges,
            lines=self.lines,
            file=self.file,
            only=self.only or "",
            apart_from=self.apart_from,
        )
