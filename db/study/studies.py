"""Studies: which items people and models judge, how often, under which guidelines.

Note: items are sampled from every group that reached validation, kept *and* dropped, and never two
of one group: with kept groups alone, the validator would be right by construction and kappa
against it circular.
"""

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, and_, case, func, or_, select, update
from sqlalchemy.orm import Session

from db.errors import BadInput, NotFound, Refused
from db.rows import Row
from db.run.new_items import is_pick
from db.run.runs import require_active_run, shape_of
from db.tables import (
    Assignment,
    Dataset,
    Group,
    Guideline,
    Item,
    Judge,
    Judgment,
    Run,
    Study,
    StudyItem,
)

GUIDELINES = """\
Read the instruction and the query, then every passage. Pick the **one** passage that answers the
query *in the way the instruction asks for*.

- A passage on the subject that ignores the instruction is not relevant.
- A passage that follows the instruction but answers another query is not relevant.
- Judge what the passages say, not how well they are written.
- No passage fits: choose **none of them**.
- Do not talk to others about the items before the study is closed.
"""

CHUNK = 5000
T = TypeVar("T")


class StudySummary(Row):
    """A study in a list: its settings, and `done` of `places` judgments by people."""

    id: int
    name: str
    dataset: str
    run_id: int | None
    status: str
    items: int
    overlap: int
    seed: int
    places: int
    done: int
    created_by: str
    created_at: datetime


class JudgeProgress(Row):
    """How many of a study's items a judge has answered."""

    judge_id: int
    judge: str
    kind: str
    simulated: bool
    offline: bool
    judged: int


@dataclass(frozen=True)
class Composition:
    """What a study's items were sampled from."""

    scenarios: dict[str, int]
    verdicts: dict[str, int]


def add_study(
    session: Session,
    *,
    run_id: int,
    item_ids: Sequence[int],
    overlap: int,
    seed: int = 0,
    name: str = "",
    guidelines: str = GUIDELINES,
    settings: Mapping[str, Any] | None = None,
    created_by: str = "",
) -> Study:
    """Create a study of these items of a run; `settings` records how they were sampled.

    Raises NotFound for an unknown run, Refused for an archived one, BadInput for no items, items of
    another run or two of one group. Does not commit.
    """
    run = session.get(Run, run_id)
    if run is None:
        raise NotFound(f"no run {run_id}", "`runs list` has all", code="run_unknown")
    require_active_run(session, run)
    _require_one_of_a_group(session, run_id, item_ids)
    return open_study(
        session,
        run,
        [[item_id] for item_id in item_ids],
        overlap=overlap,
        seed=seed,
        name=name or f"study of run {run_id}",
        guidelines=guidelines,
        settings={"sampling": "stratified", "strata": ["scenario"], **(settings or {})},
        created_by=created_by,
    )


def open_study(
    session: Session,
    run: Run,
    cards: Sequence[Sequence[int]],
    *,
    overlap: int,
    seed: int = 0,
    name: str,
    guidelines: str,
    settings: Mapping[str, Any],
    created_by: str = "",
) -> Study:
    """Create a study of these cards, each the items of one group that are shown together.

    `settings["per_card"]` is the largest number of items of one, 1 where it is missing. Raises
    BadInput without a card or a judge. Does not commit.
    """
    if not cards or overlap < 1:
        raise BadInput(
            f"a study needs at least one item and one judge per item: {len(cards)}, {overlap}",
            "give one of each or more",
            code="study_needs_items_and_judges",
        )
    study = Study(
        dataset_id=run.dataset_id,
        run_id=run.id,
        name=name,
        overlap=overlap,
        seed=seed,
        settings=dict(settings),
        created_by=created_by,
    )
    session.add(study)
    session.flush()
    session.add(Guideline(study_id=study.id, version=1, body=guidelines, created_by=created_by))
    session.add_all(
        StudyItem(study_id=study.id, item_id=item_id, position=position, places=overlap)
        for position, card in enumerate(shuffled(cards))
        for item_id in card
    )
    session.flush()
    return study


def shuffled(given: Sequence[T]) -> list[T]:
    """Items or cards in an order that nobody can compute: that of a sample reveals scenarios."""
    order = list(given)
    secrets.SystemRandom().shuffle(order)
    return order


def _require_one_of_a_group(session: Session, run_id: int, item_ids: Sequence[int]) -> None:
    group_of: dict[int, int] = {}
    for start in range(0, len(item_ids), CHUNK):
        query = (
            select(Item.id, Item.group_id, is_pick())
            .join(Group, Group.id == Item.group_id)
            .where(Group.run_id == run_id, Item.id.in_(item_ids[start : start + CHUNK]))
        )
        for item_id, group_id, picks in session.execute(query):
            group_of[item_id] = group_id
            if not picks:
                raise BadInput(
                    f"item {item_id} asks another question: a study asks which passage answers",
                    "take items of scenarios",
                    code="item_not_a_pick",
                )
    foreign = [item_id for item_id in item_ids if item_id not in group_of]
    if foreign:
        raise BadInput(
            f"item {foreign[0]} is not an item of run {run_id}",
            "leave it out, or choose its run",
            code="item_not_in_run",
        )
    if len({group_of[item_id] for item_id in item_ids}) < len(item_ids):
        raise BadInput(
            "a study takes at most one item of each group",
            "leave out the others",
            code="study_group_duplicate",
        )


def judged_groups(session: Session, run_id: int) -> dict[int, dict[str, int]]:
    """The newest item by scenario of every group of the run that reached validation; scenarios in
    the order of the run's shape."""
    query = (
        select(Item.group_id, Item.scenario, Item.id)
        .join(Group, Group.id == Item.group_id)
        .where(Group.run_id == run_id, is_pick())
        .order_by(Item.group_id, Item.scenario, Item.revision)
    )
    found: dict[int, dict[str, int]] = {}
    for group_id, scenario, item_id in session.execute(query):
        found.setdefault(group_id, {})[scenario] = item_id
    roles = shape_of(session, run_id).roles
    return {
        group_id: {role: items[role] for role in roles if role in items}
        for group_id, items in found.items()
    }


def has_checks(session: Session, run_id: int) -> bool:
    """Whether the run has items of checks."""
    return _has_items(session, run_id, ~is_pick())


def has_picks(session: Session, run_id: int) -> bool:
    """Whether the run has items of picks among passages, which a study of it is of."""
    return _has_items(session, run_id, is_pick())


def _has_items(session: Session, run_id: int, wanted: ColumnElement[bool]) -> bool:
    items = select(Item.id).join(Group, Group.id == Item.group_id)
    return bool(session.scalar(items.where(Group.run_id == run_id, wanted).limit(1)))


def used_groups(session: Session, study_id: int) -> set[int]:
    """The groups that the study has items of, gold and qualification too. Raises NotFound."""
    get_study(session, study_id)
    query = (
        select(Item.group_id)
        .join(StudyItem, StudyItem.item_id == Item.id)
        .where(StudyItem.study_id == study_id)
    )
    return set(session.scalars(query))


def get_study(session: Session, study_id: int) -> Study:
    """The study. Raises NotFound, naming the existing ones."""
    study = session.get(Study, study_id)
    if study is None:
        there = [str(number) for number in session.scalars(select(Study.id).order_by(Study.id))]
        known = f"there are {', '.join(there)}" if there else "create one with `studies create`"
        raise NotFound(
            f"no study {study_id}: {known}",
            "`studies list` has all",
            code="study_unknown",
            number=study_id,
        )
    return study


def list_studies(
    session: Session, *, dataset_id: int | None = None, statuses: Sequence[str] = ()
) -> list[StudySummary]:
    """Studies with their progress, newest first."""
    counted = (
        select(
            StudyItem.study_id,
            func.count().label("items"),
            func.coalesce(func.sum(StudyItem.places), 0).label("places"),
            func.sum(StudyItem.taken).label("taken"),
        )
        .where(StudyItem.part == "main")
        .group_by(StudyItem.study_id)
        .subquery()
    )
    leased = (
        select(Assignment.study_id, func.count().label("leased"))
        .join(
            StudyItem,
            and_(
                StudyItem.study_id == Assignment.study_id, StudyItem.item_id == Assignment.item_id
            ),
        )
        .where(Assignment.state == "leased", StudyItem.part == "main")
        .group_by(Assignment.study_id)
        .subquery()
    )
    query = (
        select(
            Study.id,
            Study.name,
            Dataset.name.label("dataset"),
            Study.run_id,
            Study.status,
            func.coalesce(counted.c["items"], 0).label("items"),
            Study.overlap,
            Study.seed,
            func.coalesce(counted.c["places"], 0).label("places"),
            (func.coalesce(counted.c.taken, 0) - func.coalesce(leased.c.leased, 0)).label("done"),
            Study.created_by,
            Study.created_at,
        )
        .join(Dataset, Dataset.id == Study.dataset_id)
        .outerjoin(counted, counted.c.study_id == Study.id)
        .outerjoin(leased, leased.c.study_id == Study.id)
        .order_by(Study.id.desc())
    )
    if dataset_id is not None:
        query = query.where(Study.dataset_id == dataset_id)
    if statuses:
        query = query.where(Study.status.in_(statuses))
    return [StudySummary.model_validate(row) for row in session.execute(query)]


def summarise_study(session: Session, study_id: int) -> StudySummary:
    """One study as in the list. Raises NotFound."""
    get_study(session, study_id)
    return next(found for found in list_studies(session) if found.id == study_id)


def compose(session: Session, study_id: int) -> Composition:
    """How many of a study's items are of each scenario, and of kept and dropped groups."""
    query = (
        select(Item.scenario, Group.verdict, func.count())
        .join(StudyItem, StudyItem.item_id == Item.id)
        .join(Group, Group.id == Item.group_id)
        .where(StudyItem.study_id == study_id, StudyItem.part == "main")
        .group_by(Item.scenario, Group.verdict)
    )
    scenarios: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    for scenario, verdict, number in session.execute(query):
        scenarios[scenario] += number
        verdicts[verdict or "undecided"] += number
    return Composition(dict(scenarios), dict(verdicts))


def count_parts(session: Session, study_id: int) -> dict[str, int]:
    """How many items of a study are main, qualification (`training`) and gold."""
    query = (
        select(StudyItem.part, func.count())
        .where(StudyItem.study_id == study_id)
        .group_by(StudyItem.part)
    )
    return dict(session.execute(query).all())


def judge_progress(session: Session, study_id: int) -> list[JudgeProgress]:
    """Every judge with a current judgment made in the study, and how many."""
    query = (
        select(
            Judge.id.label("judge_id"),
            Judge.name.label("judge"),
            Judge.kind,
            Judge.simulated,
            Judge.offline,
            func.count(Judgment.id).label("judged"),
        )
        .join(Judgment, Judgment.judge_id == Judge.id)
        .join(
            StudyItem,
            and_(StudyItem.study_id == study_id, StudyItem.item_id == Judgment.item_id),
        )
        .where(
            Judgment.study_id == study_id,
            Judgment.is_current,
            StudyItem.part == "main",
            Judge.kind != "adjudicator",
        )
        .group_by(Judge.id)
        .order_by(Judge.kind.desc(), Judge.name)
    )
    return [JudgeProgress.model_validate(row) for row in session.execute(query)]


def current_guideline(session: Session, study_id: int) -> Guideline:
    """The newest version of a study's guidelines."""
    found = session.scalar(
        select(Guideline)
        .where(Guideline.study_id == study_id)
        .order_by(Guideline.version.desc())
        .limit(1)
    )
    if found is None:
        raise NotFound(
            f"study {study_id} has no guidelines",
            "write them with `studies set ID guidelines=FILE`",
            code="study_without_guidelines",
        )
    return found


def write_guideline(
    session: Session, study_id: int, body: str, *, created_by: str = ""
) -> Guideline:
    """Add a version of a study's guidelines; judgments keep the one they were made under.

    The same text again adds no version. Raises BadInput for an empty text. Does not commit.
    """
    if not body.strip():
        raise BadInput(
            "the guidelines are empty", "write instructions for the judges", code="guidelines_empty"
        )
    newest = current_guideline(session, study_id)
    if newest.body == body:
        return newest
    guideline = Guideline(
        study_id=study_id, version=newest.version + 1, body=body, created_by=created_by
    )
    session.add(guideline)
    session.flush()
    return guideline


def extend_overlap(session: Session, study_id: int, overlap: int) -> Study:
    """Raise the number of judgments per item; no work is lost.

    Raises BadInput for a lower number than now. Does not commit.
    """
    study = get_study(session, study_id)
    if overlap < study.overlap:
        raise BadInput(
            f"study {study_id} has {study.overlap} judges per item: the overlap can only be raised",
            "Give a larger number",
            code="overlap_only_rises",
        )
    session.execute(
        update(StudyItem)
        # Gold of before migration 0020 that many judged is full, and stays so: it would be all that
        # a judge who has gone through the study is given.
        .where(
            StudyItem.study_id == study_id,
            or_(
                StudyItem.part == "main",
                and_(StudyItem.part == "gold", StudyItem.places == study.overlap),
            ),
        )
        .values(places=case((StudyItem.taken > overlap, StudyItem.taken), else_=overlap))
    )
    study.overlap = overlap
    session.flush()
    return study


def set_status(session: Session, study_id: int, status: str) -> Study:
    """Open, pause or close a study. Does not commit.

    Raises Refused for opening a closed one: who may judge in it may have read the answers since.
    """
    study = get_study(session, study_id)
    session.refresh(study, with_for_update={"key_share": True})  # against a concurrent close
    if study.status == "closed" and status != "closed":
        raise Refused(
            "a closed study has shown its answers",
            "create a new one",
            code="study_answers_shown",
        )
    study.status = status
    session.flush()
    return study


def add_items(
    session: Session, study_id: int, item_ids: Sequence[int], how: Mapping[str, Any]
) -> None:
    """Append items to a study, each to be judged as often as its others; `how` they were sampled
    is kept in `settings["additions"]`.

    Judges who had finished get them as their next items. Raises NotFound, BadInput where a group
    would give the study two items. Does not commit.
    """
    study = get_study(session, study_id)
    groups = [session.get_one(Item, item_id).group_id for item_id in item_ids]
    there = set(
        session.scalars(
            select(Item.group_id)
            .join(StudyItem, StudyItem.item_id == Item.id)
            .where(StudyItem.study_id == study_id)
        )
    )
    if len(set(groups)) < len(groups) or there & set(groups):
        raise BadInput(
            "a study takes at most one item of each group",
            "leave out the others",
            code="study_group_duplicate",
        )
    last = session.scalar(
        select(func.max(StudyItem.position)).where(StudyItem.study_id == study_id)
    )
    start = 0 if last is None else last + 1
    session.add_all(
        StudyItem(study_id=study_id, item_id=item_id, position=start + n, places=study.overlap)
        for n, item_id in enumerate(shuffled(item_ids))
    )
    additions = [*study.settings.get("additions", ()), dict(how)]
    study.settings = {**study.settings, "additions": additions}
    session.flush()
