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
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from curation.importing.rows import ID_DIGITS
from curation.judges.asking import Patience
from curation.judges.judge import ItemJudge, ItemView, WaitingJudge
from curation.judges.registry import judge_named
from curation.judging.candidates import is_near_duplicate, seeded
from curation.mining.finders import FINDERS, IDS_PER_QUERY, PASSES, Corpus, Found, SourcePair
from curation.mining.request import NegativesMine, NegativesMined, Source
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
    """A passage found for a pair, by its name, and its score by each source that found it."""

    passage_id: str
    text: str
    scores: dict[str, float]


def mine(handle: JobHandle) -> NegativesMined:
    """The handler of `mine` jobs; config NegativesMine."""
    request = NegativesMine.read(handle.config)

    name = f"mining {request.name}"
    at = (0, 0)

    def progress(done: int, total: int, waiting: str = "") -> None:
        nonlocal at
        at = done, total
        handle.check()
        handle.report(done, total, f"{name}, {waiting}" if waiting else name)

    patience = Patience(
        request.patience_seconds, lambda waiting: progress(*at, waiting), handle.patiently
    )
    return mine_as(handle.store, request, by=handle.started_by, progress=progress, waits=patience)


def mine_as(
    store: Store,
    request: NegativesMine,
    *,
    by: str,
    progress: Progress,
    waits: Patience | None = None,
) -> NegativesMined:
    """Mine, give the pairs what was found and write the file. `by` is named in the audit log.
    The judge waits for its server as `waits` says, by default as long as the request; what failed
    is in the log then.

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
    corpus = Corpus(store, source.id)
    if not corpus.size or not pairs:
        raise BadInput(
            f"{'no pairs' if not pairs else 'no passages'} to mine with",
            "import some, or name another `corpus=`",
            code="nothing_to_mine",
        )
    judge = judge_named(request.judge, store) if request.judge else None
    if isinstance(judge, WaitingJudge):
        judge.patience = waits or Patience(request.patience_seconds)
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
                corpus=corpus.size,
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
    ids: dict[str, str] = {}
    for start in range(0, len(wanted), IDS_PER_QUERY):
        some = Passage.sha256.in_(list(wanted)[start : start + IDS_PER_QUERY])
        ids |= dict(session.execute(held.where(some)).all())
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
    pairs: Sequence[SourcePair],
    corpus: Corpus,
    judge: ItemJudge | None,
    counts: Counter[str],
    progress: Progress,
) -> Iterator[list[dict[str, Any]]]:
    """The rows of the file, some pairs at a time."""
    answers: dict[str, set[str]] = {}
    for pair in pairs:
        answers.setdefault(pair.query, set()).add(pair.passage)
    sources = list(dict.fromkeys(request.by))
    done, total = 0, sum(PASSES[each] for each in sources) * corpus.size + len(pairs)

    def seen(size: int) -> None:
        nonlocal done
        done += size
        progress(done, total)

    best = {each: FINDERS[each](store, request, corpus, pairs, seen) for each in sources}
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        part = pairs[start : start + PAIRS_AT_ONCE]
        listed = [
            {source: found.of(place) for source, found in best.items()}
            for place in range(start, start + len(part))
        ]
        passages = corpus.passages(
            list({key for each in listed for found in each.values() for key, _ in found})
        )
        fitting = [
            _without_answers(each, passages, answers[pair.query])
            for each, pair in zip(listed, part, strict=True)
        ]
        kept = _checked(judge, request, part, fitting, counts)
        counts["negatives"] += sum(map(len, kept))
        counts["pairs_without"] += sum(not one for one in kept)
        yield [_row(pair, found) for pair, found in zip(part, kept, strict=True)]
        seen(len(part))


def _without_answers(
    listed: Mapping[Source, Found], passages: Mapping[int, tuple[str, str]], answers: set[str]
) -> Iterator[Mined]:
    """What the sources found for a pair, taken in turn, each once, without what is known to answer:
    its passage, those of other pairs with its query, and near-duplicates of them."""
    scores: dict[int, dict[str, float]] = {}
    for at_rank in zip_longest(
        *([(source, *one) for one in found] for source, found in listed.items())
    ):
        for source, key, score in filter(None, at_rank):
            scores.setdefault(key, {})[source] = round(score, 4)
    for key, of in scores.items():
        name, text = passages[key]
        if not any(is_near_duplicate(text, answer) for answer in answers):
            yield Mined(name, text, of)


def _checked(
    judge: ItemJudge | None,
    request: NegativesMine,
    pairs: Sequence[SourcePair],
    fitting: Sequence[Iterator[Mined]],
    counts: Counter[str],
) -> list[list[Mined]]:
    """The first `count` of each pair that do not answer; judged in rounds, so that no more passages
    are judged than are missing."""
    if judge is None:
        return [list(islice(found, request.count)) for found in fitting]
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
                *(_view(request, pairs[place], one) for place, one in part), strict=True
            )
            for (place, one), right, choice in zip(part, rights, judge.choose(views), strict=True):
                if choice.unusable:
                    counts["unusable"] += 1
                elif choice.ambiguous or choice.position not in (None, right):
                    counts["answering"] += 1
                else:
                    kept[place].append(one)


def _view(request: NegativesMine, pair: SourcePair, one: Mined) -> tuple[ItemView, int]:
    """P+ and a mined passage in an order of the pair's own, and the place of P+."""
    texts = [pair.passage, one.text]
    chance = seeded(request.seed, pair.query_id, "mined", one.passage_id)
    right = chance.randrange(2)
    return ItemView("", pair.query, tuple(texts if right == 0 else texts[::-1])), right


def _row(pair: SourcePair, found: Sequence[Mined]) -> dict[str, Any]:
    return {
        "query_id": pair.query_id,
        "query": pair.query,
        "positive": pair.passage,
        "negatives": [one.text for one in found],
        "positive_id": pair.passage_id,
        "mined": [{"passage_id": one.passage_id, "scores": one.scores} for one in found],
    }


def _pairs(session: Session, dataset_id: int) -> list[SourcePair]:
    rows = session.execute(
        select(Pair.external_id, Pair.query, Passage.external_id, Passage.text)
        .join(Passage, Passage.id == Pair.passage_id)
        .where(Pair.dataset_id == dataset_id)
        .order_by(Pair.id)
    )
    return [SourcePair(*row) for row in rows]
