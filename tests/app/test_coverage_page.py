"""The Coverage page: numbers beside the map where several corpora share it."""

import numpy as np
from app_pages import open_page
from grown_dataset import grown

from analysis.corpora import load_corpora
from analysis.coverage import coverage_numbers, points_table, to_bytes
from db.analyses import store_analysis
from db.store import Store


def test_two_corpora_on_one_map_have_their_shares_beside_it(sqlite_store: Store) -> None:
    grown(sqlite_store)
    grown(sqlite_store, "other")
    generator = np.random.default_rng(0)
    with sqlite_store.write() as session:
        corpora = load_corpora(session, {"datasets": ["demo", "other"]})
        texts = {row.text for corpus in corpora for row in corpus.texts}
        places = {text: generator.normal(size=2).astype(np.float32) for text in texts}
        vectors = {text: generator.normal(size=8).astype(np.float32) for text in texts}
        numbers = coverage_numbers(corpora, places, vectors, seed=0)
        result = {
            "model": "m",
            "seed": 0,
            "points": 98,
            "different": len(texts),
            "corpora": [{"corpus": each.name, "offline": True} for each in corpora],
            **numbers,
        }
        store_analysis(
            session,
            kind="coverage",
            inputs_sha256="x",
            config={},
            result=result,
            payload=to_bytes(points_table(corpora, places)),
        )
        session.commit()
    page = open_page("coverage")
    assert not page.exception
    frames = [frame.value for frame in page.dataframe]
    shares = next(frame for frame in frames if "Share of the map" in frame)
    assert set(shares["Corpus"]) == {"demo", "other"}
    assert shares["Share of the map"].between(0, 1).all()
    assert any("Covered by" in frame for frame in frames)
