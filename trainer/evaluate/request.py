"""What an evaluation takes: the request, and the config of its job."""

from typing import Literal, Self

from pydantic import field_validator, model_validator

from analysis.text.bm25 import LANGUAGES, NO_LANGUAGE
from db.errors import BadInput
from db.requests import Request, option
from trainer.settings.template import Template
from trainer.suites.registry import DOWNLOAD_NAMES, LABELS, SUBSET_HELP, SUBSETS


class EvaluationStart(Request):
    """Models scored side by side, on a release's held-out groups or on a benchmark."""

    models: tuple[str, ...] = option(
        ...,
        "A folder, a name, bm25, a name after cross-encoder:, monot5:, flan-t5:, openai:, or "
        "trec:FILE (a TREC run).",
        names=("--model",),
        path="named",
    )
    release: str | None = option(
        None, "Score on the held-out groups of this release (folder or number).", path="named"
    )
    benchmark: str | None = option(
        None,
        f"A folder ({LABELS}, or several), dataset:NAME for a dataset's queries and passages, or a "
        f"name on the Hub: {DOWNLOAD_NAMES} or owner/name.",
        path="named",
    )
    subset: str | None = option(
        None, f"A subset of a benchmark's tasks. {SUBSET_HELP}.", choices=tuple(SUBSETS)
    )
    trec: str | None = option(
        None,
        "Write TREC run and qrels files to this new folder, one per benchmark and model.",
        metavar="DIRECTORY",
        path="path",
    )
    qrels: str | None = option(
        None,
        "A TREC qrels file: score by its judgments instead of the benchmark's.",
        metavar="FILE",
        path="file",
    )
    ordinary: str | None = option(
        None,
        "Also score on this benchmark without instructions (a BEIR folder, dataset:NAME for a "
        "dataset's queries and passages, or a name on the Hub): whether ordinary retrieval "
        "suffered.",
        metavar="BENCHMARK",
        path="named",
    )
    paraphrases: str | None = option(
        None,
        "Paraphrased instructions of held-out groups, JSON lines {instruction, paraphrase}: "
        "measure paraphrase stability.",
        metavar="FILE",
        path="file",
    )
    pin: str | None = option(
        None,
        "Refuse to evaluate unless the benchmark's content has this sha256, as "
        "`evaluations pin` or an earlier evaluation shows it.",
        metavar="SHA256",
    )
    held_out: float | None = option(
        None, "Share of groups held out; else as in training.", gt=0, lt=1
    )
    held_out_seed: int | None = option(None, "Seed of that choice; else as in training.")
    held_out_groups: Literal["kept", "all", "approved"] | None = option(
        None,
        "Groups that validation kept, all, or those that people approved; else as in training.",
    )
    held_out_judge: str | None = option(
        None, "Only groups that this judge confirmed; else as in training.", metavar="JUDGE"
    )
    bm25_language: str | None = option(
        None,
        "Stemmer and stop words of BM25, none: neither; else the benchmark's language, as far as "
        "it is known, or English. It also chooses the candidates of rerankers and of p-MRR on "
        "held-out groups.",
        choices=(*LANGUAGES, NO_LANGUAGE),
    )
    template: str | None = option(None, "For models without a stored one.")
    query_prefix: str = option("", "For models without a stored one.")
    passage_prefix: str = option("", "For models without a stored one.")
    remote_code: bool = option(False, "Allow running code that comes with a model.")
    with_base: bool = option(
        True,
        "Whether a checkpoint that is given alone is scored with its base model.",
        names=("--with-base/--alone",),
    )

    @field_validator("template")
    @classmethod
    def _usable(cls, given: str | None) -> str | None:
        try:
            return given if given is None else Template(given).text
        except BadInput as error:
            raise BadInput(error.message, error.remedy, code="request_invalid") from error

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if not self.models:
            raise BadInput("no model to evaluate", "give `model=`", code="request_invalid")
        if (self.release is None) == (self.benchmark is None):
            raise BadInput("give either `release=` or `benchmark=`", code="request_invalid")
        if self.subset and not self.benchmark:
            raise BadInput(
                "tasks need a benchmark", "`subset=` requires `benchmark=`", code="request_invalid"
            )
        return self
