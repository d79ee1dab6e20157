"""The jobs of analysis: kind `project` is coverage, kind `embed` everything else.

All load the corpora, look whether the same was computed before, embed what has no vector yet, and
store the result. Stopped or killed, they go on from the vectors there are, near-duplicates and maps
also from their `analysis.parts`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from analysis.embed.embedding import VectorsOnDisk, model_identity, vectors_on_disk
from analysis.embed.independence import map_sentence
from analysis.embed.model_hash import model_sha256
from analysis.embed.model_source import DEFAULT_MODEL
from analysis.files.corpora import Chosen, Corpus, corpora_sha256, load_corpora
from analysis.found.texts import (
    Analysed,
    ContaminationFound,
    CorpusPoints,
    CoverageFound,
    DiversityFound,
    DuplicatesFound,
    F,
)
from analysis.map import coverage as maps
from analysis.map.clusters import with_clusters
from analysis.map.coverage import (
    ByText,
    VectorRows,
    add_points,
    coverage_numbers,
    fitted_places,
    points_table,
    read_table,
    require_storable,
    to_bytes,
)
from analysis.map.projection import MIN_DIST, NEIGHBOURS, place, project
from analysis.parts import Keep, Parts, delete_parts
from analysis.request import (
    ContaminationStart,
    CorporaChosen,
    CoverageStart,
    DiversityStart,
    DuplicatesStart,
)
from analysis.text import diversity as numbers
from analysis.text import sharing as duplicates
from analysis.text.diversity import Sampling, describe_corpus, sample_sizes
from analysis.text.near_duplicates import firsts_of
from db.corpus.datasets import text_sha256
from db.corpus.embeddings import cached_vectors
from db.errors import BadInput
from db.extras import require_modules
from db.jobs.runner import JobHandle
from db.outcome.analyses import find_analysis, get_analysis, store_analysis
from db.tables import Analysis

MAX_FITTED = 20_000


def embed(handle: JobHandle) -> Analysed:
    """Diversity, near-duplicates or contamination of corpora, as the config's `what` says."""
    measures: dict[str, Callable[[JobHandle], Analysed]] = {
        "diversity": diversity,
        "near_duplicates": near_duplicates,
        "contamination": contamination,
    }
    return measures[handle.config.get("what", "diversity")](handle)


def diversity(handle: JobHandle) -> DiversityFound:
    """Describe corpora, and samples of equal size of them; config DiversityStart."""
    request = DiversityStart.read(handle.config)
    corpora = _corpora(handle, request)
    model = request.model or DEFAULT_MODEL
    sampling = Sampling(sample_sizes(corpora, request.sample), request.repeats, request.seed)
    settings = {
        "version": numbers.VERSION,
        "model": model_identity(model),
        "sample": dict(sampling.size),
        "repeats": sampling.repeats,
        "seed": sampling.seed,
    }
    sha256 = corpora_sha256(corpora, settings)
    if (known := _known(handle, DiversityFound, sha256)) is not None:
        return known
    vectors = _vectors(handle, corpora, model)
    result = DiversityFound(
        model=model,
        corpora=tuple(
            describe_corpus(corpus, lambda texts: _stack(vectors, texts), sampling)
            for corpus in corpora
        ),
    )
    return _keep(handle, sha256, corpora, result)


def coverage(handle: JobHandle) -> CoverageFound:
    """One map of all corpora; config CoverageStart."""
    found = _map(handle)
    with handle.store.read() as session:
        sentence = map_sentence(session, found)
    return found.model_copy(update={"circular": sentence} if sentence else {})


def _map(handle: JobHandle) -> CoverageFound:
    request = CoverageStart.read(handle.config)
    corpora, onto, seed = _corpora(handle, request), request.onto, request.seed
    before = None if onto is None else _stored_map(handle, onto)
    model = _model_of(request, before)
    most = request.fit or MAX_FITTED
    settings = {
        "version": maps.VERSION,
        "model": model_identity(model),
        "seed": seed,
        "neighbours": NEIGHBOURS,
        "min_dist": MIN_DIST,
        "fit": most,
        "onto": onto,
    }
    sha256 = corpora_sha256(corpora, settings)
    if (known := _known(handle, CoverageFound, sha256)) is not None:
        return known
    require_modules("umap")  # texts are embedded first, which takes minutes
    require_storable(corpora)
    keep = Parts(sha256, handle.check).keep
    vectors = _vectors(handle, corpora, model)
    handle.report(len(vectors), len(vectors), "computing the map")
    texts, whole = vectors.texts, vectors.rows
    if before is None:
        points, chosen = _fitted(whole, most, seed, keep)
    else:
        vectors_of_map, map_ = _map_vectors(handle, before, model)
        points = place(whole, vectors_of_map, map_, seed=seed, keep=keep)
        chosen = np.zeros(0, np.int64)
    places = vectors.placed(points)
    table = points_table(corpora, places, {texts[int(number)] for number in chosen})
    if before is not None:
        table = add_points(read_table(before.payload or b""), table)
    table = with_clusters(table, seed=seed)
    numbers = coverage_numbers(corpora, places, vectors, seed=seed)
    result = CoverageFound(
        model=model,
        model_sha256=model_sha256(model),
        seed=seed,
        onto=onto,
        points=sum(len(corpus.texts) for corpus in corpora),
        different=len(texts),
        fitted=len(chosen),
        neighbours=NEIGHBOURS,
        min_dist=MIN_DIST,
        corpora=tuple(
            CorpusPoints(
                corpus=corpus.name,
                kind=corpus.kind,
                dataset_id=corpus.dataset_id,
                run_id=corpus.run_id,
                offline=corpus.offline,
                points=len(corpus.texts),
            )
            for corpus in corpora
        ),
        fields=numbers.fields,
        covered=numbers.covered,
    )
    return _keep(handle, sha256, corpora, result, payload=to_bytes(table))


def _fitted(vectors: Any, most: int, seed: int, keep: Keep) -> tuple[np.ndarray, np.ndarray]:
    """The map of the vectors and which of them, at most `most`, it was fitted on."""
    if len(vectors) <= most:
        return keep("map", lambda: project(vectors[:], seed=seed)), np.arange(len(vectors))
    chosen = np.sort(np.random.default_rng(seed).choice(len(vectors), most, replace=False))
    map_ = keep("map", lambda: project(vectors[chosen], seed=seed))
    return place(vectors, vectors[chosen], map_, seed=seed, keep=keep), chosen


def _stored_map(handle: JobHandle, analysis_id: int) -> Analysis:
    with handle.store.read() as session:
        stored = get_analysis(session, analysis_id)
    if stored.kind != "coverage" or stored.payload is None:
        raise BadInput(
            f"analysis {analysis_id} is no map",
            "`analyses coverage` makes one",
            code="analysis_not_map",
        )
    return stored


def _model_of(request: CoverageStart, map_: Analysis | None) -> str:
    """The requested model, or that of a stored map. Raises BadInput where the two differ."""
    requested = request.model
    if map_ is None:
        return requested or DEFAULT_MODEL
    map_model: str = map_.result["model"]
    if requested and requested != map_model:
        raise BadInput(
            f"the map {map_.id} was computed with the model {map_model}, not with {requested}",
            "omit `model=`, or compute a new map",
            code="map_model_differs",
        )
    return map_model


def _map_vectors(handle: JobHandle, map_: Analysis, model: str) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of the texts that a stored map was fitted on, from the cache, and their points.

    Raises BadInput where they are gone: the model was trained anew, or the map computed elsewhere.
    """
    known = fitted_places(read_table(map_.payload or b""))
    with handle.store.read() as session:
        vectors = cached_vectors(session, model_identity(model), list(known))
    if len(vectors) < len(known):
        raise BadInput(
            f"the store has vectors of {len(vectors):,} of the {len(known):,} texts that map "
            f"{map_.id} was fitted on (model {model})",
            "compute it again without `onto=`",
            code="map_vectors_missing",
        )
    return np.stack(list(vectors.values())), np.stack([known[sha256] for sha256 in vectors])


def near_duplicates(handle: JobHandle) -> DuplicatesFound:
    """Clusters of near-duplicate texts inside and between corpora; config DuplicatesStart."""
    corpora = _corpora(handle, DuplicatesStart.read(handle.config))
    sha256 = corpora_sha256(corpora, {"version": duplicates.VERSION})
    if (known := _known(handle, DuplicatesFound, sha256)) is not None:
        return known
    handle.report(0, 1, "comparing texts")
    result = duplicates.describe_duplicates(corpora, Parts(sha256, handle.check).keep)
    return _keep(handle, sha256, corpora, result)


def contamination(handle: JobHandle) -> ContaminationFound:
    """Texts that the corpora share with evaluation sets; config ContaminationStart."""
    request = ContaminationStart.read(handle.config)
    corpora = _corpora(handle, request)
    with handle.store.read() as session:
        against = load_corpora(
            session,
            {
                "published": request.against,
                "datasets": request.against_datasets,
                "groups": "all",
            },
        )
    model = request.model or DEFAULT_MODEL
    threshold = request.paraphrase_threshold
    settings: dict[str, Any] = {"version": duplicates.CONTAMINATION_VERSION, "above": threshold}
    if threshold:
        settings["model"] = model_identity(model)
    sha256 = corpora_sha256([*corpora, *against], settings)
    sha256 = text_sha256(f"{sha256} {len(corpora)}")
    if (known := _known(handle, ContaminationFound, sha256)) is not None:
        return known
    handle.report(0, 1, "comparing texts")
    paraphrases = duplicates.Paraphrases(
        lambda texts: VectorRows(*_embedded(handle, texts, model)),
        model,
        threshold,
    )
    result = duplicates.describe_contamination(corpora, against, paraphrases if threshold else None)
    return _keep(handle, sha256, corpora, result)


def _corpora(handle: JobHandle, request: CorporaChosen) -> list[Corpus]:
    with handle.store.read() as session:
        return load_corpora(session, request.config())


def _vectors(handle: JobHandle, corpora: Sequence[Corpus], model: str) -> ByText:
    every = Chosen(corpora, range(sum(len(corpus.texts) for corpus in corpora)))
    rows, numbers = _embedded(handle, every, model)
    return ByText(Chosen(corpora, firsts_of(numbers)), rows)


def _embedded(
    handle: JobHandle, texts: Sequence[str], model: str
) -> tuple[VectorsOnDisk, np.ndarray]:
    return vectors_on_disk(
        handle.store,
        texts,
        model=model,
        progress=lambda done, total: handle.report(done, total, "embedding"),
        check=handle.check,
    )


def _stack(vectors: ByText, texts: Sequence[str]) -> np.ndarray:
    return vectors.rows[vectors.numbers_of(texts)] if texts else np.zeros((0, 0), np.float32)


def _known(handle: JobHandle, row: type[F], sha256: str) -> F | None:
    with handle.store.read() as session:
        found = find_analysis(session, row.KIND, sha256)
    return None if found is None else row.stored(found)


def _keep(
    handle: JobHandle,
    sha256: str,
    corpora: Sequence[Corpus],
    result: F,
    payload: bytes | None = None,
) -> F:
    with handle.store.write() as session:
        analysis_id = store_analysis(
            session,
            kind=result.KIND,
            inputs_sha256=sha256,
            config=handle.config,
            result=result.as_json(),
            payload=payload,
            dataset_id=corpora[0].dataset_id if len(corpora) == 1 else None,
            job_id=handle.id,
        ).id
        session.commit()
    delete_parts(sha256)
    return result.model_copy(update={"analysis_id": analysis_id, "known": False})
