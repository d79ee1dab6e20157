"""Scores of models and the record of their conditions, as rows.

A record is shown as the version wrote it that made it: what this one does not have stays JSON.
"""

from collections.abc import Mapping

from pydantic import ConfigDict, Field, JsonValue

from analysis.figures.means import Mean
from db.rows import SparseRow

Metrics = dict[str, float | None]  # by measure


class Recorded(SparseRow):
    """A part of a record."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)


class BenchmarkContent(Recorded):
    """What a benchmark holds, by the sha256 of its parts."""

    sha256: str = ""
    corpus: str = ""
    queries: str = ""
    judgments: str = ""
    candidates: str = ""
    forms: str = ""
    documents: int = 0
    questions: int = 0
    without_relevant: tuple[str, ...] = ()


class ModelIdentity(Recorded):
    """Which model: its name, the content of its weights, and the release that it was trained on."""

    name: str = ""
    identity: str = ""
    weights_sha256: str | None = None
    revision: str | None = None
    trained_on: str | None = None


class TextRead(Recorded):
    """A text as a model read it: the first of its `count` tokens, None where they are unknown."""

    text: str = ""
    tokens: tuple[str, ...] | None = None
    count: int | None = None


class HeldOutGroups(Recorded):
    """How the held-out groups were chosen, of which `groups` there are."""

    fraction: float = 0.0
    seed: int = 0
    choice: str = ""
    judge: str = ""
    groups: int = 0


class HeldOutRecord(HeldOutGroups):
    """Held-out groups, whether people approved them, and who chose them, by the weights' sha256."""

    approved: bool = False
    validators: Mapping[str, str | None] = {}


class EvaluationRecord(Recorded):
    """Everything that a comparison with an evaluation depends on (`trainer.records.record`)."""

    format: int = 0
    kind: str = ""
    instructions: bool = False
    benchmark: BenchmarkContent = BenchmarkContent()
    downloads: Mapping[str, str] = {}
    pool: str = ""
    depth: int | str = 0
    convention: str = ""
    bm25: str | None = None
    model: ModelIdentity = ModelIdentity()
    template: str | None = None
    prompts: Mapping[str, str | None] = {}
    given_prefixes: Mapping[str, str] | None = None
    chat_template: str | None = None
    paraphrases: str | None = None
    applied: Mapping[str, tuple[TextRead, ...]] = {}
    libraries: Mapping[str, str] = {}
    held_out: HeldOutRecord | None = None


class ModelScored(SparseRow):
    """The scores of a model on a benchmark; `reasons`: why a measure has none."""

    model: str
    checkpoint_id: int | None
    evaluation_id: int
    template: str | None
    prompts: dict[str, str | None]
    metrics: Metrics
    reasons: dict[str, str]
    intervals: dict[str, Mean]
    record: EvaluationRecord


class MeasureCompared(SparseRow):
    """By how much a model is better than the first on a measure, with interval and verdict."""

    queries: int
    clusters: int
    method: str | None
    difference: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    verdict: str


class ModelsCompared(SparseRow):
    """A model compared with the first, or why it is not (`refused`)."""

    first: str
    second: str
    measures: dict[str, MeasureCompared | None]
    refused: tuple[str, ...]


class BenchmarkScored(SparseRow):
    """Models side by side on a benchmark."""

    held_out: HeldOutGroups | None
    notes: tuple[str, ...]
    benchmark: str
    kind: str
    convention: str
    queries: int
    queries_left_out: int = 0
    without_relevant: tuple[str, ...] = ()
    documents: int
    sha256: str
    models: tuple[ModelScored, ...]
    bm25: Metrics | None = None
    bm25_convention: str = ""
    comparisons: tuple[ModelsCompared, ...]


class Evaluated(BenchmarkScored):
    """Models side by side on a benchmark, or on those of a suite (`parts`) and their means.

    `comparisons` are with the first model; `ordinary`: the same of retrieval without instructions.
    """

    parts: tuple[BenchmarkScored, ...] = ()
    ordinary: tuple[BenchmarkScored, ...]
