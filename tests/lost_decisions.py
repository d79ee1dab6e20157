"""Annotators at a server that is killed and a network that is cut: what they remember, compared
with what the store holds.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from card_client import CardClient
from restartable import Restartable
from sqlalchemy import func, select

from db.question import about_of
from db.store.store import Store
from db.tables import Assignment, Item, Judge, Judgment, Passage, StudyItem
from db.values import NONE


@dataclass(frozen=True)
class Compared:
    """`decided`: what people remember; each of the three must be 0, and `refused` too."""

    decided: int
    lost: int
    doubled: int
    on_the_wrong_item: int
    refused: int
    not_exactly_the_overlap: int

    @property
    def faults(self) -> int:
        """How much of it must not be."""
        return sum(asdict(self).values()) - self.decided


async def work_through(
    server: Restartable,
    clients: Sequence[CardClient],
    *,
    kills: int,
    cut_chance: float,
    seed: int,
    least_between: int = 1,
    one_by_one: bool = False,
) -> int:
    """Let everybody work to the end while the server is killed (SIGKILL) and started again `kills`
    times, each after at least `least_between` more decisions. Returns how often it was."""
    chance = random.Random(seed)
    how = {"cut_chance": cut_chance, "one_by_one": one_by_one}
    working = asyncio.gather(*(client.work(**how) for client in clients))

    def decided() -> int:
        return sum(len(client.decisions) for client in clients)

    done = 0
    goal = 0
    try:
        while not working.done() and done < kills:
            goal = max(goal, decided()) + chance.randint(least_between, 2 * least_between)
            while decided() < goal and not working.done():
                await asyncio.sleep(0.05)
            if working.done():
                break
            server.kill()
            done += 1
            await asyncio.to_thread(server.start)
        await working
    finally:
        working.cancel()
    return done


def compare(store: Store, study_id: int, clients: Sequence[CardClient], overlap: int) -> Compared:
    """What people remember having decided, against the store."""
    with store.read() as session:
        names = dict(session.execute(select(Judge.id, Judge.name)).all())
        rows = session.execute(
            select(Judgment.judge_id, Judgment.event_id, Judgment.item_id, Judgment.choice).where(
                Judgment.study_id == study_id
            )
        ).all()
        texts = _texts(store, study_id)
        items = dict(session.execute(select(Assignment.token, Assignment.item_id)).all())
        about = {one.id: about_of(one.scenario) for one in session.scalars(select(Item))}
        counts = dict(
            session.execute(
                select(StudyItem.item_id, func.count(Judgment.id))
                .outerjoin(
                    Judgment,
                    (Judgment.item_id == StudyItem.item_id)
                    & (Judgment.study_id == StudyItem.study_id)
                    & Judgment.is_current,
                )
                .where(StudyItem.study_id == study_id)
                .group_by(StudyItem.item_id)
            ).all()
        )
    stored = {
        (names[judge], event.partition("/")[2]): (item, None if choice == NONE else choice)
        for judge, event, item, choice in rows
    }
    lost = wrong = refused = 0
    for client in clients:
        for decision in client.decisions:
            if decision.answer:
                refused += 1
                continue
            found = stored.get((client.name, decision.event))
            if found is None:
                lost += 1
                continue
            item, label = found
            text = None if label is None else texts[item].get(label)
            if label is not None and text is None:  # an answer about a text, not a passage
                text = f"{label} {texts[item].get(about[item], about[item] or None)}"
            wrong += (item, text) != (items[decision.token], decision.text)
    per_judge = Counter((names[judge], item) for judge, _, item, _ in rows)
    return Compared(
        decided=sum(len(client.decisions) for client in clients),
        lost=lost,
        doubled=sum(number - 1 for number in per_judge.values()),
        on_the_wrong_item=wrong,
        refused=refused,
        not_exactly_the_overlap=sum(number != overlap for number in counts.values()),
    )


def _texts(store: Store, study_id: int) -> dict[int, dict[str, str]]:
    """Of every item of the study: the candidates' texts by label."""
    with store.read() as session:
        items = session.scalars(
            select(Item)
            .join(StudyItem, StudyItem.item_id == Item.id)
            .where(StudyItem.study_id == study_id)
        ).all()
        passages = dict(session.execute(select(Passage.id, Passage.text)).all())
    return {
        item.id: {entry["label"]: passages[entry["passage_id"]] for entry in item.candidates}
        for item in items
    }
