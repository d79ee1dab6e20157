"""A finished run for tests of reviews and releases: groups with triplets, items and judgments."""

from typing import Any

from slot_rows import slot_rows
from sqlalchemy.orm import Session

from db.corpus.datasets import text_sha256
from db.review.queue import QueueFilter, listed_groups
from db.run.groups import GroupPage
from db.shape import INF_IR
from db.store.bulk import insert_rows
from db.store.store import Store
from db.tables import (
    Dataset,
    Group,
    Item,
    Judge,
    Judgment,
    Pair,
    Passage,
    Prompt,
    Recipe,
    Release,
    ReleaseGroup,
    Run,
    SlotText,
    utc_now,
)

PROMPT = "Write an instruction.\n---\nQuery: {query}\n"


def make_run(
    store: Store,
    *,
    kept: int = 4,
    dropped: int = 2,
    unwritten: int = 1,
    name: str = "books",
    offline: bool = True,
    licence: str = "cc-by-sa-3.0",
    texts: dict[str, str] | None = None,
) -> int:
    """A data set and a done run; returns the id of the run.

    `dropped` groups failed validation, `unwritten` ones were dropped before they had triplets.
    `texts` replaces texts of the first group by release column.
    """
    with store.write() as session:
        run_id = _make(session, kept, dropped, unwritten, name, offline, licence, texts or {})
        session.commit()
    return run_id


def add_release(session: Session, dataset_id: int, *groups: int, **facts: Any) -> Release:
    """A release with these groups, by its row alone; flushed."""
    usual = {"path": "r", "format": "jsonl", "filter": {}, "counts": {}, "card": ""}
    release = Release(dataset_id=dataset_id, offline=True, **usual | facts)
    session.add(release)
    session.flush()
    session.add_all(
        ReleaseGroup(release_id=release.id, group_id=group_id, split="train") for group_id in groups
    )
    session.flush()
    return release


def group_ids(store: Store, run_id: int, verdict: str = "kept") -> list[int]:
    """The ids of the run's groups with this verdict."""
    from sqlalchemy import select

    with store.read() as session:
        query = select(Group.id).where(Group.run_id == run_id, Group.verdict == verdict)
        return list(session.scalars(query.order_by(Group.id)))


def _make(
    session: Session,
    kept: int,
    dropped: int,
    unwritten: int,
    name: str,
    offline: bool,
    licence: str,
    texts: dict[str, str],
) -> int:
    dataset = Dataset(name=name, source="made for a test", licence=licence)
    stage = {"model": "rules", "prompt": "instruction_positive.md"}
    body = {
        "name": name,
        "description": "for a test",
        "stages": {"instruction_positive": stage | {"prompt_sha256": text_sha256(PROMPT)}},
        "validation": {"distractors": 1},
        "filters": {"most_query_words": 60},
    }
    recipe = Recipe(name=name, sha256=text_sha256(f"recipe of {name}"), body=body)
    session.add_all([dataset, recipe])
    if session.get(Prompt, text_sha256(PROMPT)) is None:
        session.add(Prompt(sha256=text_sha256(PROMPT), name="instruction_positive.md", text=PROMPT))
    session.flush()
    run = Run(
        dataset_id=dataset.id,
        recipe_id=recipe.id,
        provider="offline" if offline else "openai",
        offline=offline,
        status="done",
        finished_at=utc_now(),
    )
    judge = session.query(Judge).filter_by(name="offline:embedding").first() or Judge(
        name="offline:embedding", kind="model", provider="offline", model="mini", offline=True
    )
    session.add_all([run, judge])
    session.flush()
    for number in range(kept + dropped + unwritten):
        verdict = "kept" if number < kept else "dropped"
        reason = None if number < kept else "validation" if number < kept + dropped else "rule"
        written = number < kept + dropped
        changed = texts if number == 0 else {}
        _make_group(
            session, dataset.id, run.id, judge.id, number, verdict, reason, written, changed
        )
    return run.id


def _make_group(
    session: Session,
    dataset_id: int,
    run_id: int,
    judge_id: int,
    number: int,
    verdict: str,
    reason: str | None,
    written: bool,
    changed: dict[str, str],
) -> None:
    say = {
        "query_positive": f"who wrote book {number}",
        "instruction_positive": f"Find the author of book {number}.",
        "document_positive": f"Book {number} was written by author {number}.",
        "query_negative": f"who printed book {number}",
        "instruction_negative": f"Find the year of book {number}.",
        "hard_negative_document_1": f"Book {number} came out in {1900 + number}.",
        "hard_negative_document_2": f"Book {number} was printed by printer {number}.",
    } | changed

    def add_passage(external_id: str, text: str, origin: str) -> int:
        passage = Passage(
            dataset_id=dataset_id,
            external_id=external_id,
            text=text,
            sha256=text_sha256(text),
            origin=origin,
        )
        session.add(passage)
        session.flush()
        return passage.id

    meta: dict[str, Any] = {"source": "nq" if number % 2 else "boolq"}
    positive = add_passage(f"p{number}", say["document_positive"], "seed")
    pair = Pair(
        dataset_id=dataset_id,
        external_id=f"q{number}",
        query=say["query_positive"],
        passage_id=positive,
        meta=meta,
    )
    session.add(pair)
    session.flush()
    group = Group(
        run_id=run_id,
        pair_id=pair.id,
        state="done",
        stage="validation" if written else "negatives",
        verdict=verdict,
        drop_reason=reason,
        finished_at=utc_now(),
    )
    session.add(group)
    session.flush()
    if not written:
        return
    first = add_passage(f"r{run_id}-g{group.id}-1", say["hard_negative_document_1"], "generated")
    second = add_passage(f"r{run_id}-g{group.id}-2", say["hard_negative_document_2"], "generated")
    told = {
        "positive": (say["instruction_positive"], say["query_positive"], positive),
        "instruction_negative": (say["instruction_negative"], say["query_positive"], first),
        "query_negative": (say["instruction_positive"], say["query_negative"], second),
    }
    candidates = [{"passage_id": told[role][2], "label": role} for role in INF_IR.roles]
    insert_rows(session, SlotText, slot_rows(group.id, told))
    for role in INF_IR.roles:
        instruction, query, _ = told[role]
        item = Item(
            group_id=group.id,
            scenario=role,
            expected=role,
            instruction=instruction,
            query=query,
            candidates=candidates,
        )
        session.add(item)
        session.flush()
        session.add(
            Judgment(
                event_id=f"run-{run_id}-item-{item.id}",
                judge_id=judge_id,
                item_id=item.id,
                run_id=run_id,
                choice=role if verdict == "kept" else "none",
                order_shown=list(INF_IR.roles),
            )
        )
    session.flush()


def list_groups(
    session: Session,
    run_id: int,
    *,
    viewer: str | None = None,
    offset: int = 0,
    limit: int | None = 50,
    **filters: Any,
) -> GroupPage:
    """A page of a run's groups, as its owner lists them; with a viewer as a person does."""
    wanted = QueueFilter(run_id=run_id, **filters)
    return listed_groups(session, wanted, viewer=viewer, blind=False, offset=offset, limit=limit)
