"""Releases: which groups go out, and the record of what went out.

`chosen_ids` finds the groups of a choice, `release_rows` streams them, one query per batch, both
within the session's transaction, so that a release is a snapshot of the store (on PostgreSQL the
caller sets REPEATABLE READ, see `use_snapshot`).
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Select, and_, func, insert, or_, select
from sqlalchemy.orm import Session, aliased

from db.corpus.texts import pair_source
from db.errors import BadInput, NotFound
from db.run.groups import complete_groups
from db.scenarios import ROLES, TEXTS
from db.tables import (
    Dataset,
    Group,
    Item,
    Job,
    Judge,
    Judgment,
    Pair,
    Passage,
    Prompt,
    Recipe,
    Release,
    ReleaseGroup,
    Review,
    StudyItem,
    Triplet,
)
from db.tables import Run as RunTable

BATCH = 2000
REVIEWS = ("not-rejected", "approved")
ChoiceQuery = TypeVar("ChoiceQuery", bound=Select[*tuple[Any, ...]])


@dataclass(frozen=True)
class Choice:
    """Which groups of a run go into a release.

    A group without its three triplets never does: it has nothing to train on. `sources` and
    `languages` are values of the pairs' columns `source` (the dataset's if a pair has none) and
    `language`; empty means all. `study_id`: only groups that have items in that study.
    """

    run_id: int
    reviews: str = "not-rejected"
    include_dropped: bool = False
    sources: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    study_id: int | None = None

    def __post_init__(self) -> None:
        if self.reviews not in REVIEWS:
            raise BadInput(f"no review filter {self.reviews!r}: one of {', '.join(REVIEWS)}")


class ReleaseRow(NamedTuple):
    """A group as exported; texts as in `db.scenarios.TEXTS`."""

    group_id: int
    query_id: str
    passage_id: str
    verdict: str
    drop_reason: str | None
    review: str | None
    meta: dict[str, Any]
    texts: tuple[str, ...]


_FACTS = ReleaseRow._fields.index("texts")


def use_snapshot(session: Session) -> None:
    """From its next statement on, this session sees a snapshot of the store."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection(execution_options={"isolation_level": "REPEATABLE READ"})


def chosen_ids(session: Session, choice: Choice) -> "array[int]":
    """The ids of the chosen groups, ascending: eight bytes each, to hold millions of them."""
    query = _chosen(_written_groups(), choice).order_by(Group.id)
    found = session.execute(query.execution_options(yield_per=BATCH))
    return array("q", (group_id for (group_id,) in found))


def release_rows(session: Session, group_ids: Sequence[int]) -> Iterator[list[ReleaseRow]]:
    """The given groups in their order, a batch at a time.

    A batch is selected by its ids alone: with another condition SQLite takes the index of verdicts
    and sorts all the rest of the run for every batch.
    """
    joined = {role: (aliased(Triplet), aliased(Passage)) for role in ROLES}
    texts = (
        joined[text.introduced_by][1].text
        if text.field == "passage"
        else getattr(joined[text.introduced_by][0], text.field)
        for text in TEXTS.values()
    )
    query = (
        select(
            Group.id,
            Pair.external_id,
            joined["positive"][1].external_id,
            Group.verdict,
            Group.drop_reason,
            Review.action,
            Pair.meta,
            *texts,
        )
        .join(Pair, Pair.id == Group.pair_id)
        .outerjoin(Review, and_(Review.group_id == Group.id, Review.is_current))
    )
    for role, (triplet, passage) in joined.items():
        query = query.join(triplet, and_(triplet.group_id == Group.id, triplet.role == role))
        query = query.join(passage, passage.id == triplet.passage_id)
    for start in range(0, len(group_ids), BATCH):
        ids = list(group_ids[start : start + BATCH])
        rows = session.execute(query.where(Group.id.in_(ids)).order_by(Group.id))
        yield [ReleaseRow._make((*row[:_FACTS], tuple(row[_FACTS:]))) for row in rows]


def split_texts(
    session: Session, group_ids: Sequence[int]
) -> Iterator[list[tuple[int, str, str, str]]]:
    """(group, role, query, passage) of the groups' triplets, a batch at a time, by group."""
    query = select(Triplet.group_id, Triplet.role, Triplet.query, Passage.text)
    query = query.join(Passage, Passage.id == Triplet.passage_id)
    for start in range(0, len(group_ids), BATCH):
        ids = list(group_ids[start : start + BATCH])
        rows = session.execute(
            query.where(Triplet.group_id.in_(ids)).order_by(Triplet.group_id, Triplet.id)
        )
        yield [(row[0], row[1], row[2], row[3]) for row in rows]


def sources_of_groups(session: Session, group_ids: Sequence[int]) -> list[str]:
    """The source of each group's pair (the dataset's if it has none), in the given order."""
    query = (
        select(Group.id, pair_source())
        .join(Pair, Pair.id == Group.pair_id)
        .join(Dataset, Dataset.id == Pair.dataset_id)
    )
    found: list[str] = []
    for start in range(0, len(group_ids), BATCH):
        ids = list(group_ids[start : start + BATCH])
        rows = session.execute(query.where(Group.id.in_(ids)).order_by(Group.id))
        found += [row[1] or "" for row in rows]
    return found


def chosen_licences(session: Session, choice: Choice, default: str) -> list[str]:
    """The licences of the chosen groups' pairs; the dataset's if a pair names none."""
    value = func.coalesce(
        func.nullif(func.trim(Pair.meta["licence"].as_string()), ""),
        func.nullif(func.trim(Pair.meta["license"].as_string()), ""),
        default,
    )
    query = _chosen(select(value).select_from(Group).join(Pair, Pair.id == Group.pair_id), choice)
    return sorted(str(licence) for licence in session.scalars(query.distinct()))


def choice_state(session: Session, choice: Choice) -> list[int]:
    """Numbers that change whenever the contents of a release of this choice may have changed."""
    run = select(Group.id).where(Group.run_id == choice.run_id)
    reviews = select(func.max(Review.id), func.count(Review.id)).where(Review.group_id.in_(run))
    judgments = (
        select(func.max(Judgment.id), func.count(Judgment.id))
        .join(Item, Item.id == Judgment.item_id)
        .where(Item.group_id.in_(run), Judgment.is_current)
    )
    groups = select(func.max(Group.id), func.count(Group.id)).where(
        Group.run_id == choice.run_id, Group.verdict.is_not(None)
    )
    return [
        number or 0
        for query in (groups, reviews, judgments)
        for number in session.execute(query).one()
    ]


class ChosenCount(NamedTuple):
    """The number of chosen groups with this verdict, current review and source."""

    verdict: str
    review: str
    source: str
    groups: int


def count_by_kind(session: Session, choice: Choice, source: str) -> list[ChosenCount]:
    """Counts of the chosen groups; `source` is used for pairs that name none."""
    value = func.coalesce(func.nullif(Pair.meta["source"].as_string(), ""), source)
    review = func.coalesce(Review.action, "")
    query = select(Group.verdict, review, value, func.count()).select_from(Group)
    query = query.join(Pair, Pair.id == Group.pair_id).where(Group.id.in_(complete_groups()))
    query = _chosen(query, choice).group_by(Group.verdict, review, value)
    return [ChosenCount(*row) for row in session.execute(query)]


def pushes(session: Session) -> dict[int, list[Job]]:
    """The successful pushes by release, the newest first."""
    found: dict[int, list[Job]] = {}
    query = select(Job).where(Job.kind == "push", Job.status == "done").order_by(Job.id.desc())
    for job in session.scalars(query):
        release_id = job.config.get("release_id")
        if release_id is not None and (job.result or {}).get("pushed"):
            found.setdefault(int(release_id), []).append(job)
    return found


def _written_groups() -> Select[int]:
    query = select(Group.id).join(Pair, Pair.id == Group.pair_id)
    return query.where(Group.id.in_(complete_groups()))


def record_release(
    session: Session,
    *,
    dataset_id: int,
    name: str,
    content_sha256: str,
    path: str,
    format: str,
    filter: dict[str, Any],
    counts: dict[str, Any],
    offline: bool,
    created_by: str,
    groups: Iterable[tuple[int, str, str]],
) -> Release:
    """Store a release and its groups: id, split, sha256 of the row.

    The card is stored later: it needs the id. Does not commit.
    """
    release = Release(
        dataset_id=dataset_id,
        name=name,
        content_sha256=content_sha256,
        path=path,
        format=format,
        filter=filter,
        counts=counts,
        card="",
        offline=offline,
        created_by=created_by,
    )
    session.add(release)
    session.flush()
    batch: list[dict[str, Any]] = []
    for group_id, split, row_sha256 in groups:
        batch.append(
            {
                "release_id": release.id,
                "group_id": group_id,
                "split": split,
                "row_sha256": row_sha256,
            }
        )
        if len(batch) == BATCH:
            session.execute(insert(ReleaseGroup), batch)
            batch = []
    if batch:
        session.execute(insert(ReleaseGroup), batch)
    return release


@dataclass(frozen=True)
class GroupJudgment:
    """A current judgment of a group's item; people are pseudonymous."""

    group_id: int
    item_id: int
    scenario: str
    revision: int
    judge: str
    kind: str
    offline: bool
    simulated: bool
    choice: str
    position: int | None


def group_judgments(session: Session, group_ids: Sequence[int]) -> dict[int, list[GroupJudgment]]:
    """The current judgments of the groups' items, by group; people as `person-N`.

    `position` is that of the chosen candidate, counted from 1; None for "none".
    """
    query = (
        select(
            Item.group_id,
            Item.id,
            Item.scenario,
            Item.revision,
            Judge.id,
            Judge.name,
            Judge.kind,
            Judge.offline,
            Judge.simulated,
            Judgment.choice,
            Judgment.order_shown,
        )
        .join(Judgment, Judgment.item_id == Item.id)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Item.group_id.in_(group_ids), Judgment.is_current)
        .order_by(Item.group_id, Item.id, Judgment.id)
    )
    found: dict[int, list[GroupJudgment]] = {}
    for row in session.execute(query):
        group_id, item_id, scenario, revision, judge_id, name, kind, *rest = row
        offline, simulated, choice, order = rest
        found.setdefault(group_id, []).append(
            GroupJudgment(
                group_id=group_id,
                item_id=item_id,
                scenario=scenario,
                revision=revision,
                judge=pseudonym(judge_id) if kind == "person" else name,
                kind=kind,
                offline=offline,
                simulated=simulated,
                choice=choice,
                position=order.index(choice) + 1 if choice in order else None,
            )
        )
    return found


def pseudonym(judge_id: int) -> str:
    """A person's name in releases: constant within a store, and does not identify anyone."""
    return f"person-{judge_id}"


def get_release(session: Session, release_id: int) -> Release:
    """The release. Raises NotFound."""
    release = session.get(Release, release_id)
    if release is None:
        raise NotFound(f"no release {release_id}: `inf export --dataset NAME --out DIR` makes one")
    return release


def list_releases(session: Session, dataset_id: int | None = None) -> list[Release]:
    """Releases, newest first, of all datasets or of one."""
    query = select(Release).order_by(Release.id.desc())
    if dataset_id is not None:
        query = query.where(Release.dataset_id == dataset_id)
    return list(session.scalars(query))


def find_release_at(session: Session, path: str, content_sha256: str) -> Release | None:
    """The newest release with this content in this folder, None if there is none."""
    return session.scalars(
        select(Release)
        .where(Release.path == path, Release.content_sha256 == content_sha256)
        .order_by(Release.id.desc())
        .limit(1)
    ).first()


def recipe_of_run(session: Session, run_id: int) -> tuple[Recipe, dict[str, Prompt]]:
    """The recipe of a run and its prompts by sha256."""
    recipe = session.scalars(
        select(Recipe).join(RunTable, RunTable.recipe_id == Recipe.id).where(RunTable.id == run_id)
    ).one()
    wanted = {
        stage["prompt_sha256"]
        for stage in recipe.body.get("stages", {}).values()
        if "prompt_sha256" in stage
    }
    prompts = session.scalars(select(Prompt).where(Prompt.sha256.in_(wanted)))
    return recipe, {prompt.sha256: prompt for prompt in prompts}


def _chosen(query: ChoiceQuery, choice: Choice) -> ChoiceQuery:
    verdicts: Sequence[str] = ("kept", "dropped") if choice.include_dropped else ("kept",)
    query = query.where(Group.run_id == choice.run_id, Group.verdict.in_(verdicts))
    query = query.outerjoin(Review, and_(Review.group_id == Group.id, Review.is_current))
    if choice.sources:
        query = query.join(Dataset, Dataset.id == Pair.dataset_id)
        query = query.where(pair_source().in_(choice.sources))
    if choice.study_id is not None:
        judged = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
        query = query.where(Group.id.in_(judged.where(StudyItem.study_id == choice.study_id)))
    if choice.languages:
        query = query.where(Pair.meta["language"].as_string().in_(choice.languages))
    if choice.reviews == "approved":
        return query.where(Review.action == "approve")
    return query.where(or_(Review.action.is_(None), Review.action != "reject"))
