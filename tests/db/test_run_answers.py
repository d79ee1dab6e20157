"""What a run's judges answered, as the store counts it, and what the pages' queries cost."""

import random
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from grown_dataset import grown
from sqlalchemy import delete, event, select, update
from sqlite_steps import steps_counted

from curation.run.estimate import judging_prices
from db.corpus.browsing import list_pairs, list_passages
from db.outcome.independence import validators_of
from db.run.group_detail import get_group
from db.run.validations import answers_version, judging_cost, run_answers
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Call, Group, Item, Judge, Judgment, utc_now

pytestmark = pytest.mark.long


def add_item(store: Store, group_id: int, role: str, revision: int = 1) -> int:
    with store.write() as session:
        candidates = [{"passage_id": 1, "label": each} for each in INF_IR.roles]
        item = Item(
            group_id=group_id,
            scenario=role,
            expected=role,
            revision=revision,
            instruction="i",
            query="q",
            candidates=candidates,
        )
        session.add(item)
        session.commit()
        return item.id


def add_judge(store: Store, name: str) -> int:
    with store.write() as session:
        judge = Judge(name=name, kind="model", model=f"model of {name}")
        session.add(judge)
        session.commit()
        return judge.id


def answer(store: Store, item_id: int, judge_id: int, choice: str, run_id: int) -> int:
    """In place of the judge's current answer, if any."""
    with store.write() as session:
        mine = (Judgment.item_id == item_id, Judgment.judge_id == judge_id)
        session.execute(update(Judgment).where(*mine).values(is_current=False))
        number = len(session.scalars(select(Judgment.id).where(*mine)).all())
        judgment = Judgment(
            event_id=f"{judge_id} {item_id} {number}",
            judge_id=judge_id,
            item_id=item_id,
            run_id=run_id,
            choice=choice,
            order_shown=list(INF_IR.roles),
        )
        session.add(judgment)
        session.commit()
        return judgment.id


def judged_whole(store: Store, run_id: int, judge_id: int) -> None:
    with store.read() as session:
        groups = session.scalars(select(Group.id).where(Group.run_id == run_id)).all()
    for group_id in groups:
        for role in INF_IR.roles:
            answer(store, add_item(store, group_id, role), judge_id, role, run_id)


def test_the_store_counts_the_answers_that_a_reader_of_every_row_finds(store: Store) -> None:
    dice = random.Random(7)
    run_id, other = grown(store, groups=12), grown(store, name="other", groups=3)
    judges = [add_judge(store, name) for name in ("a;1", "b:2", "c")]
    judged_whole(store, other, judges[0])
    with store.write() as session:
        undecided = session.scalars(select(Group).where(Group.run_id == run_id).limit(2)).all()
        for group in undecided:
            group.state, group.verdict = "waiting", None
        session.commit()
        groups = session.scalars(select(Group.id).where(Group.run_id == run_id)).all()
    for group_id in groups[:-2]:  # of the last two nobody answered anything
        for role in INF_IR.roles:
            revisions = dice.choice((0, 1, 1, 2))
            items = [add_item(store, group_id, role, 1 + each) for each in range(revisions)]
            for item_id in items:
                for judge_id in dice.sample(judges, dice.randint(0, 3)):
                    for _ in range(dice.randint(1, 2)):
                        answer(
                            store, item_id, judge_id, dice.choice((*INF_IR.roles, "none")), run_id
                        )
    with store.read() as session:
        found = run_answers(session, run_id)
        expected: Counter[object] = Counter()
        names = dict(session.execute(select(Judge.id, Judge.name)).all())
        newest, answers = 0, 0
        for group in session.scalars(select(Group).where(Group.run_id == run_id)):
            seen: dict[str, list[int]] = {}
            items = session.scalars(select(Item).where(Item.group_id == group.id)).all()
            for place, role in enumerate(INF_IR.roles):
                mine = [item for item in items if item.scenario == role]
                if not mine:
                    continue
                item = max(mine, key=lambda each: each.revision)
                current = (Judgment.item_id == item.id, Judgment.is_current)
                for judgment in session.scalars(select(Judgment).where(*current)):
                    bits = seen.setdefault(names[judgment.judge_id], [0, 0])
                    bits[0] += 1 << place
                    bits[1] += (judgment.choice == role) << place
                    newest, answers = max(newest, judgment.id), answers + 1
            kept = None if group.verdict is None else group.verdict == "kept"
            expected[kept, tuple(sorted((name, *bits) for name, bits in seen.items()))] += 1
        times = dict(session.execute(select(Judgment.id, Judgment.decided_at)).all())
    assert found.patterns == dict(expected)
    assert (found.newest, found.answers, found.last_at) == (newest, answers, times[newest])
    assert sum(found.patterns.values()) == 12


def test_a_run_without_answers_has_its_groups_all_the_same(store: Store) -> None:
    run_id = grown(store, groups=5)
    with store.read() as session:
        found = run_answers(session, run_id)
    assert found.patterns == {(True, ()): 4, (False, ()): 1}
    assert (found.newest, found.answers, found.last_at) == (0, 0, None)


def test_whatever_changes_the_answers_changes_their_version(store: Store) -> None:
    run_id = grown(store, groups=4)
    first, second = add_judge(store, "a"), add_judge(store, "b")
    judged_whole(store, run_id, first)
    seen: list[object] = []

    def is_new() -> bool:
        with store.read() as session:
            version = answers_version(session, run_id)
        seen.append(version)
        return seen.count(version) == 1

    assert is_new()
    assert not is_new()
    with store.read() as session:
        items = session.scalars(select(Item.id).order_by(Item.id)).all()
        groups = session.scalars(select(Group.id).order_by(Group.id)).all()
    answer(store, items[0], first, "none", run_id)  # in place of another
    assert is_new()
    answer(store, items[0], second, "none", run_id)
    assert is_new()
    add_item(store, groups[0], INF_IR.roles[0], revision=2)  # whose answers do not count any more
    assert is_new()
    with store.write() as session:
        dropped = {"verdict": "dropped", "drop_reason": "ambiguous"}
        session.execute(update(Group).where(Group.id == groups[0]).values(dropped))
        session.commit()
    assert is_new()
    with store.write() as session:
        session.execute(delete(Judgment).where(Judgment.item_id == items[1]))
        session.commit()
    assert is_new()


def test_an_answer_that_takes_the_number_of_a_deleted_one_changes_the_version(
    sqlite_store: Store,
) -> None:
    """SQLite numbers the next row after the last that is left; event ids of a run are its own."""
    run_id = grown(sqlite_store, groups=1)
    judge_id = add_judge(sqlite_store, "a")
    item_id = add_item(sqlite_store, 1, INF_IR.roles[0])
    number = answer(sqlite_store, item_id, judge_id, INF_IR.roles[0], run_id)
    with sqlite_store.read() as session:
        before = answers_version(session, run_id)
    with sqlite_store.write() as session:
        session.execute(delete(Judgment).where(Judgment.id == number))
        session.commit()
    assert answer(sqlite_store, item_id, judge_id, INF_IR.roles[1], run_id) == number
    with sqlite_store.read() as session:
        assert answers_version(session, run_id) != before


def test_a_validator_is_found_by_its_own_answers_to_this_run(store: Store) -> None:
    run_id, other = grown(store, groups=2), grown(store, name="other", groups=2)
    judged_whole(store, run_id, add_judge(store, "a"))
    judged_whole(store, other, add_judge(store, "b"))
    with store.read() as session:
        assert validators_of(session, run_id) == {"a": "model of a"}
        assert validators_of(session, other) == {"b": "model of b"}


@pytest.fixture(scope="module")
def sizes() -> tuple[int, int]:
    """Groups of a small store and of one ten times as large."""
    return 20, 200


def test_a_group_costs_the_same_in_a_store_of_ten_times_as_many(
    sqlite_store: Store, sizes: tuple[int, int]
) -> None:
    """SQLite searched all judgments without a study for each group that was opened."""
    judge_id = add_judge(sqlite_store, "a")
    costs = []
    for size in sizes:
        run_id = grown(sqlite_store, name=str(size), groups=size)
        judged_whole(sqlite_store, run_id, judge_id)
        with sqlite_store.read() as session:
            group_id = session.scalars(select(Group.id).where(Group.run_id == run_id)).first()
            assert group_id is not None
            with steps_counted(session) as steps:
                assert len(get_group(session, group_id).judgments) == 3
            costs.append(steps.total)
    assert costs[1] < 1.5 * costs[0]


def test_of_texts_that_are_not_on_the_page_only_an_index_is_read(sqlite_store: Store) -> None:
    """SQLite read all pairs of a dataset with their passages to sort them."""
    grown(sqlite_store, groups=20)
    asked: list[tuple[str, Any]] = []

    def listen(_c: object, _u: object, statement: str, values: Any, _x: object, _m: object) -> None:
        asked.append((statement, values))

    event.listen(sqlite_store.engine, "before_cursor_execute", listen)
    with sqlite_store.read() as session:
        assert len(list_pairs(session, 1, limit=5)[0]) == 5
        assert len(list_passages(session, 1, limit=5)[0]) == 5
    event.remove(sqlite_store.engine, "before_cursor_execute", listen)
    with sqlite_store.engine.connect() as connection:
        for statement, values in asked:
            if statement.startswith("SELECT"):
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
                searches = [row[-1] for row in plan if row[-1].startswith(("SEARCH", "SCAN"))]
                assert any("USING COVERING INDEX" in each for each in searches), searches
                rest = [each for each in searches if "COVERING INDEX" not in each]
                assert all("INTEGER PRIMARY KEY" in each for each in rest), rest


def test_what_judging_cost_is_read_from_an_index_alone(store: Store) -> None:
    """Of 600,000 calls the rows, with request and answer, are gigabytes."""
    shared = {"provider": "openai", "prompt_sha256": "", "request": {}, "answer": "A"}
    kinds = [("validation", "gpt", 0.25), ("validation", "mini", 0.5), ("instruction", "gpt", 8.0)]
    with store.write() as session:
        for number in range(6):
            task, model, cost = kinds[number % 3]
            priced = {"task": task, "model": model, "cost_usd": cost}
            session.add(Call(key=str(number), **shared, **priced))
        session.commit()
    asked: list[tuple[str, Any]] = []

    def listen(_c: object, _u: object, statement: str, values: Any, _x: object, _m: object) -> None:
        asked.append((statement, values))

    event.listen(store.engine, "before_cursor_execute", listen)
    with store.read() as session:
        assert judging_cost(session, ("validation",)) == {"gpt": (2, 0.5), "mini": (2, 1.0)}
        assert judging_cost(session, ("negatives",)) == {}
    event.remove(store.engine, "before_cursor_execute", listen)
    statement, values = next(each for each in asked if each[0].startswith("SELECT"))
    explain = "EXPLAIN QUERY PLAN" if store.is_sqlite else "EXPLAIN"
    with store.engine.connect() as connection:
        if not store.is_sqlite:  # it scans a table of six rows
            connection.exec_driver_sql("SET enable_seqscan = off")
            connection.exec_driver_sql("SET enable_bitmapscan = off")
        plan = str(
            [row[-1] for row in connection.exec_driver_sql(f"{explain} {statement}", values)]
        )
    assert "ix_call_task_price" in plan, plan
    assert "COVERING INDEX" in plan or "Index Only Scan" in plan, plan


def test_prices_read_the_first_items_without_sorting_all(sqlite_store: Store) -> None:
    judge_id = add_judge(sqlite_store, "a")
    costs = []
    for size in (100, 300):  # 200 items are read of either
        run_id = grown(sqlite_store, name=str(size), groups=size)
        judged_whole(sqlite_store, run_id, judge_id)
        with sqlite_store.read() as session, steps_counted(session) as steps:
            (found,) = judging_prices(session, run_id, ["gpt-4o"]).values()
            assert found[0] is not None
        costs.append(steps.total)
    assert costs[1] < 1.5 * costs[0]


def test_the_newest_time_is_of_what_counts(store: Store) -> None:
    run_id = grown(store, groups=1)
    judge_id = add_judge(store, "a")
    item_id = add_item(store, 1, INF_IR.roles[0])
    number = answer(store, item_id, judge_id, INF_IR.roles[0], run_id)
    later = utc_now() + timedelta(hours=1)
    with store.write() as session:
        session.execute(update(Judgment).where(Judgment.id == number).values(decided_at=later))
        session.commit()
    with store.read() as session:
        assert run_answers(session, run_id).last_at == later
