"""The jobs of analysis: kind `project` is coverage, kind `embed` everything else.

All load the corpora, look whether the same was computed before, embed what has no vector yet, and
store the result. Stopped or killed, they go on from the vectors there are.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis import coverage as maps
from analysis import diversity as numbers
from analysis import sharing as duplicates
from analysis.corpora import Corpus, corpora_sha256, load_corpora
from analysis.coverage import points_table, to_bytes
from analysis.diversity import Sampling, describe_corpus, sample_sizes
from analysis.embedding import DEFAULT_MODEL, embed_texts, model_identity
from analysis.projection import MIN_DIST, NEIGHBOURS, project
from db.analyses import find_analysis, store_analysis
from db.datasets import text_sha256
from db.job_runner import JobHandle

REPEATS = 5


def diversity(handle: JobHandle) -> dict[str, Any]:
    """Describe corpora; config: `datasets`, `texts`, `run`, `groups`, `model`, and for samples of
    equal size `sample` (texts per field; default: of the smallest corpus), `repeats`, `seed`."""
    corpora = _corpora(handle)
    model = handle.config.get("model") or DEFAULT_MODEL
    size = handle.config.get("sample")
    sampling = Sampling(
        sample_sizes(corpora, None if size is None else int(size)),
        int(handle.config.get("repeats", REPEATS)),
        int(handle.config.get("seed", 0)),
    )
    settings = {
        "version": numbers.VERSION,
        "model": model_identity(model),
        "sample": dict(sampling.size),
        "repeats": sampling.repeats,
        "seed": sampling.seed,
    }
    sha256 = corpora_sha256(corpora, settings)
    if (known := _known(handle, "diversity", sha256)) is not None:
        return known
    vectors = _vectors(handle, corpora, model)
    result = {
        "model": model,
        "corpora": [
            describe_corpus(corpus, lambda texts: _stack(vectors, texts), sampling)
            for corpus in corpora
        ],
    }
    return _keep(handle, "diversity", sha256, corpora, result)


def coverage(handle: JobHandle) -> dict[str, Any]:
    """One map of all corpora; config as for diversity, and `seed`."""
    corpora = _corpora(handle)
    model, seed = handle.config.get("model") or DEFAULT_MODEL, int(handle.config.get("seed", 0))
    settings = {
        "version": maps.VERSION,
        "model": model_identity(model),
        "seed": seed,
        "neighbours": NEIGHBOURS,
        "min_dist": MIN_DIST,
    }
    sha256 = corpora_sha256(corpora, settings)
    if (known := _known(handle, "coverage", sha256)) is not None:
        return known
    vectors = _vectors(handle, corpora, model)
    texts = list(vectors)
    handle.report(len(texts), len(texts), "drawing the map")
    places = project(_stack(vectors, texts), seed=seed)
    table = points_table(corpora, dict(zip(texts, places, strict=True)))
    result = {
        "model": model,
        "seed": seed,
        "points": table.num_rows,
        "different": len(texts),
        "corpora": [
            {
                "corpus": corpus.name,
                "kind": corpus.kind,
                "run_id": corpus.run_id,
                "offline": corpus.offline,
                "points": len(corpus.texts),
            }
            for corpus in corpora
        ],
    }
    return _keep(handle, "coverage", sha256, corpora, result, payload=to_bytes(table))


def near_duplicates(handle: JobHandle) -> dict[str, Any]:
    """Clusters of near-duplicate texts inside and between corpora; config: the corpora."""
    corpora = _corpora(handle)
    sha256 = corpora_sha256(corpora, {"version": duplicates.VERSION})
    if (known := _known(handle, "near_duplicates", sha256)) is not None:
        return known
    handle.report(0, 1, "comparing texts")
    result = duplicates.describe_duplicates(corpora)
    return _keep(handle, "near_duplicates", sha256, corpora, result)


def contamination(handle: JobHandle) -> dict[str, Any]:
    """Texts that the corpora share with evaluation sets; config: the corpora and `against`."""
    corpora = _corpora(handle)
    with handle.store.read() as session:
        against = load_corpora(
            session,
            {
                "published": handle.config.get("against"),
                "datasets": handle.config.get("against_datasets"),
                "groups": "all",
            },
        )
    sha256 = corpora_sha256([*corpora, *against], {"version": duplicates.VERSION})
    sha256 = text_sha256(f"{sha256} {len(corpora)}")
    if (known := _known(handle, "contamination", sha256)) is not None:
        return known
    handle.report(0, 1, "comparing texts")
    result = duplicates.describe_contamination(corpora, against)
    return _keep(handle, "contamination", sha256, corpora, result)


def _corpora(handle: JobHandle) -> list[Corpus]:
    with handle.store.read() as session:
        return load_corpora(session, handle.config)


def _vectors(handle: JobHandle, corpora: Sequence[Corpus], model: str) -> dict[str, np.ndarray]:
    texts = list(dict.fromkeys(row.text for corpus in corpora for row in corpus.texts))
    rows = embed_texts(
        handle.store,
        texts,
        model=model,
        progress=lambda done, total: handle.report(done, total, "embedding"),
        check=handle.check,
    )
    return dict(zip(texts, rows, strict=True))


def _stack(vectors: dict[str, np.ndarray], texts: Sequence[str]) -> np.ndarray:
    return np.stack([vectors[text] for text in texts]) if texts else np.zeros((0, 0), np.float32)


def _known(handle: JobHandle, kind: str, sha256: str) -> dict[str, Any] | None:
    with handle.store.read() as session:
        found = find_analysis(session, kind, sha256)
        return None if found is None else {"analysis_id": found.id, "known": True, **found.result}


def _keep(
    handle: JobHandle,
    kind: str,
    sha256: str,
    corpora: Sequence[Corpus],
    result: dict[str, Any],
    payload: bytes | None = None,
) -> dict[str, Any]:
    with handle.store.write() as session:
        analysis_id = store_analysis(
            session,
            kind=kind,
            inputs_sha256=sha256,
            config=handle.config,
            result=result,
            payload=payload,
            dataset_id=corpora[0].dataset_id if len(corpora) == 1 else None,
            job_id=handle.id,
        ).id
        session.commit()
    return {"analysis_id": analysis_id, "known": False, **result}
