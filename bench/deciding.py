"""A run of 100,000 judged groups decided again: seconds, on SQLite and on PostgreSQL.

    .venv/bin/python bench/deciding.py [--groups 100000] [--only sqlite] [--lists]

Three votes on each of three items of every group, of which every twentieth disagrees; all agree by
one version, the first alone by another. What is timed: `runs.decide` (read, decide, write and use),
its parts, `use_version` back, a comparison with its first page, and a page of groups of a version
that the run does not use. With --lists the same of groups of Promptriever's shape, in the same
store: an answer about each of eight texts, of which every twentieth and every 33rd drops its text.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT), str(ROOT / "bench")]

from large_run import fill  # noqa: E402
from postgres_cluster import Cluster, missing_programs  # noqa: E402
from sqlalchemy import func, insert, select, text, update  # noqa: E402

from app.access.identity import owner  # noqa: E402
from app.operations import groups, runs  # noqa: E402
from curation.rules.deciding import RunDecide  # noqa: E402
from curation.run.starting import judges_of, recipe_of, start_run  # noqa: E402
from db.corpus.texts import text_row  # noqa: E402
from db.review.queue import QueueFilter  # noqa: E402
from db.run.new_items import store_questions  # noqa: E402
from db.run.versions import VersionChoice, VersionComparison  # noqa: E402
from db.shape import INF_IR, SPARE  # noqa: E402
from db.store import schema  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import Store, open_store  # noqa: E402
from db.tables import Group, Item, Judgment, Passage, Run, SlotText, utc_now  # noqa: E402

owners_process(True)
ME = owner("bench")
CHUNK = 20_000


def judged(store: Store, run_id: int) -> None:
    """Items and judgments of three votes for every group, and the verdicts they give."""
    with store.write() as session:
        run = session.get_one(Run, run_id)
        judge_id = judges_of(session, run.provider, recipe_of(session, run))["validation"]
        ids = session.scalars(select(Group.id).where(Group.run_id == run_id)).all()
        number = 0
        for start in range(0, len(ids), CHUNK):
            items, judgments = [], []
            for group_id in ids[start : start + CHUNK]:
                for role in INF_IR.roles:
                    number += 1
                    other = "none" if number % 20 == 0 else role
                    votes = [
                        {"choice": choice, "order_shown": list(INF_IR.roles), "detail": {}}
                        for choice in (other, role, "none" if number % 33 == 0 else role)
                    ]
                    most = max((one["choice"] for one in votes), key=lambda c: c == role)
                    wrong = sum(one["choice"] != role for one in votes) > 1
                    items.append(
                        {
                            "id": number,
                            "group_id": group_id,
                            "scenario": role,
                            "revision": 1,
                            "instruction": "only what is old",
                            "query": "what is known",
                            "candidates": [{"passage_id": 1, "label": role}],
                            "expected": role,
                            "question_id": None,
                            "created_at": utc_now(),
                        }
                    )
                    judgments.append(
                        {
                            "event_id": f"run-{run_id}-group-{group_id}-{role}",
                            "judge_id": judge_id,
                            "item_id": number,
                            "run_id": run_id,
                            "choice": "none" if wrong else most,
                            "order_shown": list(INF_IR.roles),
                            "decided_at": utc_now(),
                            "is_current": True,
                            "flagged": False,
                            "note": "",
                            "detail": {"votes": votes},
                        }
                    )
            session.execute(insert(Item), items)
            session.execute(insert(Judgment), judgments)
        session.execute(
            text(
                "UPDATE \"group\" SET state = 'done', stage = 'validation', verdict = 'kept' "
                "WHERE run_id = :run"
            ),
            {"run": run_id},
        )
        run.status, run.finished_at = "done", utc_now()
        session.commit()


def checked(store: Store, run_id: int) -> None:
    """Texts, items and answers of Promptriever's shape for every group, none of which is dropped,
    as are some of the texts of its lists."""
    names = ("P+", "B", "N", "N[1]", "N[2]")
    with store.write() as session:
        run = session.get_one(Run, run_id)
        recipe = recipe_of(session, run)
        judges = judges_of(session, run.provider, recipe)
        stored = store_questions(session, [check.question for check in recipe.checks])
        passages = session.scalars(select(Passage.id).order_by(Passage.id).limit(len(names))).all()
        passage_of = dict(zip(names, passages, strict=True))
        number = session.scalar(select(func.max(Item.id))) or 0
        ids = session.scalars(select(Group.id).where(Group.run_id == run_id)).all()
        for start in range(0, len(ids), CHUNK // 2):
            items, judgments, texts = [], [], []
            for group_id in ids[start : start + CHUNK // 2]:
                dropped = {"B": SPARE}
                for check in recipe.checks:
                    for name in names if check.name == "fits" else names[2:]:
                        number += 1
                        expected = "no" if check.name == "fits" and name[0] == "N" else "yes"
                        label, answer = "positive" if name == "P+" else name, expected
                        if name[0] == "N" and number % (20 if expected == "no" else 33) == 0:
                            answer = "yes" if expected == "no" else "no"
                            dropped.setdefault(name, f"check_{check.name}")
                        of = {"positive": passage_of["P+"], label: passage_of[name]}
                        items.append(
                            {
                                "id": number,
                                "group_id": group_id,
                                "scenario": check.place(name),
                                "revision": 1,
                                "instruction": "only what is old",
                                "query": "what is known",
                                "candidates": [
                                    {"passage_id": one, "label": label} for label, one in of.items()
                                ],
                                "expected": expected,
                                "question_id": stored[check.question.key],
                                "created_at": utc_now(),
                            }
                        )
                        judgments.append(
                            {
                                "event_id": f"run-{run_id}-group-{group_id}-{check.place(name)}",
                                "judge_id": judges[check.task],
                                "item_id": number,
                                "run_id": run_id,
                                "choice": answer,
                                "order_shown": list(of),
                                "decided_at": utc_now(),
                                "is_current": True,
                                "flagged": False,
                                "note": "",
                                "detail": {},
                            }
                        )
                own = {"Q": "what is known", "I": "only what is old", **dict.fromkeys(names, "")}
                for name, value in own.items():
                    slot, _, place = name.partition("[")
                    row = text_row(group_id, slot, value, passage_of.get(name))
                    place = int(place.rstrip("]") or 0)
                    texts.append(row | {"ordinal": place, "dropped_reason": dropped.get(name)})
            for table, rows in ((Item, items), (Judgment, judgments), (SlotText, texts)):
                session.execute(insert(table), rows)
        session.execute(
            update(Group)
            .where(Group.run_id == run_id)
            .values(state="done", stage="validation", verdict="kept")
        )
        run.status, run.finished_at = "done", utc_now()
        session.commit()


def timed(name: str, what: str, work: Callable[[], Any]) -> Any:
    began = time.perf_counter()
    found = work()
    print(f"{name}, {what}: {time.perf_counter() - began:.2f} s", flush=True)
    return found


PICKS = ("validation.agree=2", "validation.agree=3", "validation.votes=1")
LISTS = (
    "checks.fits.expected.P+=any",
    "checks.fits.expected.N=any",
    "checks.answers.expected.N=any",
)


def measure(store: Store, name: str, wanted: int, *, lists: bool) -> None:
    schema.upgrade(store)
    fill(store, wanted)
    shapes = [(name, None, PICKS, judged)]
    if lists:
        shapes.append((f"{name}, lists", "promptriever", LISTS, checked))
    for title, recipe, rules, answer in shapes:
        with store.write() as session:
            settings = [] if recipe else ["validation.votes=3"]
            options = {"dataset": "large", "provider": "offline", "settings": settings}
            run_id = start_run(session, **options, recipe=recipe).id
            session.commit()
        answer(store, run_id)
        if name == "PostgreSQL":
            with store.write() as session:
                session.execute(text("ANALYZE"))
                session.commit()
        decide_again(title, run_id, rules)
    store.close()


def decide_again(name: str, run_id: int, rules: Sequence[str]) -> None:
    for rule in rules:
        decide = RunDecide(run_id=run_id, settings=(rule,))
        found = timed(name, f"decided by {rule}", lambda decide=decide: runs.decide(ME, decide))
        print(f"  {found.only_in_first:,} no more kept, {found.only_in_second:,} kept again")
        moved = sum(each.texts for each in found.texts if each.first != each.second)
        if moved:
            print(f"  {moved:,} texts moved", flush=True)
    back = VersionChoice(run_id=run_id, number=1)
    timed(name, "version 1 used again", lambda: runs.use_version(ME, back))
    pair = VersionComparison(run_id=run_id, first=1, second=3)
    timed(name, "two versions compared", lambda: runs.compare_versions(ME, pair))
    old = QueueFilter(run_id=run_id, verdict_version=3, verdict="dropped")
    timed(name, "a page of another version", lambda: groups.list_some(ME, old))
    timed(name, "versions listed", lambda: runs.list_versions(ME, run_id))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--only", choices=["sqlite", "postgres"])
    parser.add_argument("--lists", action="store_true", help="groups of Promptriever's shape, too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["INF_HOME"] = folder
        if arguments.only != "postgres":
            os.environ["INF_DATABASE_URL"] = f"sqlite:///{folder}/large.db"
            measure(open_store(), "SQLite", arguments.groups, lists=arguments.lists)
        if arguments.only != "sqlite" and not missing_programs():
            with Cluster() as cluster:
                url = os.environ["INF_DATABASE_URL"] = cluster.create("large")
                measure(open_store(url), "PostgreSQL", arguments.groups, lists=arguments.lists)


if __name__ == "__main__":
    main()
