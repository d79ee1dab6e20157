"""Quality of each judge's work in a study: pace, too fast answers, flags, hidden gold.

Pace and share of too fast answers are over a judge's last `RECENT` judgments in the study.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import date, datetime

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from db.assignment.guidelines import versions_read
from db.assignment.threads import unread_by_judge
from db.errors import NotFound
from db.question import is_right
from db.rows import Row
from db.study.judgments import remarks
from db.study.rules import StudyRules, fails_gold, rules_of
from db.study.studies import get_study
from db.tables import Assignment, Judge, Judgment, StudyItem, StudyJudge

RECENT = 200
CHUNK = 5000
MAX_TOO_FAST = 0.2  # share of a person's recent timed answers; above it the person is flagged
MIN_TIMED = 10  # timed answers; of fewer a share says little


class JudgeRow(Row):
    """A judge's progress, pace and quality in a study.

    `judged` counts main items, `done` every answered one, hidden gold too, as `quota` does (None:
    no limit); `leased` the items they hold, `timed` the recent answers with times. `unread`:
    messages that no curator has read; `guidelines`: the newest version that they read; `doubt`:
    as of `flag_reason`. `agreement`: the share of other
    people's answers to the same main items that are theirs, too, of `compared` pairs of answers.
    """

    id: int
    name: str
    kind: str
    simulated: bool
    offline: bool
    judged: int
    done: int
    quota: int | None
    due_on: date | None
    leased: int
    skipped: int
    flagged: int
    notes: int
    median_seconds: float | None
    timed: int
    too_fast: float | None
    gold_right: int
    gold_seen: int
    qualification: str
    state: str
    reason: str
    last_at: datetime | None
    unread: int
    guidelines: int | None
    doubt: str = ""
    agreement: float | None = None
    compared: int = 0


def judge_quality(session: Session, study_id: int) -> list[JudgeRow]:
    """Every judge with leases or judgments in the study, people first."""
    made = (
        select(Judgment.judge_id, func.count())
        .where(Judgment.study_id == study_id, Judgment.is_current)
        .group_by(Judgment.judge_id)
    )
    counts = dict(session.execute(made).all())
    known = _gold_answers(session, study_id)
    found_remarks = remarks(session, study_id)
    notes = Counter(one.judge_id for one in found_remarks if one.note)
    flagged = Counter(one.judge_id for one in found_remarks if one.flagged)
    given: dict[int, dict[str, int]] = {}
    for judge_id, state, number in session.execute(
        select(Assignment.judge_id, Assignment.state, func.count())
        .where(Assignment.study_id == study_id)
        .group_by(Assignment.judge_id, Assignment.state)
    ):
        given.setdefault(judge_id, {})[state] = number
    members = {
        member.judge_id: member
        for member in session.scalars(select(StudyJudge).where(StudyJudge.study_id == study_id))
    }
    judges = session.scalars(
        select(Judge)
        .where(Judge.id.in_({*counts, *given, *members}), Judge.kind != "adjudicator")
        .order_by(Judge.kind.desc(), Judge.simulated, Judge.name)
    )
    rules, unread = rules_of(get_study(session, study_id)), unread_by_judge(session, study_id)
    fastest, read = rules.too_fast_seconds, versions_read(session, study_id)
    found = []
    for judge in judges:
        member = members.get(judge.id)
        seconds, last_at = _recent(session, study_id, judge.id)
        states = given.get(judge.id, {})
        answers = known.get(judge.id, [])
        gold = [is_right for part, is_right in answers if part == "gold"]
        row = JudgeRow(
            id=judge.id,
            name=judge.name,
            kind=judge.kind,
            simulated=judge.simulated,
            offline=judge.offline,
            judged=counts.get(judge.id, 0) - len(answers),
            # models and simulated judges are given no assignments
            done=states.get("done", 0) if states else counts.get(judge.id, 0),
            quota=member.quota if member else None,
            due_on=member.due_on if member else None,
            leased=states.get("leased", 0),
            skipped=states.get("skipped", 0),
            flagged=flagged[judge.id],
            notes=notes[judge.id],
            median_seconds=seconds[len(seconds) // 2] if seconds else None,
            timed=len(seconds),
            too_fast=(sum(one < fastest for one in seconds) / len(seconds) if seconds else None),
            gold_right=sum(gold),
            gold_seen=len(gold),
            qualification=_qualification_label(member),
            state=member.state if member else "active",
            reason=member.reason if member else "",
            last_at=last_at,
            unread=unread.get(judge.id, 0),
            guidelines=read.get(judge.id),
        )
        found.append(row.model_copy(update={"doubt": flag_reason(row, rules)}))
    return found


def agreement_with_others(
    session: Session, study_id: int, *, without: Collection[int] = ()
) -> dict[int, tuple[float, int]]:
    """By judge: how often another person's answer to the same main item is theirs, too, and of how
    many pairs of answers; simulated people are compared with each other.

    Raw agreement: no allowance for chance (that is `analysis.agreement`'s), so that it may be
    counted whenever the desk is drawn. `without`: items that are not counted.
    """
    rows = (
        select(
            Judgment.judge_id,
            Judgment.item_id,
            func.count().over(partition_by=(Judgment.item_id, Judge.simulated)).label("all"),
            func.count()
            .over(partition_by=(Judgment.item_id, Judge.simulated, Judgment.choice))
            .label("same"),
        )
        .join(Judge, Judge.id == Judgment.judge_id)
        .join(
            StudyItem,
            and_(StudyItem.item_id == Judgment.item_id, StudyItem.study_id == Judgment.study_id),
        )
        .where(
            Judgment.study_id == study_id,
            Judgment.is_current,
            Judge.kind == "person",
            StudyItem.part == "main",
        )
        .subquery()
    )
    if not without:
        total = func.sum(rows.c.all - 1)
        query = select(rows.c.judge_id, func.sum(rows.c.same - 1), total).group_by(rows.c.judge_id)
        counted = {judge: (int(same), int(pairs)) for judge, same, pairs in session.execute(query)}
    else:
        hidden, counted = frozenset(without), {}
        for judge_id, item_id, every, alike in session.execute(select(rows)):
            if item_id not in hidden:
                same, pairs = counted.get(judge_id, (0, 0))
                counted[judge_id] = same + alike - 1, pairs + every - 1
    return {judge: (same / pairs, pairs) for judge, (same, pairs) in counted.items() if pairs}


def flag_reason(each: JudgeRow, rules: StudyRules) -> str:
    """Why a person's answers are in doubt by the study's rules; empty where they are not.

    Fails gold: `GOLD_SEEN` gold items or more, fewer right than the required share. Too fast: more
    than `MAX_TOO_FAST` of the last 200 timed answers (of `MIN_TIMED` or more) under the limit.
    """
    if each.kind != "person":
        return ""
    reasons = []
    if fails_gold(each.gold_right, each.gold_seen, rules):
        reasons.append(f"gold {each.gold_right} of {each.gold_seen} right")
    if each.too_fast is not None and each.timed >= MIN_TIMED and each.too_fast > MAX_TOO_FAST:
        reasons.append(f"{each.too_fast:.0%} of answers under {rules.too_fast_seconds:g} s")
    return ", ".join(reasons)


def flagged_people(session: Session, study_id: int) -> dict[str, str]:
    """The people of a study who answer too fast or fail gold: why, by name."""
    rules = rules_of(get_study(session, study_id))
    found = {each.name: flag_reason(each, rules) for each in judge_quality(session, study_id)}
    return {name: reason for name, reason in found.items() if reason}


def judges_of_study(session: Session, study_id: int, wanted: Sequence[int | str]) -> list[int]:
    """People of a study by name, or anybody by id, each once. Raises NotFound with those names."""
    if not wanted:
        return []
    rows = [each for each in judge_quality(session, study_id) if each.kind == "person"]
    people: dict[int | str, int] = {each.name: each.id for each in rows}
    numbers = [who for who in wanted if isinstance(who, int)]
    known = select(Judge.id).where(Judge.id.in_(numbers), Judge.kind == "person")
    people |= {judge_id: judge_id for judge_id in session.scalars(known)}
    for who in wanted:
        if who not in people:
            there = ", ".join(each.name for each in rows) or "nobody has joined yet"
            raise NotFound(
                f"no judge {who!r} in study {study_id}: {there}",
                "name one of these",
                code="judge_unknown",
            )
    return list(dict.fromkeys(people[who] for who in wanted))


def _gold_answers(session: Session, study_id: int) -> dict[int, list[tuple[str, bool]]]:
    """By judge: (part, whether right) of every answer to a qualification or gold item."""
    known = {
        item_id: (part, choice)
        for item_id, part, choice in session.execute(
            select(StudyItem.item_id, StudyItem.part, StudyItem.gold_choice).where(
                StudyItem.study_id == study_id, StudyItem.part.in_(("training", "gold"))
            )
        )
    }
    ids = sorted(known)
    found: dict[int, list[tuple[str, bool]]] = {}
    for start in range(0, len(ids), CHUNK):
        answers = select(Judgment.judge_id, Judgment.item_id, Judgment.choice).where(
            Judgment.study_id == study_id,
            Judgment.is_current,
            Judgment.item_id.in_(ids[start : start + CHUNK]),
        )
        for judge_id, item_id, choice in session.execute(answers):
            part, right = known[item_id]
            found.setdefault(judge_id, []).append((part, bool(is_right(choice, right))))
    return found


def _recent(session: Session, study_id: int, judge_id: int) -> tuple[list[float], datetime | None]:
    """Seconds from shown to decided of the last judgments, sorted; and when the last was made."""
    rows = session.execute(
        select(Judgment.shown_at, Judgment.decided_at)
        .where(Judgment.study_id == study_id, Judgment.judge_id == judge_id, Judgment.is_current)
        .order_by(Judgment.id.desc())
        .limit(RECENT)
    ).all()
    seconds = sorted((decided - shown).total_seconds() for shown, decided in rows if shown)
    return seconds, max((decided for _, decided in rows), default=None)


def _qualification_label(member: StudyJudge | None) -> str:
    if member is None:
        return ""
    if member.passed_at is not None:
        return "passed"
    return f"round {member.training_rounds + 1}" if member.training_rounds else ""
