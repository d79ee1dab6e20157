"""What analyses of texts find, as rows; light, for whoever shows what is stored.

A key that there is nothing for is left out of JSON. An earlier version stored more, which is not
read, and less: what it lacked has a default.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, Self, TypeVar

from pydantic import AliasChoices, ConfigDict, Field

from db.rows import SparseRow
from db.tables import Analysis


class Part(SparseRow):
    """A part of what is stored."""

    model_config = ConfigDict(extra="ignore")


class CorpusRow(Part):
    """A corpus of an analysis: its name, what it is of, and whether a model wrote it."""

    corpus: str = Field(validation_alias=AliasChoices("corpus", "name"))
    kind: str = ""
    dataset_id: int | None = None
    run_id: int | None = None
    offline: bool = False


class CorpusTexts(CorpusRow):
    """A corpus whose texts are compared."""

    texts: int = 0


class CorpusPoints(CorpusRow):
    """A corpus on a map."""

    points: int = 0


class Analysed(Part):
    """What was found of corpora, stored as the analysis of that id, which it has when it is;
    `known`: it was computed before."""

    KIND: ClassVar[str] = ""
    analysis_id: int = 0
    known: bool = False
    corpora: tuple[CorpusRow, ...]

    @classmethod
    def stored(cls, found: Analysis) -> Self:
        """What an analysis of this kind holds, of an earlier version, too."""
        return cls.model_validate({"analysis_id": found.id, "known": True} | found.result)


F = TypeVar("F", bound=Analysed)


@dataclass(frozen=True)
class Stored(Generic[F]):
    """A stored analysis: by its inputs' hash, of a config, and what it found."""

    id: int
    kind: str
    inputs_sha256: str
    created_at: datetime
    config: Mapping[str, Any]
    result: F

    @classmethod
    def of(cls, row: type[F], found: Analysis) -> Self:
        """The analysis whose result is such a row."""
        about = (found.id, found.kind, found.inputs_sha256, found.created_at, found.config)
        return cls(*about, row.stored(found))


class Spread(Part):
    """A metric over samples: mean and standard deviation, which a single draw lacks."""

    mean: float
    sd: float | None
    draws: int = 0


class Sampled(Part):
    """Metrics of samples of one size; `reason`: why, by metric, one has no value."""

    size: int
    repeats: int
    seed: int = 0
    aps: Spread | None
    ingf_2: Spread | None
    ingf_3: Spread | None
    reason: Mapping[str, str] = {}


class Halves(Part):
    """By how much two disjoint samples of a corpus differ in each metric."""

    size: int
    repeats: int
    aps: float | None
    ingf_2: float | None
    ingf_3: float | None
    reason: str = ""


class TextNumbers(Part):
    """Counts and metrics of texts; `reason`: why, by metric, one has no value; `sign`: of the
    texts, where InF-IR has another for their field and role."""

    sign: str = ""
    texts: int
    different: int = 0
    mean_words: float | None = None
    aps: float | None = None
    ingf_2: float | None = None
    ingf_3: float | None = None
    reason: Mapping[str, str] = {}


class FieldNumbers(TextNumbers):
    """The texts of a field: all of them, samples of them, and by role."""

    sampled: Sampled | None = None
    halves: Halves | None = None
    by_role: Mapping[str, TextNumbers] = {}


class CorpusDiversity(CorpusRow):
    """The diversity of a corpus by field; `dropped`: its run's groups by reason."""

    dropped: dict[str, int] | None = None
    groups: int = 0
    fields: dict[str, FieldNumbers]


class DiversityFound(Analysed):
    """Diversity by corpus and field, with the vectors of a model."""

    KIND = "diversity"
    corpora: tuple[CorpusDiversity, ...]
    model: str


class TextPlace(Part):
    """A text and where it stands."""

    corpus: str
    field: str
    role: str
    group_id: int | None
    text: str


class Cluster(Part):
    """Texts of a field that are near-duplicates of each other."""

    field: str
    texts: tuple[TextPlace, ...]


class FieldClusters(Part):
    """Near-duplicates of a field: clusters, their texts, those that repeat another, and clusters
    of several corpora."""

    clusters: int
    texts: int
    repeated: int
    between: int


class DuplicatesFound(Analysed):
    """Counts by field, and the largest clusters of near-duplicate texts."""

    KIND = "near_duplicates"
    corpora: tuple[CorpusTexts, ...]
    fields: Mapping[str, FieldClusters] = {}
    clusters: tuple[Cluster, ...] = ()


class ParaphrasedBy(Part):
    """How paraphrased questions were looked for."""

    model: str
    threshold: float


class OverlapPair(Part):
    """A text that overlaps with one of an evaluation set, and the groups that contain it."""

    how: str
    share: float
    corpus: str
    field: str
    role: str
    group_id: int | None
    text: str
    groups: tuple[int, ...]
    against: TextPlace


class ContaminationFound(Analysed):
    """How many texts overlap with those of `against`, and how; `groups`: the ids of theirs."""

    KIND = "contamination"
    corpora: tuple[CorpusTexts, ...]
    against: tuple[CorpusTexts, ...]
    overlapping: int = 0
    texts: int
    how: Mapping[str, int] = {}
    groups: tuple[int, ...] = ()
    paraphrases: ParaphrasedBy | None = None
    pairs: tuple[OverlapPair, ...] = ()


class FieldCovered(Part):
    """The share of the map and of the hull that the texts of a corpus and field take."""

    different: int
    occupied_share: float | None
    hull_share: float | None
    reason: str = ""


class CoveredBy(Part):
    """How much of `corpus` another one covers, by equally many texts: means over repeats, their
    standard deviations, and the same of two halves of the corpus.

    An analysis of before samples of equal size has none.
    """

    field: str
    corpus: str
    by: str
    k: int = 0
    repeats: int = 0
    size: int = 0
    share: float | None = None
    share_sd: float | None = None
    map: float | None = None
    map_sd: float | None = None
    hull: float | None = None
    hull_sd: float | None = None
    share_halves: float | None = None
    map_halves: float | None = None
    hull_halves: float | None = None
    reason: str = ""


class CoverageNumbers(Part):
    """Shares by field and corpus, and what covers what."""

    fields: dict[str, dict[str, FieldCovered]]
    covered: tuple[CoveredBy, ...]


class CoverageFound(Analysed):
    """The map of `points` texts: shares by field and corpus, and what covers what.

    `circular`: a sentence where a validator embeds the map of the groups that it chose. It is of
    now, not of the stored map: what validated a run may be recorded later.
    """

    KIND = "coverage"
    corpora: tuple[CorpusPoints, ...]
    model: str
    model_sha256: str | None = None
    seed: int = 0
    onto: int | None = None
    points: int
    different: int = 0
    fitted: int = 0
    neighbours: int = 0
    min_dist: float = 0.0
    fields: Mapping[str, Mapping[str, FieldCovered]] = {}
    covered: tuple[CoveredBy, ...] = ()
    circular: str = ""
