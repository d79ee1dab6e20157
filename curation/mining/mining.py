"""Hard negatives of a dataset's pairs: passages that look like an answer and are none.

Found by BM25 and by an embedding model among the dataset's imported passages, or those of another
dataset (a corpus that was imported). Left out: P+ and its near-duplicates, passages of other pairs
with the same query, and, by embedding, what scores above a share of P+'s score: such a passage is
likely right too (NV-Retriever's positive-aware limit, Moreira et al. 2024, arXiv 2407.15831).
The check then lets a judge choose between P+ and each passage, in an order of its own: where it
does not choose P+ but the passage, or finds both equally good, the passage answers and is removed.

The pairs get them as given negatives, which a recipe takes into its groups and its checks judge.
The outcome may be a file of JSON lines instead, or (`keep`) as well, that `datasets pull` of its
folder reads as (query, positive, negatives): it is whole or not there. Answers of a language model
are in the journal: a killed mining asks the rest, and the same one again gives nothing twice.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from analysis.embed.embedding import embed_texts
from analysis.embed.neighbours import below_share
from analysis.text.bm25 import Bm25, stemmer_of
from curation.importing.rows import ID_DIGITS
from curation.judges.judge import ItemJudge, ItemView
from curation.judges.registry import judge_named
from curation.judging.candidates import is_near_duplicate, seeded
from curation.mining.request import NegativesMine, NegativesMined, Source
from curation.rules.language import language_of_texts
from db.corpus.datasets import add_negatives, add_passages, get_dataset, text_sha256
from db.errors import BadInput
from db.events import record_event
from db.jobs.runner import JobHandle
from db.store.store import Store
from db.tables import Pair, Passage

Progress = Callable[[int, int], None]
PAIRS_AT_ONCE = 256


@dataclass(frozen=True)
class Mined:
    """A passage found for a pair: its score by each source that found it."""

    place: int
    scores: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Pair:
    query_id: str
    query: str
    passage_id: str
    passage: str


@dataclass(frozen=True)
class _Corpus:
    ids: Sequence[str]
    texts: Sequence[str]


def mine(handle: JobHandle) -> NegativesMined:
    """The handler of `mine` jobs; config NegativesMine."""
    request = NegativesMine.read(handle.config)

    def progress(done: int, total: int) -> None:
        handle.check()
        handle.report(done, total, f"mining {request.name}")

    return mine_as(handle.store, request, by=handle.started_by, progress=progress)


def mine_as(store: Store, request: NegativesMine, *, by: str, progress: Progress) -> NegativesMined:
    """Mine, give the pairs what was found and write the file. `by` is named in the audit log.

    Raises NotFound, BadInput for a file that exists, a corpus without passages, or an unknown judge
    or language.
    """
    out = None if request.out is None else Path(request.out)
    if out is not None and out.exists():
        raise BadInput(f"{out} exists", "give a new file", code="mined_file_exists")
    with store.read() as session:
        dataset = get_dataset(session, request.name)
        pairs = _pairs(session, dataset.id)
        source = get_dataset(session, request.corpus or request.name)
        corpus = _corpus(session, source.id)
    if not corpus.texts or not pairs:
        raise BadInput(
            f"{'no pairs' if not pairs else 'no passages'} to mine with",
            "import some, or name another `corpus=`",
            code="nothing_to_mine",
        )
    judge = judge_named(request.judge, store) if request.judge else None
    counts: Counter[str] = Counter()
    given: dict[str, list[str]] = {}  # texts by query id
    is_kept = out is None or request.keep
    with _new_file(out) as write:
        for rows in _mined(store, request, pairs, corpus, judge, counts, progress):
            write(rows)
            given |= {row["query_id"]: row["negatives"] for row in rows if is_kept}
        with store.write() as session:
            counts["kept"] = _keep(session, dataset.id, given) if is_kept else 0
            found = NegativesMined(
                dataset=request.name,
                out=request.out,
                judge=request.judge or None,
                pairs=len(pairs),
                corpus=len(corpus.texts),
                **counts,
            )
            facts = found.model_dump(exclude={"dataset"})
            record_event(session, by, "dataset.mine", dataset.id, **facts)
            session.commit()
    return found


@contextmanager
def _new_file(out: Path | None) -> Iterator[Callable[[Sequence[Mapping[str, Any]]], object]]:
    """What writes rows to the file, which is whole or not there; without one, nothing.

    Raises BadInput.
    """
    if out is None:
        yield lambda rows: None
        return
    unfinished = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with unfinished.open("x", encoding="utf-8") as file:
            yield lambda rows: file.writelines(
                json.dumps(row, ensure_ascii=False) + "\n" for row in rows
            )
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(out)
    except OSError as error:
        raise BadInput(
            f"{out} cannot be written: {error}",
            "give a file in a folder that exists",
            code="mined_file_unwritable",
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)


def _keep(session: Session, dataset_id: int, given: Mapping[str, Sequence[str]]) -> int:
    """Give the negatives, texts by query id, to the dataset's pairs; returns how many are new.

    A passage of the dataset with that text is taken; of another corpus it is added to the pool.
    """
    wanted = {text_sha256(text): text for texts in given.values() for text in texts}
    held = select(Passage.sha256, Passage.external_id).where(
        Passage.dataset_id == dataset_id, Passage.origin != "generated"
    )
    ids = {sha256: key for sha256, key in session.execute(held) if sha256 in wanted}
    new = {sha256: f"p-{sha256[:ID_DIGITS]}" for sha256 in wanted if sha256 not in ids}
    add_passages(
        session,
        [
            {
                "dataset_id": dataset_id,
                "external_id": key,
                "title": "",
                "text": wanted[sha256],
                "sha256": sha256,
                "origin": "pool",
                "meta": {},
            }
            for sha256, key in new.items()
        ],
    )
    ids |= new
    named = {key: [ids[text_sha256(text)] for text in texts] for key, texts in given.items()}
    return add_negatives(session, dataset_id, named)


def _mined(
    store: Store,
    request: NegativesMine,
    pairs: Sequence[_Pair],
    corpus: _Corpus,
    judge: ItemJudge | None,
    counts: Counter[str],
    progress: Progress,
) -> Iterator[list[dict[str, Any]]]:
    """The rows of the file, some pairs at a time."""
    answers: dict[str, set[str]] = {}
    for pair in pairs:
        answers.setdefault(pair.query, set()).add(pair.passage)
    finders = [_FINDERS[source](store, request, corpus) for source in dict.fromkeys(request.by)]
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        part = pairs[start : start + PAIRS_AT_ONCE]
        listed = [finder.find(part) for finder in finders]
        fitting = [
            _without_answers([one[place] for one in listed], corpus, pair, answers[pair.query])
            for place, pair in enumerate(part)
        ]
        kept = _checked(judge, request, part, fitting, corpus, counts)
        counts["negatives"] += sum(map(len, kept))
        counts["pairs_without"] += sum(not one for one in kept)
        yield [_row(pair, found, corpus) for pair, found in zip(part, kept, strict=True)]
        progress(min(start + PAIRS_AT_ONCE, len(pairs)), len(pairs))


class _ByWords:
    """BM25 over the corpus; a passage that shares no word with the query is not found."""

    def __init__(self, store: Store, request: NegativesMine, corpus: _Corpus) -> None:
        language = request.language or stemmer_of(language_of_texts(corpus.texts))
        self._depth, self._index = request.depth, Bm25(corpus.texts, language)

    def find(self, pairs: Sequence[_Pair]) -> list[list[Mined]]:
        return [
            [
                Mined(place, {"bm25": round(score, 4)})
                for place, score in self._index.ranked(pair.query, self._depth)
                if score > 0
            ]
            for pair in pairs
        ]


class _ByMeaning:
    """The cosine of an embedding model, up to a share of that of P+."""

    def __init__(self, store: Store, request: NegativesMine, corpus: _Corpus) -> None:
        self._store, self._request = store, request
        self._vectors = embed_texts(store, corpus.texts, model=request.model)

    def find(self, pairs: Sequence[_Pair]) -> list[list[Mined]]:
        texts = [pair.query for pair in pairs] + [pair.passage for pair in pairs]
        vectors = embed_texts(self._store, texts, model=self._request.model)
        queries, right = vectors[: len(pairs)], vectors[len(pairs) :]
        found = []
        for query, passage in zip(queries, right, strict=True):
            scores = self._vectors @ query
            below = below_share(
                scores, float(query @ passage), self._request.margin, self._request.depth
            )
            found.append(
                [Mined(each, {"embedding": round(float(scores[each]), 4)}) for each in below]
            )
        return found


_FINDERS: Mapping[Source, Any] = {"bm25": _ByWords, "embedding": _ByMeaning}


def _without_answers(
    listed: Sequence[Sequence[Mined]], corpus: _Corpus, pair: _Pair, answers: set[str]
) -> list[Mined]:
    """What the sources found for a pair, taken in turn, each once, without what is known to answer:
    its passage, those of other pairs with its query, and near-duplicates of them."""
    scores: dict[int, dict[str, float]] = {}
    for rank in range(max(map(len, listed), default=0)):
        for found in listed:
            if rank < len(found):
                scores.setdefault(found[rank].place, {}).update(found[rank].scores)
    return [
        Mined(place, of)
        for place, of in scores.items()
        if not any(is_near_duplicate(corpus.texts[place], answer) for answer in answers)
    ]


def _checked(
    judge: ItemJudge | None,
    request: NegativesMine,
    pairs: Sequence[_Pair],
    fitting: Sequence[Sequence[Mined]],
    corpus: _Corpus,
    counts: Counter[str],
) -> list[list[Mined]]:
    """The first `count` of each pair that do not answer; judged in rounds, so that no more passages
    are judged than are missing."""
    if judge is None:
        return [list(found[: request.count]) for found in fitting]
    kept: list[list[Mined]] = [[] for _ in pairs]
    waiting = [list(found) for found in fitting]
    while True:
        chosen = [
            (place, waiting[place].pop(0))
            for place in range(len(pairs))
            for _ in range(min(request.count - len(kept[place]), len(waiting[place])))
        ]
        if not chosen:
            return kept
        for start in range(0, len(chosen), judge.at_once):
            part = chosen[start : start + judge.at_once]
            views, rights = zip(
                *(_view(request, pairs[place], corpus, one) for place, one in part), strict=True
            )
            for (place, one), right, choice in zip(part, rights, judge.choose(views), strict=True):
                if choice.unusable:
                    counts["unusable"] += 1
                elif choice.ambiguous or choice.position not in (None, right):
                    counts["answering"] += 1
                else:
                    kept[place].append(one)


def _view(request: NegativesMine, pair: _Pair, corpus: _Corpus, one: Mined) -> tuple[ItemView, int]:
    """P+ and a mined passage in an order of the pair's own, and the place of P+."""
    texts = [pair.passage, corpus.texts[one.place]]
    chance = seeded(request.seed, pair.query_id, "mined", corpus.ids[one.place])
    right = chance.randrange(2)
    return ItemView("", pair.query, tuple(texts if right == 0 else texts[::-1])), right


def _row(pair: _Pair, found: Sequence[Mined], corpus: _Corpus) -> dict[str, Any]:
    return {
        "query_id": pair.query_id,
        "query": pair.query,
        "positive": pair.passage,
        "negatives": [corpus.texts[one.place] for one in found],
        "positive_id": pair.passage_id,
        "mined": [{"passage_id": corpus.ids[one.place], "scores": one.scores} for one in found],
    }


def _pairs(session: Session, dataset_id: int) -> list[_Pair]:
    rows = session.execute(
        select(Pair.external_id, Pair.query, Passage.external_id, Passage.text)
        .join(Passage, Passage.id == Pair.passage_id)
        .where(Pair.dataset_id == dataset_id)
        .order_by(Pair.id)
    )
    return [_Pair(*row) for row in rows]


def _corpus(session: Session, dataset_id: int) -> _Corpus:
    """The imported passages of a dataset: what runs wrote is no document of it."""
    rows = session.execute(
        select(Passage.external_id, Passage.text)
        .where(Passage.dataset_id == dataset_id, Passage.origin != "generated")
        .order_by(Passage.id)
    ).all()
    return _Corpus([row[0] for row in rows], [row[1] for row in rows])
