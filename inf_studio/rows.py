"""What rows hold, for type checkers and completion. Written by `tests/typed_rows.py`."""

from __future__ import annotations

from typing import Any, TypedDict


class BenchmarkContent(TypedDict):
    """What a benchmark holds, by the sha256 of its parts."""

    sha256: str
    corpus: str
    queries: str
    judgments: str
    candidates: str
    forms: str
    documents: int
    questions: int
    without_relevant: list[str]


class DatasetRow(TypedDict):
    """A dataset with its counts; `generated`: passages that runs wrote, beyond `passages`."""

    id: int
    name: str
    pairs: int
    passages: int
    generated: int
    source: str
    licence: str
    created_at: str
    archived_at: str | None


class Difference(TypedDict):
    """The difference of an evaluation to its base on a measure; `name`: of its model."""

    id: int
    name: str
    benchmark: str
    measure: str
    difference: float
    low: float | None
    high: float | None
    p_holm: float | None
    verdict: str
    queries: int
    gained: int
    lost: int
    clusters: int
    method: str | None
    model: str


class DropExample(TypedDict):
    """A dropped group: by its id, and what exactly was found."""

    id: int
    query: str
    detail: str


class DropRow(TypedDict):
    """A reason for which groups of a run were dropped, what it means, and some of them."""

    reason: str
    meaning: str
    groups: int
    examples: list[DropExample]


class EvaluationRecord(TypedDict):
    """Everything that a comparison with an evaluation depends on (`trainer.records.record`)."""

    format: int
    kind: str
    instructions: bool
    benchmark: BenchmarkContent
    downloads: dict[str, str]
    pool: str
    depth: int | str
    convention: str
    bm25: str | None
    model: ModelIdentity
    template: str | None
    prompts: dict[str, str | None]
    given_prefixes: dict[str, str] | None
    chat_template: str | None
    paraphrases: str | None
    applied: dict[str, list[TextRead]]
    libraries: dict[str, str]
    held_out: HeldOutRecord | None


class EvaluationRow(TypedDict):
    """The scores of a model on a benchmark, in a list; without a record it is not comparable."""

    id: int
    name: str
    model: str
    benchmark: str
    metrics: dict[str, float | None]
    has_record: bool
    trained: bool | None
    checkpoint_id: int | None
    job_id: int | None
    created_at: str


class FunnelRow(TypedDict):
    """How many groups of a run reached each stage, and were dropped by reason."""

    waiting: int
    in_work: int
    reached: dict[str, int]
    dropped: dict[str, int]


class GroupRow(TypedDict):
    """A group in a list; `name` is its query's id in the source, `instruction` "" if none is
    there."""

    id: int
    name: str
    query: str
    instruction: str
    stage: str
    state: str
    verdict: str | None
    drop_reason: str | None
    review: str | None
    review_id: int | None
    is_complete: bool


class HeldOutRecord(TypedDict):
    """Held-out groups, whether people approved them, and who chose them, by the weights' sha256."""

    fraction: float
    seed: int
    choice: str
    judge: str
    groups: int
    approved: bool
    validators: dict[str, str | None]


class JobRow(TypedDict):
    """A job in a list: `done` of `total` pieces, a `share` of the work; `summary`: its outcome."""

    id: int
    kind: str
    status: str
    done: int
    total: int | None
    share: float | None
    message: str
    error: str | None
    code: str | None
    remedy: str | None
    started_by: str
    attempt: int
    summary: str
    created_at: str
    started_at: str | None
    heartbeat_at: str | None
    finished_at: str | None
    name: str


class JudgeProgress(TypedDict):
    """How many of a study's items a judge has answered."""

    judge_id: int
    judge: str
    kind: str
    simulated: bool
    offline: bool
    judged: int


class ListedJudgment(TypedDict):
    """A judgment in a list; `choice`: a candidate's label, "none" or "ambiguous"."""

    id: int
    item_id: int
    judge_id: int
    judge: str
    kind: str
    simulated: bool
    offline: bool
    choice: str
    note: str
    flagged: bool
    reason: str
    shown_at: str | None
    decided_at: str
    name: str


class ModelIdentity(TypedDict):
    """Which model: its name, the content of its weights, and the release that it was trained on."""

    name: str
    identity: str
    weights_sha256: str | None
    revision: str | None
    trained_on: str | None


class ModelRow(TypedDict):
    """A trained model in a list; `offline`: of data without a language model."""

    id: int
    name: str
    base_model: str
    objective: str | None
    release_id: int | None
    offline: bool
    job_id: int | None
    path: str
    created_at: str


class PairView(TypedDict):
    """A query and the passage that answers it; `language` is a programming language or ""."""

    id: int
    query_id: str
    query: str
    passage_id: str
    passage: str
    language: str


class PartExample(TypedDict):
    """Where a shared part stands, with what is around it."""

    group_id: int
    sign: str
    text: str


class PushRow(TypedDict):
    """A push that arrived: at which repository and address, under which tag, when."""

    repo: str
    url: str
    tag: str | None
    at: str


class ReleaseRow(TypedDict):
    """A release in a list. `path` is its folder on the server, or its URL."""

    id: int
    name: str
    dataset_id: int
    groups: int | None
    reviews: str
    format: str
    offline: bool
    created_at: str
    created_by: str
    pushed_to: list[str]
    pushes: list[PushRow]
    content_sha256: str
    path: str
    filter: dict[str, Any]


class RunSummary(TypedDict):
    """A run in a list."""

    id: int
    name: str
    dataset: str
    dataset_id: int
    recipe: str
    recipe_sha256: str
    recipe_version: int | None
    provider: str
    connection: str | None
    url: str | None
    offline: bool
    status: str
    archived: bool
    verdict_version: int
    pairs: int
    kept: int
    dropped: int
    spent_usd: float
    budget_usd: float | None
    created_by: str
    created_at: str
    finished_at: str | None
    error: str | None


class SharedPart(TypedDict):
    """What generated texts share: where, in how many of each sign, and in how many sources."""

    text: str
    where: str
    counts: dict[str, int]
    sources: int
    examples: list[PartExample]


class SharedParts(TypedDict):
    """What the texts of `groups` share, most frequent first; without enough pairs the reason."""

    groups: int
    version: int
    pairs: int
    parts: list[SharedPart]
    reason: str


class StudySummary(TypedDict):
    """A study in a list: its settings, and `done` of `places` judgments by people."""

    id: int
    name: str
    dataset: str
    run_id: int | None
    status: str
    items: int
    overlap: int
    seed: int
    places: int
    done: int
    created_by: str
    created_at: str


class TextBaseline(TypedDict):
    """The figures over `items` of `groups` groups, `sampled` if there are more of these."""

    items: int
    groups: int
    sampled: bool
    found: float
    low: float
    high: float
    chance: float
    foreign: int


class TextRead(TypedDict):
    """A text as a model read it: the first of its `count` tokens, None where they are unknown."""

    text: str
    tokens: list[str] | None
    count: int | None


class TrainingRow(TypedDict):
    """A training in a list, and its measures on held-out groups by name
    (`trainer.report.scored`)."""

    id: int
    name: str
    status: str
    release: str
    base_model: str
    objective: str
    seed: int | str
    estimate: bool
    sweep: str | None
    checkpoint_id: int | None
    started_by: str
    created_at: str
    finished_at: str | None


class DatasetShownKeys:
    """A dataset with the sources of its pairs, the ids of its runs, and what depends on it."""

    id: int
    name: str
    pairs: int
    passages: int
    generated: int
    source: str
    licence: str
    created_at: str
    archived_at: str | None
    sources: list[str]
    runs: list[int]
    dependents: list[str]


class RunShownKeys:
    """A run with its progress and what depends on it."""

    id: int
    name: str
    dataset: str
    dataset_id: int
    recipe: str
    recipe_sha256: str
    recipe_version: int | None
    provider: str
    connection: str | None
    url: str | None
    offline: bool
    status: str
    archived: bool
    verdict_version: int
    pairs: int
    kept: int
    dropped: int
    spent_usd: float
    budget_usd: float | None
    created_by: str
    created_at: str
    finished_at: str | None
    error: str | None
    seed: int
    concurrency: int
    batch: bool
    models: dict[str, dict[str, str | None]] | None
    funnel: FunnelRow
    texts: dict[str, int]
    reviews: dict[str, int]
    text_baseline: TextBaseline | None
    unanswered_usd: float
    died_in_flight: int
    workers: int
    waiting: str
    shared_parts: SharedParts | None
    unchecked: bool
    dependents: list[str]


class StudyShownKeys:
    """A study with what its items were sampled from and how (`settings`), and its judges."""

    id: int
    name: str
    dataset: str
    run_id: int | None
    status: str
    items: int
    overlap: int
    seed: int
    places: int
    done: int
    created_by: str
    created_at: str
    settings: dict[str, Any]
    scenarios: dict[str, int]
    verdicts: dict[str, int]
    judges: list[JudgeProgress]


class ReleaseShownKeys:
    """A release with its dataset card."""

    id: int
    name: str
    dataset_id: int
    groups: int | None
    reviews: str
    format: str
    offline: bool
    created_at: str
    created_by: str
    pushed_to: list[str]
    pushes: list[PushRow]
    content_sha256: str
    path: str
    filter: dict[str, Any]
    card: str


class TrainingShownKeys:
    """A training with its settings, what it measured as rows, and the result of its job."""

    id: int
    name: str
    status: str
    release: str
    base_model: str
    objective: str
    seed: int | str
    estimate: bool
    sweep: str | None
    checkpoint_id: int | None
    started_by: str
    created_at: str
    finished_at: str | None
    settings: dict[str, Any]
    error: str | None
    scores: list[Any]
    intervals: list[Any]
    notes: list[str]
    result: dict[str, Any] | None


class ModelShownKeys:
    """A trained model with its settings and what its training reported."""

    id: int
    name: str
    base_model: str
    objective: str | None
    release_id: int | None
    offline: bool
    job_id: int | None
    path: str
    created_at: str
    settings: dict[str, Any]
    summary: dict[str, Any]


class EvaluationShownKeys:
    """An evaluation with the record of its conditions; `queries`: with stored values."""

    id: int
    name: str
    model: str
    benchmark: str
    metrics: dict[str, float | None]
    has_record: bool
    trained: bool | None
    checkpoint_id: int | None
    job_id: int | None
    created_at: str
    queries: int
    record: EvaluationRecord


class JobShownKeys:
    """A job with its config, its result, and where it runs."""

    id: int
    kind: str
    status: str
    done: int
    total: int | None
    share: float | None
    message: str
    error: str | None
    code: str | None
    remedy: str | None
    started_by: str
    attempt: int
    summary: str
    created_at: str
    started_at: str | None
    heartbeat_at: str | None
    finished_at: str | None
    command: str
    host: str | None
    pid: int | None
    slot: str | None
    launcher: str
    resources: dict[str, Any]
    config: dict[str, Any]
    result: dict[str, Any] | None
    warning: str | None
    name: str


class RunEstimateKeys:
    """Calls, tokens, cost and time of a run before it starts; `usd` is None without a price."""

    dataset_id: int
    batch: bool
    pairs: int
    stages: list[Any]
    usd: float | None
    unpriced: list[str]
    hours: float | None
    concurrency: int
    seconds_per_call: float
    measured_usd: float | None
    reason: str | None


class ComparedKeys:
    """Differences of evaluations to a base on its benchmark: a row per model and measure."""

    data: list[Difference]
    next: int | None
    total: int
    id: int
    name: str
    benchmark: str
    base: str
    notes: list[str]
    method: str
