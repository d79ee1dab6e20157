"""The job `train`: in this process, or by workers on the nodes of a Ray cluster."""

from collections.abc import Mapping

from pydantic import ConfigDict, Field, JsonValue

from db.jobs.runner import JobHandle
from db.rows import Row, SparseRow
from trainer.launch.request import TrainStart
from trainer.records.rows import Metrics


class PrecisionUsed(SparseRow):
    """The type of activations, and what was measured of it (`trainer.loop.precision`)."""

    used: str
    loss_difference: float | None = None
    gradient_cosine: float | None = None
    fp32_seconds: float | None = None
    bf16_seconds: float | None = None


class GainMeasured(SparseRow):
    """By how much a measure rose, with its interval, and in how many groups it rose and fell."""

    value: float
    low: float | None
    high: float | None
    gained: int
    lost: int


class HeldOutMeasured(SparseRow):
    """The scores on held-out groups at both ends of a training, those of BM25, and intervals."""

    groups: int
    before: Metrics
    after: Metrics
    choice: str = ""
    judge: str = ""
    bm25: Mapping[str, float | None] = {}
    bm25_convention: str = ""
    intervals: Mapping[str, Mapping[str, tuple[float | None, float | None]]] = {}
    gain: Mapping[str, GainMeasured] = {}
    notes: tuple[str, ...] = ()


class ProbeMeasured(SparseRow):
    """The scores on the natural probe at both ends of a training, by style too, and BM25's."""

    items: int
    before: Mapping[str, float] = {}
    before_by_style: Mapping[str, float] = {}
    after: Mapping[str, float] = {}
    after_by_style: Mapping[str, float] = {}
    gain: Mapping[str, GainMeasured] = {}
    bm25: Mapping[str, float] = {}


class GuardMeasured(SparseRow):
    """nDCG@10 on the guard's benchmark at both ends of a training."""

    benchmark: str
    ndcg: dict[str, float | None] = Field(alias="ndcg@10")


class Estimate(Row):
    """Steps, seconds and peak of memory of a training, measured on a few of its steps."""

    steps: int
    seconds_per_step: float
    seconds: float
    scoring_seconds: float
    peak_bytes: int
    device: str


class Trained(SparseRow):
    """A checkpoint, how it was trained, and what it scores on the held-out groups and the guard.

    `best_step`: the step whose weights it has; `dtypes` and `precision`: what was computed in. A
    folder that an earlier version completed may remember more.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)

    checkpoint_id: int
    path: str
    offline: bool
    steps: int
    epochs: float | None = None
    seconds: float
    best_step: int | None
    loss_first: float | None
    loss_last: float | None
    dtypes: dict[str, str]
    precision: PrecisionUsed
    held_out: HeldOutMeasured
    natural_probe: ProbeMeasured | None = None
    scoring_seconds: dict[str, float]
    guard: GuardMeasured | None = None


class TrainingEstimated(Row):
    """What a training would take, measured on a few steps."""

    estimate: Estimate


def train(handle: JobHandle) -> Trained | TrainingEstimated:
    """Train as the job's config says, a `TrainStart`. Raises BadInput for an unusable one."""
    wanted = TrainStart.read(handle.config)
    if wanted.workers > 1:
        from trainer.launch.ray_workers import train_on_cluster

        found = train_on_cluster(handle, wanted.workers)
    else:
        from trainer.launch.here import train as train_here

        found = train_here(handle)
    return (TrainingEstimated if wanted.estimate else Trained).model_validate(found)
