"""A store of very many groups for `bench/page_speed.py`, with something of everything around them.

`tests/full_store.py` fills what is small: jobs, a release, a checkpoint, evaluations. To it comes a
dataset `large` with one finished run: per group a pair, three triplets with passages of about 400
characters, three items with the validator's answer to each; two studies of 300 of its items, an
open and a closed one, judged by two people and a model, 500 reviews, a release and a map of its
texts.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

import full_store  # noqa: E402
from finished_run import finished_run  # noqa: E402
from slot_rows import slot_rows  # noqa: E402
from sqlalchemy import func, insert, select  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402
from study_world import sampled_study  # noqa: E402

from analysis.files.corpora import Corpus  # noqa: E402
from analysis.map.coverage import points_table, to_bytes  # noqa: E402
from db.corpus.texts import CorpusText  # noqa: E402
from db.outcome.analyses import store_analysis  # noqa: E402
from db.shape import INF_IR  # noqa: E402
from db.store.store import Store  # noqa: E402
from db.tables import (  # noqa: E402
    Group,
    Item,
    Judge,
    Judgment,
    Pair,
    Passage,
    Release,
    Review,
    SlotText,
    Study,
    StudyItem,
    utc_now,
)

NAME = "large"
REASONS = ("validation_positive", "ambiguous", "similar_passages", "personal_data")
SOURCES = ("nq", "boolq", "msmarco")
KINDS = ("person", "person", "model")
CHUNK = 5_000
HEAPS = 40
Row = dict[str, Any]


def fill(store: Store, groups: int) -> None:
    """Both parts, and the map."""
    full_store.fill(store)
    with store.write() as session:
        run = finished_run(session, NAME, source="made for a measurement")
        run_id, dataset_id = run.id, run.dataset_id
        start = {table: _next_id(session, table) for table in (Passage, Pair, Group, Item)}
        validator = Judge(name="validator", kind="model")
        session.add(validator)
        session.flush()
        for first in range(0, groups, CHUNK):
            numbers = range(first, min(groups, first + CHUNK))
            for table, rows in _rows(numbers, run_id, dataset_id, validator.id, start):
                session.execute(insert(table), rows)
        session.commit()
        judges = [Judge(name=f"large {kind} {n}", kind=kind) for n, kind in enumerate(KINDS)]
        session.add_all(judges)
        session.flush()
        _study(session, run_id, judges, seed=0, name="large study")
        _study(session, run_id, judges, seed=1, name="large closed study").status = "closed"
        _reviews(session, start[Group], min(500, groups))
        session.add(
            Release(
                dataset_id=dataset_id,
                name="large-1",
                content_sha256="1" * 64,
                path="/nowhere/large-1",
                format="parquet",
                filter={"reviews": "not-rejected", "run_id": run_id},
                counts={"groups": groups - groups // 4, "verdicts": {"kept": groups}},
                card="---\nlicense: cc0-1.0\n---\n# large\n",
                offline=True,
            )
        )
        _map(session, dataset_id, run_id, groups)
        session.commit()


def _next_id(session: Session, table: type) -> int:
    return (session.scalar(select(func.max(table.id))) or 0) + 1  # type: ignore[attr-defined]


def _rows(
    numbers: range, run_id: int, dataset_id: int, validator_id: int, start: dict[type, int]
) -> Iterator[tuple[type, list[Row]]]:
    """The rows of these groups by table, in the order of their foreign keys."""
    now, threes = utc_now(), [(n, place) for n in numbers for place in range(3)]

    def passage_id(number: int, place: int) -> int:
        return start[Passage] + 3 * number + place

    yield (
        Passage,
        [
            {
                "id": passage_id(n, place),
                "dataset_id": dataset_id,
                "external_id": f"p{n}-{place}",
                "text": text(n, place),
                "sha256": f"{3 * n + place:064x}",
                "origin": "generated" if place else "seed",
                "meta": {},
            }
            for n, place in threes
        ],
    )
    yield (
        Pair,
        [
            {
                "id": start[Pair] + n,
                "dataset_id": dataset_id,
                "external_id": f"q{n}",
                "query": f"what is known of subject {n}",
                "passage_id": passage_id(n, 0),
                "meta": {"source": SOURCES[n % 3]},
            }
            for n in numbers
        ],
    )
    yield (
        Group,
        [
            {
                "id": start[Group] + n,
                "run_id": run_id,
                "pair_id": start[Pair] + n,
                "state": "done",
                "stage": "validation",
                "verdict": "kept" if n % 4 else "dropped",
                "drop_reason": None if n % 4 else REASONS[n // 4 % len(REASONS)],
                "attempt": 1,
                "retries": {},
                "finished_at": now,
            }
            for n in numbers
        ],
    )
    yield (
        SlotText,
        [
            row
            for n in numbers
            for row in slot_rows(
                start[Group] + n,
                {
                    role: (
                        f"Name the year in which subject {n} was written, case {place}.",
                        f"what is known of subject {n}",
                        passage_id(n, place),
                    )
                    for place, role in enumerate(INF_IR.roles)
                },
            )
        ],
    )
    yield (
        Item,
        [
            {
                "id": start[Item] + 3 * n + place,
                "group_id": start[Group] + n,
                "scenario": INF_IR.roles[place],
                "revision": 1,
                "instruction": f"Name the year in which subject {n} was written down.",
                "query": f"what is known of subject {n}",
                "candidates": [
                    {"passage_id": passage_id(n, other), "label": INF_IR.roles[other]}
                    for other in range(3)
                ],
                "created_at": now,
            }
            for n, place in threes
        ],
    )
    yield (
        Judgment,
        [
            {
                "event_id": f"large-{n}-{place}",
                "judge_id": validator_id,
                "item_id": start[Item] + 3 * n + place,
                "run_id": run_id,
                "choice": INF_IR.roles[place if n % 4 or place else 1],
                "order_shown": list(INF_IR.roles),
                "decided_at": now,
                "is_current": True,
                "flagged": False,
                "note": "",
                "reason": "",
                "detail": {},
            }
            for n, place in threes
        ],
    )


def text(number: int, place: int) -> str:
    """A passage of about 400 characters."""
    return f"Passage {place} of group {number} reports what is known of subject {number}. " + (
        f"It was written down in year {number % 2000} by hand {number % 97}. " * 7
    )


def _study(session: Session, run_id: int, judges: list[Judge], *, seed: int, name: str) -> Study:
    study = sampled_study(session, run_id=run_id, items=300, overlap=2, seed=seed, name=name)
    known = select(Judgment.item_id).where(Judgment.judge_id == judges[0].id)  # of another study
    chosen = select(StudyItem.item_id).where(StudyItem.study_id == study.id)
    items = list(session.scalars(chosen.where(StudyItem.item_id.not_in(known))))
    for number, judge in enumerate(judges):
        session.add_all(
            Judgment(
                event_id=f"{judge.name}-{study.id}-{item_id}",
                judge_id=judge.id,
                item_id=item_id,
                study_id=study.id,
                choice=INF_IR.roles[(item_id + (item_id % 7 == number)) % 3],
                order_shown=list(INF_IR.roles),
            )
            for item_id in items
        )
    return study


def _reviews(session: Session, first: int, count: int) -> None:
    actions = ("approve", "approve", "reject")
    session.add_all(
        Review(group_id=first + n, action=actions[n % 3], reason="r", reviewed_by="ann")
        for n in range(count)
    )


def _map(session: Session, dataset_id: int, run_id: int, points: int) -> None:
    """A map of a text per group, in seeded heaps."""
    generator = np.random.default_rng(0)
    heap = generator.integers(0, HEAPS, points)
    xy = generator.normal(0, 6, (HEAPS, 2))[heap] + generator.normal(0, 0.7, (points, 2))
    texts = [f"what is known of subject {number}" for number in range(points)]
    corpus = Corpus(
        NAME, "dataset", [CorpusText("query", "positive", each) for each in texts], shape=INF_IR
    )
    places = dict(zip(texts, xy.astype(np.float32), strict=True))
    corpora = [{"corpus": NAME, "run_id": run_id, "offline": True}]
    store_analysis(
        session,
        kind="coverage",
        inputs_sha256="bench",
        config={"datasets": [NAME]},
        result={
            "model": "none: made for a measurement",
            "seed": 0,
            "points": points,
            "different": points,
            "corpora": corpora,
            "fields": {},
            "covered": [],
        },
        payload=to_bytes(points_table([corpus], places, set())),
        dataset_id=dataset_id,
    )
