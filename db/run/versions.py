"""Verdict versions of a run: its groups' verdicts by other rules over the same stored answers.

Every version keeps the verdict of each group (`GroupVerdict`) and what becomes of each text of its
lists (`TextVerdict`); `Group` and `SlotText` have those of the version that the run uses, so that
whatever reads them reads the current ones. Version 1 is what the run decided by its recipe as it
worked; it has a row as soon as there is a second version. Reviews are of the group, and stay.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import computed_field
from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session, aliased

from db.errors import NotFound, Refused
from db.requests import Request, option
from db.rows import Row
from db.run.runs import drop_reasons, get_run, keep_count, outcomes, require_active_run, shape_of
from db.shape import INSTEAD, STANDS_IN, TAKEN_OUT, Shape, text_name
from db.store.bulk import insert_rows
from db.tables import (
    Group,
    GroupVerdict,
    Item,
    Pair,
    Passage,
    Release,
    ReleaseRun,
    Review,
    Run,
    SlotText,
    TextVerdict,
    VerdictVersion,
    utc_now,
)

FIRST = 1
KEPT = "kept"
CHUNK = 5000
VERSIONS = "verdict_versions"  # of a release's filter: {run: version}, for those that are not 1
Place = tuple[str, int]  # of a list's text: slot and number


class DecidedGroup(NamedTuple):
    """How a group ends: why it is dropped, None if kept; and why each of its lists' texts is."""

    id: int
    reason: str | None
    detail: str | None
    texts: Mapping[Place, str | None]


class VersionChoice(Request):
    """A verdict version of a run."""

    run_id: int = option(..., "The run.", names=(), metavar="RUN")
    number: int = option(
        ..., "The version, as the run's versions are numbered.", names=(), metavar="VERSION", ge=1
    )


class VersionComparison(Request):
    """Two verdict versions of a run, and which of the groups that changed are listed."""

    run_id: int = option(..., "The run.", names=(), metavar="RUN")
    first: int = option(FIRST, "The first version.", names=(), metavar="FIRST", ge=1)
    second: int | None = option(
        None, "The second one; default: what the run uses.", names=(), metavar="SECOND", ge=1
    )
    was: str | None = option(
        None, "Only groups that ended so in the first: kept, or a drop reason.", metavar="REASON"
    )
    now: str | None = option(None, "Only groups that ended so in the second.", metavar="REASON")


class VersionRow(Row):
    """A verdict version: what it changed of the recipe's rules, by whom, and what it kept.

    `settings` is empty for the recipe's own rules. `releases`: those made of it.
    """

    number: int
    settings: tuple[str, ...]
    kept: int
    dropped: dict[str, int]
    created_by: str
    created_at: datetime
    current: bool
    releases: tuple[int, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def id(self) -> int:
        """Its number, which the run and operations name it by."""
        return self.number

    @computed_field  # type: ignore[prop-decorator]
    @property
    def name(self) -> str:
        """What lists call it."""
        return f"version {self.number}"


class ReasonChange(Row):
    """How many groups ended one way in the first version and another way in the second: a drop
    reason, or `kept`."""

    first: str
    second: str
    groups: int


class TextChange(Row):
    """How many texts of lists ended one way in the first version and another way in the second: a
    drop reason, or `kept`."""

    first: str
    second: str
    texts: int


class ChangedText(Row):
    """A text of a list, as it is called in its group, and how it ended in both versions."""

    name: str
    first: str
    second: str


class ChangedGroup(Row):
    """A group with another verdict or drop reason in the second version, or with other texts."""

    id: int
    name: str
    query: str
    first: str
    first_detail: str | None
    second: str
    second_detail: str | None
    texts: tuple[ChangedText, ...]


def list_versions(session: Session, run_id: int) -> list[VersionRow]:
    """The versions of a run, the first one first. Raises NotFound."""
    run = get_run(session, run_id)
    made_of: dict[int, list[int]] = {}
    of_run = select(Release.id, Release.filter).join(
        ReleaseRun, ReleaseRun.release_id == Release.id
    )
    for release_id, chosen in session.execute(
        of_run.where(ReleaseRun.run_id == run_id).order_by(Release.id)
    ):
        number = chosen.get(VERSIONS, {}).get(str(run_id), FIRST)
        made_of.setdefault(number, []).append(release_id)
    rows = _versions(session, run_id) or [_first(session, run)]
    return [
        VersionRow(
            number=row.number,
            settings=tuple(row.settings),
            kept=row.counts["kept"],
            dropped=_by_frequency(row.counts["dropped"]),
            created_by=row.created_by,
            created_at=row.created_at,
            current=row.number == run.verdict_version,
            releases=tuple(made_of.get(row.number, ())),
        )
        for row in rows
    ]


def get_version(session: Session, run_id: int, number: int) -> VerdictVersion | None:
    """A version; None for the first one of a run that has no other. Raises NotFound."""
    rows = {row.number: row for row in _versions(session, run_id)}
    if number in rows:
        return rows[number]
    if not rows and number == FIRST:
        return None
    listed = ", ".join(map(str, rows or (FIRST,)))
    raise NotFound(
        f"run {run_id} has no verdict version {number}: there are {listed}",
        f"`runs versions {run_id}` lists them",
        code="verdict_version_unknown",
    )


def reasons_of(session: Session, run_id: int, number: int) -> Sequence[str]:
    """The drop reasons of a version, the most frequent first. Raises NotFound."""
    version = get_version(session, run_id, number)
    if version is None:
        return drop_reasons(session, run_id)
    return list(_by_frequency(version.counts["dropped"]))


def require_no_versions(session: Session, run_id: int) -> None:
    """Raise Refused for a run that was decided again. Locks the run: it is not meanwhile."""
    lock_run(session, run_id)
    if rows := _versions(session, run_id):
        raise Refused(
            f"run {run_id} has {len(rows)} verdict versions, which are of its groups as they are",
            "create a run, which reuses the stored answers, or delete the versions with "
            f"`runs remove-version {run_id}`",
            code="run_has_versions",
        )


def rules_now(session: Session, run: Run) -> tuple[str, ...]:
    """The settings of the version that a run uses; none for the first."""
    version = _current(session, run)
    return () if version is None else tuple(version.settings)


def versions_in(filter: Mapping[str, Any]) -> str:
    """The verdict versions that a release's filter names: "version 2 of run 3"; "" for the first
    ones."""
    named = filter.get(VERSIONS) or {}
    return ", ".join(f"version {number} of run {run}" for run, number in named.items())


def was_decided_since(session: Session, run_id: int, at: datetime) -> bool:
    """Whether the run began to use another version after that time."""
    query = select(VerdictVersion.id).where(VerdictVersion.run_id == run_id)
    return session.scalar(query.where(VerdictVersion.used_at > at).limit(1)) is not None


def expected_now(session: Session, run: Run) -> Mapping[str, str | None]:
    """Right answers of items, by their place in the group, where the run's version has others than
    the items themselves."""
    version = _current(session, run)
    return {} if version is None else version.expected


def _current(session: Session, run: Run) -> VerdictVersion | None:
    """The version that a run uses; None for the first, by which its groups were judged."""
    if run.verdict_version == FIRST:
        return None
    return get_version(session, run.id, run.verdict_version)


def add_version(
    session: Session,
    run_id: int,
    decided: Iterable[DecidedGroup],
    *,
    settings: Sequence[str],
    expected: Mapping[str, str | None],
    finished_at: datetime | None,
    created_by: str,
) -> VerdictVersion:
    """Store another version of a run: the given groups as decided, the others as in version 1.

    The one that is there where a version has these settings: the answers are the same.

    The run is locked: of two at once the second takes the next number. `finished_at`: the run's end
    when its answers were read. Raises Refused if the run is not done, is archived, or has worked
    since. Does not commit.
    """
    run = lock_finished(session, run_id)
    if run.finished_at != finished_at:
        raise Refused(
            f"run {run_id} worked on while it was decided again",
            "decide it again",
            code="run_changed_meanwhile",
        )
    rows = _versions(session, run_id)
    if same := [row for row in rows if row.settings == list(settings)]:
        return same[0]
    if not rows:
        rows = [_first(session, run)]
        session.add(rows[0])
        session.flush()
        columns = Group.id, literal(rows[0].id), *_verdict_columns(Group)
        _insert(session, select(*columns).where(Group.run_id == run_id))
        _insert_texts(session, _listed_texts(session, run_id, rows[0].id))
    version = VerdictVersion(
        run_id=run_id,
        number=rows[-1].number + 1,
        settings=list(settings),
        expected=dict(expected),
        counts={},
        created_by=created_by,
    )
    session.add(version)
    session.flush()
    changed, texts = [], []
    for group in decided:
        of = {"group_id": group.id, "version_id": version.id}
        ends = {"drop_reason": group.reason, "drop_detail": group.detail}
        changed.append({**of, "verdict": "dropped" if group.reason else "kept", **ends})
        texts += [
            {**of, "slot": slot, "ordinal": number, "dropped_reason": reason}
            for (slot, number), reason in group.texts.items()
        ]
    for table, new in ((GroupVerdict, changed), (TextVerdict, texts)):
        for start in range(0, len(new), CHUNK):
            insert_rows(session, table, new[start : start + CHUNK])
    mine = select(GroupVerdict.group_id).where(GroupVerdict.version_id == version.id)
    others = select(GroupVerdict.group_id, literal(version.id), *_verdict_columns(GroupVerdict))
    _insert(
        session,
        others.where(GroupVerdict.version_id == rows[0].id, GroupVerdict.group_id.not_in(mine)),
    )
    if texts:
        of_texts = select(TextVerdict.group_id).where(TextVerdict.version_id == version.id)
        first = select(
            TextVerdict.group_id,
            literal(version.id),
            TextVerdict.slot,
            TextVerdict.ordinal,
            TextVerdict.dropped_reason,
        )
        _insert_texts(
            session,
            first.where(
                TextVerdict.version_id == rows[0].id, TextVerdict.group_id.not_in(of_texts)
            ),
        )
    version.counts = _counts(session, version.id)
    session.flush()
    return version


def use_version(session: Session, run_id: int, number: int) -> None:
    """Give the run's groups the verdicts of one of its versions. Raises NotFound, Refused as
    `add_version`. Does not commit."""
    run = lock_finished(session, run_id)
    version = get_version(session, run_id, number)
    if version is None or run.verdict_version == number:
        return
    session.execute(
        update(Group)
        .where(
            Group.run_id == run_id,
            Group.id == GroupVerdict.group_id,
            GroupVerdict.version_id == version.id,
            or_(
                Group.verdict != GroupVerdict.verdict,
                Group.drop_reason.is_distinct_from(GroupVerdict.drop_reason),
                Group.drop_detail.is_distinct_from(GroupVerdict.drop_detail),
            ),
        )
        .values(
            verdict=GroupVerdict.verdict,
            drop_reason=GroupVerdict.drop_reason,
            drop_detail=GroupVerdict.drop_detail,
        ),
        execution_options={"synchronize_session": False},
    )
    _use_texts(session, shape_of(session, run_id), version)
    session.expire_all()
    version.used_at = utc_now()
    keep_count(session, run_id)
    get_run(session, run_id).verdict_version = number
    session.flush()


def remove_version(session: Session, run_id: int, number: int) -> None:
    """Delete a version. Raises NotFound, and Refused for the first one, the one that the run uses,
    and one that a release is made of. Does not commit."""
    run = lock_finished(session, run_id)
    version = get_version(session, run_id, number)
    listed = {row.number: row for row in list_versions(session, run_id)}
    if version is None or number == FIRST:
        raise Refused(
            "version 1 is what the run decided as it worked: it stays",
            "name a later one",
            code="verdict_version_in_use",
        )
    if number == run.verdict_version:
        raise Refused(
            f"run {run_id} uses its version {number}",
            f"use another one first (`runs use-version {run_id} {FIRST}`)",
            code="verdict_version_in_use",
        )
    if made := listed[number].releases:
        raise Refused(
            f"release {made[0]} is made of version {number} of run {run_id}: it stays",
            "name one that no release is made of",
            code="verdict_version_in_use",
        )
    session.delete(version)
    session.flush()
    rows = _versions(session, run_id)
    if len(rows) == 1:  # the run's groups have what it holds
        session.delete(rows[0])
        session.flush()


def lock_finished(session: Session, run_id: int) -> Run:
    """The run, locked until the transaction ends. Raises NotFound, Refused unless it is done and
    active."""
    lock_run(session, run_id)
    return require_finished(session, run_id)


def require_finished(session: Session, run_id: int) -> Run:
    """The run. Raises NotFound, Refused unless it is done and active."""
    run = get_run(session, run_id)
    require_active_run(session, run)
    if run.status != "done":
        raise Refused(
            f"run {run_id} is {run.status}: it can be decided again when all its groups are",
            f"`runs resume {run_id}` finishes it",
            code="run_not_done",
        )
    return run


def lock_run(session: Session, run_id: int) -> Run:
    """The run as it is now, which no other transaction changes until this one ends. Raises
    NotFound."""
    # not FOR UPDATE: what takes a key share of the run (a release, a study) need not wait
    session.execute(select(Run.id).where(Run.id == run_id).with_for_update(key_share=True))
    return get_run(session, run_id)


def compare_versions(
    session: Session, run_id: int, first: int, second: int
) -> tuple[ReasonChange, ...]:
    """How many groups ended how in two versions, the most frequent first. Raises NotFound."""
    one, other = _ended(session, run_id, first), _ended(session, run_id, second)
    rows = session.execute(
        select(one.c.ended, other.c.ended, func.count())
        .join(other, other.c.id == one.c.id)
        .group_by(one.c.ended, other.c.ended)
        .order_by(func.count().desc(), one.c.ended, other.c.ended)
    )
    return tuple(ReasonChange(first=row[0], second=row[1], groups=row[2]) for row in rows)


def changes_by(
    session: Session, run_id: int, decided: Iterable[DecidedGroup]
) -> tuple[ReasonChange, ...]:
    """How many groups end how now, and how as decided, the most frequent first; a group that is not
    among them as in version 1. Raises NotFound."""
    first = session.execute(select(_ended(session, run_id, FIRST))).all()
    now = _ended(session, run_id, get_run(session, run_id).verdict_version)
    before = {row.id: row.ended for row in session.execute(select(now.c.id, now.c.ended))}
    then = {row.id: row.ended for row in first} | {one.id: one.reason or KEPT for one in decided}
    found = Counter((before[group_id], ended) for group_id, ended in then.items())
    return tuple(
        ReasonChange(first=one, second=other, groups=groups)
        for (one, other), groups in sorted(found.items(), key=lambda each: (-each[1], each[0]))
    )


def compare_texts(session: Session, run_id: int, first: int, second: int) -> tuple[TextChange, ...]:
    """As `compare_versions`, of the texts of lists."""
    one, other = (_texts_ended(session, run_id, number) for number in (first, second))
    if one is None or other is None:
        return ()
    rows = session.execute(
        select(one.c.ended, other.c.ended, func.count())
        .join(other, _same_text(one, other))
        .group_by(one.c.ended, other.c.ended)
        .order_by(func.count().desc(), one.c.ended, other.c.ended)
    )
    return tuple(TextChange(first=row[0], second=row[1], texts=row[2]) for row in rows)


def text_changes_by(
    session: Session, run_id: int, decided: Iterable[DecidedGroup]
) -> tuple[TextChange, ...]:
    """As `changes_by`, of the texts of lists."""
    sides = []
    for number in (get_run(session, run_id).verdict_version, FIRST):
        ended = _texts_ended(session, run_id, number)
        if ended is None:
            return ()
        rows = session.execute(select(ended.c.id, ended.c.slot, ended.c.ordinal, ended.c.ended))
        sides.append({(row[0], row[1], row[2]): row[3] for row in rows})
    before, then = sides
    then |= {
        (group.id, *place): reason or KEPT
        for group in decided
        for place, reason in group.texts.items()
    }
    found = Counter((before[text], ended) for text, ended in then.items())
    return tuple(
        TextChange(first=one, second=other, texts=texts)
        for (one, other), texts in sorted(found.items(), key=lambda each: (-each[1], each[0]))
    )


def changed_groups(
    session: Session,
    run_id: int,
    first: int,
    second: int,
    *,
    ended: tuple[str | None, str | None] = (None, None),
    without: ColumnElement[bool] | None = None,
    offset: int = 0,
    limit: int | None = 20,
) -> tuple[list[ChangedGroup], int]:
    """Groups that ended otherwise in the second version, or whose lists' texts did, in the order of
    the run, and their number.

    `ended`: how in each of them, `kept` or a drop reason; None for any. `without`: a condition on
    `Pair.id`, pairs that are hidden from who reads them. Raises NotFound.
    """
    one, other = _ended(session, run_id, first), _ended(session, run_id, second)
    query = (
        select(
            one.c.id,
            Pair.external_id,
            Pair.query,
            one.c.ended,
            one.c.detail,
            other.c.ended,
            other.c.detail,
        )
        .join(other, other.c.id == one.c.id)
        .join(Pair, Pair.id == one.c.pair_id)
    )
    texts = _changed_texts(session, run_id, first, second)
    differs: ColumnElement[bool] = one.c.ended != other.c.ended
    if texts is not None:
        differs |= one.c.id.in_(select(texts.c.id))
    query = query.where(differs)
    for side, wanted in zip((one, other), ended, strict=True):
        query = query if wanted is None else query.where(side.c.ended == wanted)
    if without is not None:
        query = query.where(~without)
    total = session.scalar(select(func.count()).select_from(query.subquery())) or 0
    rows = session.execute(query.order_by(one.c.id).offset(offset).limit(limit))
    names = ChangedGroup.model_fields
    listed = {row[0]: row for row in rows}
    changed: dict[int, list[ChangedText]] = defaultdict(list)
    if texts is not None and listed:
        of_listed = select(texts).where(texts.c.id.in_(listed)).order_by(*texts.c)
        for group_id, slot, number, was, now in session.execute(of_listed):
            name = text_name(slot, number)
            changed[group_id].append(ChangedText(name=name, first=was, second=now))
    return [
        ChangedGroup(**dict(zip(names, (*row, tuple(changed[row[0]])), strict=True)))
        for row in listed.values()
    ], total


def verdicts_of(
    session: Session, run_id: int, number: int | None
) -> tuple[Any, ColumnElement[bool] | None]:
    """What has the verdicts of a run in a version, and what joins it to `Group`: `Group` itself,
    and None, for the version that the run uses. Raises NotFound for a version by its number."""
    if number is None or number == get_run(session, run_id).verdict_version:
        return Group, None
    version = get_version(session, run_id, number)
    assert version is not None  # version 1 without a row is the one that the run uses
    held = aliased(GroupVerdict)
    return held, and_(held.group_id == Group.id, held.version_id == version.id)


def _ended(session: Session, run_id: int, number: int) -> Any:
    """Of each of the run's groups: its pair, how it ended in a version, and the detail."""
    table, joined = verdicts_of(session, run_id, number)
    ended = func.coalesce(table.drop_reason, table.verdict).label("ended")
    query: Select[Any] = select(
        Group.id.label("id"),
        Group.pair_id.label("pair_id"),
        ended,
        table.drop_detail.label("detail"),
    ).where(Group.run_id == run_id, table.verdict.is_not(None))
    if joined is not None:
        query = query.join(table, joined)
    return query.subquery()


def _texts_ended(session: Session, run_id: int, number: int) -> Any:
    """Of each text of the lists of the run's groups: how it ended in a version. None where the
    run's shape has no lists."""
    if not shape_of(session, run_id).lists:
        return None
    version = get_version(session, run_id, number)
    if version is None or number == get_run(session, run_id).verdict_version:
        listed = _listed_texts(session, run_id, 0).subquery()
    else:
        listed = select(TextVerdict).where(TextVerdict.version_id == version.id).subquery()
    return select(
        listed.c.group_id.label("id"),
        listed.c.slot,
        listed.c.ordinal,
        func.coalesce(listed.c.dropped_reason, KEPT).label("ended"),
    ).subquery()


def _changed_texts(session: Session, run_id: int, first: int, second: int) -> Any:
    """The lists' texts that ended otherwise: group, slot, number, and both endings."""
    one, other = (_texts_ended(session, run_id, number) for number in (first, second))
    if one is None or other is None:
        return None
    query = select(
        one.c.id, one.c.slot, one.c.ordinal, one.c.ended.label("was"), other.c.ended.label("now")
    )
    joined = query.join(other, _same_text(one, other))
    return joined.where(one.c.ended != other.c.ended).subquery()


def _same_text(one: Any, other: Any) -> ColumnElement[bool]:
    return and_(
        one.c.id == other.c.id, one.c.slot == other.c.slot, one.c.ordinal == other.c.ordinal
    )


def _listed_texts(session: Session, run_id: int, version_id: int) -> Select[*tuple[Any, ...]]:
    """The rows of `TextVerdict` that say of the lists' texts of a run what its groups have now,
    but for what a person added and took out: that they have as before."""
    slots = [text.sign for text in shape_of(session, run_id).lists]
    edited = select(Review.group_id).where(Review.action == "edit")
    added = Passage.meta[INSTEAD].as_string()
    reason = case(
        (added.is_not(None), Passage.meta[(INSTEAD, "reason")].as_string()),
        else_=SlotText.dropped_reason,
    )
    rows = select(
        SlotText.group_id,
        literal(version_id).label("version_id"),
        SlotText.slot,
        SlotText.ordinal,
        func.nullif(reason, TAKEN_OUT).label("dropped_reason"),
    )
    joined = rows.join(Group, Group.id == SlotText.group_id).outerjoin(
        Passage, and_(Passage.id == SlotText.passage_id, SlotText.group_id.in_(edited))
    )
    return joined.where(
        Group.run_id == run_id, SlotText.slot.in_(slots), func.coalesce(added, "") != "{}"
    )


def reason_in_use(session: Session, slot: SlotText, run_id: int, first: str | None) -> str | None:
    """Why the text that a run wrote in this place is none of its group's by the version in use;
    `first`: as the run decided."""
    version = _current(session, get_run(session, run_id))
    if version is None or first == TAKEN_OUT:  # a person took it out: no version has a say
        return first
    found = session.get_one(TextVerdict, (slot.group_id, version.id, slot.slot, slot.ordinal))
    return None if found.dropped_reason == TAKEN_OUT else found.dropped_reason


def _insert_texts(session: Session, rows: Select[*tuple[Any, ...]]) -> None:
    columns = ["group_id", "version_id", "slot", "ordinal", "dropped_reason"]
    session.execute(insert(TextVerdict).from_select(columns, rows))


def _use_texts(session: Session, shape: Shape, version: VerdictVersion) -> None:
    """Give the lists' texts of a run's groups what the version makes of them, and its stand-ins
    their places.

    A text that a person edited stays: its passage is neither the stand-in's nor the run's.
    """
    if not shape.lists:
        return
    mine = (
        SlotText.group_id == TextVerdict.group_id,
        SlotText.slot == TextVerdict.slot,
        SlotText.ordinal == TextVerdict.ordinal,
        TextVerdict.version_id == version.id,
        SlotText.dropped_reason.is_distinct_from(TextVerdict.dropped_reason),
    )
    moved = []
    for text in (text for text in shape.lists if text.stands_in_for):
        reasons = SlotText.dropped_reason, TextVerdict.dropped_reason
        rows = session.execute(
            select(SlotText.group_id, SlotText.passage_id, TextVerdict.dropped_reason).where(
                *mine, SlotText.slot == text.sign, or_(*(one == STANDS_IN for one in reasons))
            )
        ).all()
        own = as_written(session, shape, text.stands_in_for, [row[0] for row in rows])
        for group_id, stand_in, reason in rows:
            now, then = stand_in, own[group_id]
            if reason == STANDS_IN:
                now, then = then, now
            moved.append({"of": group_id, "in": text.stands_in_for, "now": now, "then": then})
    by_people = select(Review.group_id).where(Review.action == "edit", Review.undone_at.is_(None))
    session.execute(
        update(SlotText)
        .where(*mine, SlotText.group_id.not_in(by_people))
        .values(dropped_reason=TextVerdict.dropped_reason),
        execution_options={"synchronize_session": False},
    )
    of = SlotText.__table__.c
    edited = _edited_texts(session, version.run_id, shape)
    place = SlotText.group_id, SlotText.slot, SlotText.ordinal
    of_people = select(*place, TextVerdict.dropped_reason).where(
        *mine, SlotText.group_id.in_(by_people)
    )
    decided = [
        {"of": group_id, "in": slot, "number": number, "reason": reason}
        for group_id, slot, number, reason in session.execute(of_people)
        if (group_id, slot, number) not in edited
    ]
    if decided:
        change = update(SlotText.__table__).where(  # type: ignore[arg-type]
            of.group_id == bindparam("of"),
            of.slot == bindparam("in"),
            of.ordinal == bindparam("number"),
        )
        session.connection().execute(change.values(dropped_reason=bindparam("reason")), decided)
    if moved:
        change = update(SlotText.__table__).where(  # type: ignore[arg-type]
            of.group_id == bindparam("of"),
            of.slot == bindparam("in"),
            of.ordinal == 0,
            of.passage_id == bindparam("now"),
        )
        session.connection().execute(change.values(passage_id=bindparam("then")), moved)


def _edited_texts(session: Session, run_id: int, shape: Shape) -> set[tuple[int, str, int]]:
    """The texts that a person edited in a run's groups: group, slot and number."""
    query = select(Review.group_id, Review.after).join(Group, Group.id == Review.group_id)
    edits = query.where(Group.run_id == run_id, Review.action == "edit", Review.undone_at.is_(None))
    return {
        (group_id, shape.fields[field][0].sign, shape.fields[field][1])
        for group_id, after in session.execute(edits)
        for field in after
        if field in shape.fields
    }


def first_texts(session: Session, run_id: int) -> Mapping[int, Mapping[Place, str | None]]:
    """What became of the texts of lists as the run worked, by group."""
    found: dict[int, dict[Place, str | None]] = defaultdict(dict)
    if shape_of(session, run_id).lists:
        version = get_version(session, run_id, FIRST)
        held = select(TextVerdict).where(TextVerdict.version_id == (version and version.id))
        rows = (held if version else _listed_texts(session, run_id, 0)).subquery().c
        query = select(rows.group_id, rows.slot, rows.ordinal, rows.dropped_reason)
        for group_id, slot, number, reason in session.execute(query):
            found[group_id][slot, number] = reason
    return found


def as_written(
    session: Session, shape: Shape, sign: str, group_ids: Sequence[int]
) -> dict[int, int]:
    """The passage of a slot as each group was judged, by group: the pair's own, or what the first
    revision of its items has, which no stand-in and no edit changes."""
    text, found = shape.texts[sign], dict[int, int]()
    for start in range(0, len(group_ids), CHUNK):
        ids = group_ids[start : start + CHUNK]
        if text.from_source:
            own = select(Group.id, Pair.passage_id).join(Pair, Pair.id == Group.pair_id)
            found |= dict(session.execute(own.where(Group.id.in_(ids))).all())
            continue
        items = select(Item.group_id, Item.candidates).where(Item.revision == 1)
        for group_id, candidates in session.execute(items.where(Item.group_id.in_(ids))):
            for each in candidates:
                if each["label"] == text.introduced_by:
                    found[group_id] = each["passage_id"]
    return found


def _versions(session: Session, run_id: int) -> list[VerdictVersion]:
    query = select(VerdictVersion).where(VerdictVersion.run_id == run_id)
    return list(session.scalars(query.order_by(VerdictVersion.number)))


def _first(session: Session, run: Run) -> VerdictVersion:
    """The row of version 1 of a run that has no other, by its groups as they are; not added."""
    now = outcomes(session, run.id)
    return VerdictVersion(
        run_id=run.id,
        number=FIRST,
        counts={"kept": now.kept, "dropped": now.dropped},
        created_by=run.created_by,
        created_at=run.finished_at or run.created_at,
    )


def _verdict_columns(table: Any) -> tuple[Any, ...]:
    return table.verdict, table.drop_reason, table.drop_detail


def _insert(session: Session, rows: Select[Any]) -> None:
    columns = ["group_id", "version_id", "verdict", "drop_reason", "drop_detail"]
    session.execute(insert(GroupVerdict).from_select(columns, rows))


def _counts(session: Session, version_id: int) -> dict[str, Any]:
    rows = session.execute(
        select(GroupVerdict.drop_reason, func.count())
        .where(GroupVerdict.version_id == version_id)
        .group_by(GroupVerdict.drop_reason)
    )
    found: dict[str | None, int] = dict(rows.all())
    kept = found.pop(None, 0)
    return {"kept": kept, "dropped": {str(reason): number for reason, number in found.items()}}


def _by_frequency(dropped: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(dropped.items(), key=lambda pair: (-pair[1], pair[0])))
