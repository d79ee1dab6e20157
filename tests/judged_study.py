"""A small study with the judgments that a test writes down, letter by letter."""

from grown_dataset import grown
from sqlalchemy import select

from db.shape import INF_IR
from db.store.store import Store
from db.tables import Group, Item, Judge, Judgment, Run, Study, StudyItem


def judged(store: Store, answers: dict[str, str]) -> None:
    """A study whose judges gave these letters item by item: p(ositive), n(one), a dot for a gap."""
    run_id = grown(store, groups=max(8, *map(len, answers.values())))
    labels = {"p": "positive", "n": "none"}
    with store.write() as session:
        groups = session.scalars(select(Group).where(Group.run_id == run_id)).all()
        study = Study(
            dataset_id=session.get_one(Run, run_id).dataset_id, run_id=run_id, name="s", overlap=2
        )
        session.add(study)
        session.flush()
        items = []
        for group in groups:
            candidates = [{"passage_id": 1, "label": "positive"}]
            item = Item(
                group_id=group.id,
                scenario="positive",
                expected="positive",
                instruction="Be $brief$",
                query="why **not**",
                candidates=candidates,
            )
            session.add(item)
            session.flush()
            session.add(StudyItem(study_id=study.id, item_id=item.id))
            items.append(item)
        for name, letters in answers.items():
            judge = Judge(name=name, kind="model" if name.isupper() else "person")
            session.add(judge)
            session.flush()
            for item, letter in zip(items, letters, strict=False):
                if letter in labels:
                    session.add(
                        Judgment(
                            event_id=f"{name} {item.id}",
                            judge_id=judge.id,
                            item_id=item.id,
                            study_id=study.id,
                            choice=labels[letter],
                            order_shown=["positive"],
                        )
                    )
        session.commit()


def answered_whole(store: Store, judge: str, model: str, answers: list[str]) -> None:
    """The judge's letters for the three scenarios of each group: y(es), n(o)."""
    with store.write() as session:
        found = session.scalars(select(Judge).where(Judge.name == judge)).one_or_none()
        if found is None:
            found = Judge(name=judge, kind="model", model=model)
            session.add(found)
            session.flush()
        found.model = model
        groups = session.scalars(select(Group).order_by(Group.id)).all()
        for group, letters in zip(groups, answers, strict=False):
            for scenario, letter in zip(INF_IR.roles, letters, strict=True):
                item = session.scalars(
                    select(Item).where(Item.group_id == group.id, Item.scenario == scenario)
                ).one_or_none()
                if item is None:
                    item = Item(
                        group_id=group.id,
                        scenario=scenario,
                        expected=scenario,
                        instruction="i",
                        query="q",
                        candidates=[{"passage_id": 1, "label": role} for role in INF_IR.roles],
                    )
                    session.add(item)
                    session.flush()
                session.add(
                    Judgment(
                        event_id=f"whole {judge} {item.id}",
                        judge_id=found.id,
                        item_id=item.id,
                        choice=scenario if letter == "y" else "none",
                        order_shown=list(INF_IR.roles),
                    )
                )
        session.commit()
