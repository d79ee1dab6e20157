"""Analyses of texts of the store, stored as a job would, of vectors that need no model."""

from typing import Any

import numpy as np

from analysis.files.corpora import load_corpora
from analysis.found.texts import Analysed, DiversityFound
from analysis.map.coverage import coverage_numbers, points_table, to_bytes
from analysis.text.diversity import Sampling, describe_corpus, sample_sizes
from db.outcome.analyses import store_analysis
from db.store.store import Store


def described(store: Store, **config: Any) -> DiversityFound:
    """A diversity result of corpora of the store, of vectors drawn by the length of the text."""
    with store.read() as session:
        corpora = load_corpora(session, config)
    sampling = Sampling(sample_sizes(corpora, None), 3, 0)

    def vectors(texts: Any) -> np.ndarray:
        found = np.array([[len(text), 1.0, text.count("e")] for text in texts], dtype=np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    found = tuple(describe_corpus(corpus, vectors, sampling) for corpus in corpora)
    return DiversityFound(corpora=found, model="m")


def kept(store: Store, config: dict[str, Any], result: Analysed) -> None:
    with store.write() as session:
        store_analysis(
            session,
            kind=result.KIND,
            inputs_sha256="a" * 64,
            config=config,
            result=result.as_json(),
            job_id=None,
        )
        session.commit()


def mapped(store: Store, *datasets: str, pairs: bool = False, groups: str = "kept") -> None:
    """One map of the data sets, their texts placed and embedded by chance."""
    generator = np.random.default_rng(0)
    with store.write() as session:
        config = {"datasets": list(datasets), "pairs": pairs, "groups": groups}
        corpora = load_corpora(session, config)
        texts = sorted({row.text for corpus in corpora for row in corpus.texts})
        places = {text: generator.normal(size=2).astype(np.float32) for text in texts}
        vectors = {text: generator.normal(size=8).astype(np.float32) for text in texts}
        result = {
            "model": "m",
            "seed": 0,
            "points": sum(len(corpus.texts) for corpus in corpora),
            "different": len(texts),
            "corpora": [
                {"corpus": each.name, "kind": each.kind, "offline": True} for each in corpora
            ],
            **coverage_numbers(corpora, places, vectors, seed=0).as_json(),
        }
        store_analysis(
            session,
            kind="coverage",
            inputs_sha256="x",
            config={},
            result=result,
            payload=to_bytes(points_table(corpora, places, set(places))),
        )
        session.commit()
