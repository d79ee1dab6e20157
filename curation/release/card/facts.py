"""The facts of a dataset card: plain values, gathered by `curation.release.card.gathering`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Stage:
    """A task of the recipe: its model, and its prompt by name and sha256."""

    task: str
    model: str
    prompt: str
    prompt_sha256: str


@dataclass(frozen=True)
class CardFacts:
    """All values in the card."""

    title: str
    dataset: str
    source: str
    licences: Sequence[str]
    run_id: int
    run_status: str
    provider: str
    offline: bool
    recipe: str
    recipe_sha256: str
    stages: Sequence[Stage]
    validation: dict[str, Any]
    filters: dict[str, Any]
    reviews: str
    review_counts: dict[str, int]
    include_dropped: bool
    verdicts: dict[str, int]
    splits: dict[str, int]
    files: Sequence[dict[str, Any]]
    sources: dict[str, int]
    chosen: Sequence[str]
    held_out: float
    seed: int
    format: str
    texts: dict[str, dict[str, Any]]
    pairs: int
    reached: dict[str, int]
    kept: int
    dropped: dict[str, int]
    content_sha256: str
    prompts: dict[str, str] = field(default_factory=dict)
    findings: Sequence[str] = ()
    origin: str = ""
    languages: dict[str, int] = field(default_factory=dict)
