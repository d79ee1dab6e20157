"""Ordinary retrieval on a dataset of the store: Q+ alone against all its passages.

For where no BEIR folder is at hand. Named `dataset:NAME`.
"""

from db.corpus.retrieval import dataset_retrieval
from db.errors import BadInput
from db.outcome.independence import DATASET
from db.store.store import Store
from trainer.evaluate.benchmarks import Benchmark, Question


def dataset_benchmark(store: Store, name: str) -> Benchmark:
    """The benchmark of a dataset. Raises NotFound, and BadInput where it has no pair."""
    with store.read() as session:
        queries, passages, relevant = dataset_retrieval(session, name)
    if not queries:
        raise BadInput(
            f"dataset {name!r} has no pair of a query and a passage to measure by",
            "import some with `datasets import NAME pairs=FILE`",
            code="dataset_without_pairs",
        )
    return Benchmark(
        name=f"{DATASET}{name}",
        kind="dataset",
        convention="every query of the dataset alone, without an instruction, against all its "
        "passages with their titles (equal ones once, generated ones left out); right are the "
        "passages that it is paired with; ties by score, then id, both descending",
        questions={key: Question("", query) for key, query in queries.items()},
        corpus=passages,
        judgments={key: dict.fromkeys(of, 1) for key, of in relevant.items()},
    )
