"""The facts of a dataset card: plain values, gathered by `curation.release.card.gathering`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from db.shape import Shape


@dataclass(frozen=True)
class Stage:
    """A task of the recipe: its model, and its prompt by name and sha256."""

    task: str
    model: str
    prompt: str
    prompt_sha256: str


@dataclass(frozen=True)
class RunFacts:
    """A run in the release: its dataset, how it was made, and how many of its groups are here.

    `by_licence`: groups in the release by licence, None in a preview of many groups.
    `servers`: where its models answered, as a card may name them.
    `verdict_version`: whose verdicts these are, with the `rules` that differ from the recipe's.
    `duplicates`: groups left out because another run of the release has their pair.
    """

    dataset: str
    source: str
    run_id: int
    status: str
    provider: str
    offline: bool
    recipe: str
    recipe_sha256: str
    stages: Sequence[Stage]
    validation: dict[str, Any]
    filters: dict[str, Any]
    review_counts: dict[str, int]
    pairs: int
    reached: dict[str, int]
    kept: int
    dropped: dict[str, int]
    by_licence: dict[str, int] | None
    duplicates: int = 0
    prompts: dict[str, str] = field(default_factory=dict)
    origin: str = ""
    servers: tuple[str, ...] = ()
    verdict_version: int = 1
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class CardFacts:
    """All values in the card; `runs` in their order of precedence."""

    title: str
    shape: Shape
    runs: Sequence[RunFacts]
    licences: Sequence[str]
    reviews: str
    include_dropped: bool
    verdicts: dict[str, int]
    splits: dict[str, int]
    files: Sequence[dict[str, Any]]
    sources: dict[str, int]
    chosen: Sequence[str]
    held_out: float
    held_out_by: str
    seed: int
    format: str
    texts: dict[str, dict[str, Any]]
    content_sha256: str
    findings: Sequence[str] = ()
    agreement: Sequence[dict[str, Any]] = ()
    """The coefficients of the runs' studies (`curation.release.agreement.agreement_metadata`)."""
    rescued: int = 0
    """Groups that the filter dropped and a person approved."""
    languages: dict[str, int] = field(default_factory=dict)

    @property
    def offline(self) -> bool:
        """Whether the offline provider wrote any group."""
        return any(run.offline for run in self.runs)
