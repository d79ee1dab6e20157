"""What mining hard negatives takes: the request of the operation and of its command."""

from typing import Literal

from analysis.embed.model_source import DEFAULT_MODEL
from db.requests import Request, option

Source = Literal["bm25", "embedding"]


class NegativesMine(Request):
    """Hard negatives for the pairs of a dataset, written to a file."""

    name: str = option(..., "The dataset with the pairs.", names=(), metavar="DATASET")
    out: str = option(..., "The file to write, JSON lines.", metavar="FILE", path="path")
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
        False, "Also give them to the pairs, as negatives that runs with a place for them take."
    )
    seed: int = option(0, "Seed of the order in which the judge sees two passages.")
