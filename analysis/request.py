"""What analyses of texts take: requests, and the configs of the jobs `embed` and `project`."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import field_validator, model_validator

from analysis.text.paraphrases import THRESHOLD
from db.errors import BadInput
from db.requests import Request, option

REPEATS = 5


class CorporaChosen(Request):
    """Which texts are analysed, and the model of their vectors."""

    datasets: tuple[str, ...] = option((), "A dataset; repeatable.", names=("--dataset",))
    sources: tuple[str, ...] = option(
        (), "Only pairs of this source, a corpus each; repeatable.", names=("--source",)
    )
    published: tuple[str, ...] = option(
        (),
        "A release's folder, or FollowIR, Promptriever, InstructIR, InF-IR, MAIR, BRIGHT as "
        "published: a file or a folder.",
        names=("--corpus",),
        path="place",
    )
    texts: tuple[str, ...] = option((), "JSONL with a `text` column.", path="file")
    runs: tuple[int, ...] = option(
        (),
        "A run (default: the latest of each dataset); repeatable: each is a corpus.",
        names=("--run",),
    )
    groups: Literal["kept", "all", "both"] = option(
        "kept", "Kept groups, all groups, or both as two corpora (filtered and unfiltered)."
    )
    model: str | None = option(
        None,
        "SentenceTransformer by name or path, or openai:MODEL for a model behind an "
        "OpenAI-compatible server (OPENAI_BASE_URL).",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_before(cls, given: Any) -> Any:
        """Configs of earlier versions: one `run`, and None for what was not chosen."""
        if not isinstance(given, Mapping):
            return given
        known = {name: value for name, value in given.items() if value is not None}
        if (run := known.pop("run", None)) is not None:
            known.setdefault("runs", (run,))
        return known

    @field_validator("model")
    @classmethod
    def _named(cls, model: str | None) -> str | None:
        return (model or "").strip() or None

    @model_validator(mode="after")
    def _choose_texts(self) -> Self:
        if not (self.datasets or self.runs or self.texts or self.published):
            raise BadInput(
                "no corpus",
                "give `dataset=NAME`, `run=N`, `corpus=PATH` or `texts=FILE`",
                code="request_invalid",
            )
        if self.sources and not self.datasets:
            raise BadInput(
                "a source is one of a dataset", "give `dataset=NAME`", code="request_invalid"
            )
        return self


class DiversityStart(CorporaChosen):
    """The diversity of texts: APS, INGF, counts and lengths."""

    what: Literal["diversity"] = option("diversity", "Which analysis it is.", names=())
    sample: int | None = option(
        None,
        "Texts per field in a sample (default: half of the smallest corpus).",
        ge=2,
        title="Sample size",
    )
    repeats: int = option(REPEATS, "Samples of equal size that are drawn.", ge=1)
    seed: int = option(0, "Seed of the samples.")


class DuplicatesStart(CorporaChosen):
    """Near-duplicate texts within and between corpora."""

    what: Literal["near_duplicates"] = option("near_duplicates", "Which analysis it is.", names=())


class ContaminationStart(CorporaChosen):
    """Texts that corpora share with evaluation sets."""

    what: Literal["contamination"] = option("contamination", "Which analysis it is.", names=())
    against: tuple[str, ...] = option(
        (),
        "An evaluation set as published, or any texts: a file or a folder; repeatable.",
        path="place",
    )
    against_datasets: tuple[str, ...] = option(
        (), "A dataset used for evaluation; repeatable.", names=("--against-dataset",)
    )
    paraphrase_threshold: float = option(
        THRESHOLD,
        "Score from which two questions count as paraphrases: twice their cosine, less how close "
        "each is to its neighbours in the evaluation set (docs/contamination.md). 0: paraphrases "
        "are not looked for and nothing is embedded.",
        ge=0,
        le=2,
    )

    @model_validator(mode="after")
    def _choose_evaluation_sets(self) -> Self:
        if not (self.against or self.against_datasets):
            raise BadInput(
                "no evaluation set",
                "give `against=PATH` or `against_dataset=NAME`",
                code="request_invalid",
            )
        return self


class CoverageStart(CorporaChosen):
    """A map of texts."""

    seed: int = option(0, "Seed of the map.")
    onto: int | None = option(None, "Place the corpora on this stored map (an analysis).")
    fit: int | None = option(None, "Fit at most N texts and place the others.", ge=10)
    pairs: bool = option(
        False, "Also the pairs without a kept group, a corpus per dataset.", title="Pairs"
    )
    groups: Literal["kept", "all", "both"] = option(
        "all", CorporaChosen.model_fields["groups"].description or ""
    )

    @model_validator(mode="after")
    def _fit_or_place(self) -> Self:
        if self.onto is not None and self.fit is not None:
            raise BadInput(
                "a map to place on fits nothing",
                "leave out `fit=` or `onto=`",
                code="request_invalid",
            )
        return self


EMBEDDED: Mapping[str, type[CorporaChosen]] = {
    "diversity": DiversityStart,
    "near_duplicates": DuplicatesStart,
    "contamination": ContaminationStart,
}
REQUESTS: Mapping[str, type[CorporaChosen]] = {**EMBEDDED, "coverage": CoverageStart}
