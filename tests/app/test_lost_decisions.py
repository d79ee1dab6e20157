"""Real sessions of a real server that is killed, on a network that is cut: nothing is lost.

bench/decisions.py does the same 10,000 times.
"""

import asyncio
from pathlib import Path

import pytest
from asked_study import FLUENCY, QUERY_OK, ROLE, make_asked_study, record
from card_client import CardClient, add_annotators
from lost_decisions import compare, work_through
from restartable import restartable
from sqlalchemy import delete, select, update
from study_world import make_world, sampled_study

from db.store.store import Store
from db.tables import Judgment

KILLS, CUTS = 6, 600

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # connections that were cut
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.long
def test_no_decision_is_lost_doubled_or_on_another_item(store: Store, own_home: Path) -> None:
    run_id = make_world(store, 50)
    with store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=50, overlap=2).id
        session.commit()
    people = add_annotators(store, 3)
    with restartable(own_home, store.url) as server:
        desks = [
            CardClient(server.url, study_id, name, cookie, seed=number)
            for number, (name, cookie) in enumerate(people)
        ]

        async def work() -> int:
            return await work_through(
                server, desks, kills=1, cut_chance=0.2, seed=1, least_between=5
            )

        killed = asyncio.run(work())
    assert killed == 1
    found = compare(store, study_id, desks, overlap=2)
    assert (found.decided, found.faults) == (100, 0), found

    # The comparison sees what it looks for: one judgment taken away, one on another passage.
    with store.write() as session:
        first, second = session.scalars(select(Judgment).order_by(Judgment.id).limit(2)).all()
        other = next(label for label in second.order_shown if label != second.choice)
        session.execute(delete(Judgment).where(Judgment.id == first.id))
        session.execute(update(Judgment).where(Judgment.id == second.id).values(choice=other))
        session.commit()
    found = compare(store, study_id, desks, overlap=2)
    assert (found.lost, found.on_the_wrong_item, found.doubled) == (1, 1, 0)
    assert found.not_exactly_the_overlap == 1


@pytest.mark.long
def test_no_answer_to_a_card_of_several_questions_is_lost_doubled_or_misplaced(
    store: Store, own_home: Path, tmp_path: Path
) -> None:
    """20 people on graded cards, six kills and 600 cut connections: each answer is sent by itself,
    since five at once are too few sendings to cut."""
    rows = [record(number) for number in range(30)]
    study_id = make_asked_study(store, tmp_path, rows, [QUERY_OK, ROLE, FLUENCY], overlap=5)
    people = add_annotators(store, 20)
    with restartable(own_home, store.url) as server:
        desks = [
            CardClient(server.url, study_id, name, cookie, seed=number)
            for number, (name, cookie) in enumerate(people)
        ]

        async def work() -> int:
            return await work_through(
                server,
                desks,
                kills=KILLS,
                cut_chance=0.8,
                seed=1,
                least_between=60,
                one_by_one=True,
            )

        killed = asyncio.run(work())
    found = compare(store, study_id, desks, overlap=5)
    assert (found.decided, found.faults) == (30 * 6 * 5, 0), found
    assert killed == KILLS
    assert sum(client.cuts for client in desks) >= CUTS
    with store.write() as session:  # the comparison sees a grade on another passage
        first, second = session.scalars(
            select(Judgment).where(Judgment.choice.in_(("0", "1"))).limit(2)
        ).all()
        first.choice, second.choice = ("1", "0") if first.choice == "0" else ("0", "1")
        session.commit()
    assert compare(store, study_id, desks, overlap=5).on_the_wrong_item >= 1
