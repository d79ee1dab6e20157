"""What mining hard negatives takes and reports, behind every door."""

from typing import Literal

from analysis.embed.model_source import DEFAULT_MODEL
from curation.servers.patient import Patient
from db.requests import option
from db.rows import Row

Source = Literal["bm25", "embedding"]


class NegativesMine(Patient):
    """Hard negatives for the pairs of a dataset, given to them or written to a file."""

    name: str = option(..., "The dataset with the pairs.", names=(), metavar="DATASET")
    out: str | None = option(
        None,
        "A file to write, JSON lines; without it the pairs get them.",
        metavar="FILE",
        path="path",
    )
    by: tuple[Source, ...] = option(("bm25",), "How they are found; repeatable.")
    corpus: str | None = option(
        None, "Among the passages of this dataset; default: of its own.", metavar="DATASET"
    )
    count: int = option(4, "Negatives of each pair.", ge=1, le=200)
    depth: int = option(50, "Passages that are looked at for each pair and source.", ge=1, le=1000)
    judge: str | None = option(
        None, "The judge that removes what answers, as in `studies judge`; default: no check."
    )
    margin: float = option(
        0.95, "By embedding: the largest score, as a share of the right passage's.", gt=0, le=1
    )
    model: str = option(DEFAULT_MODEL, "The embedding model.")
    language: str = option(
        "", "The language of BM25's stemmer and stop words, or none. Default: that of the passages."
    )
    keep: bool = option(
        False, "With a file, also give them to the pairs; runs with a place for them take them."
    )
    seed: int = option(0, "Seed of the order in which the judge sees two passages.")


class NegativesMined(Row):
    """Negatives that were found: `pairs_without` any; those that a judge removed because they are
    `answering`, or could not judge (`unusable`); how many pairs have new ones now (`kept`)."""

    dataset: str
    out: str | None
    judge: str | None
    pairs: int
    corpus: int
    negatives: int = 0
    pairs_without: int = 0
    answering: int = 0
    unusable: int = 0
    kept: int = 0
