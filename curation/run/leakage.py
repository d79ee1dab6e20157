"""The leakage check of a finished run and of a release; the measure is `analysis.text.leakage`."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from analysis.figures.numbers import Cells
from analysis.found.runs import LeakageReport, Separated
from db.errors import InfError
from db.modules import run_module
from db.release.rows import release_rows
from db.run.groups import is_complete
from db.run.runs import shape_of
from db.run.versions import was_decided_since
from db.shape import GroupText, Shape
from db.store.scope import unscoped
from db.store.store import Store, open_store
from db.tables import Group, Job, Review

if TYPE_CHECKING:
    from analysis.text.leakage import LabelledText

    Texts = dict[str, list[LabelledText]]

MAX_GROUPS = 5000  # read of a run or release; the classifiers see at most 400 pairs of them
SMALL = 20  # kept groups: with fewer (MIN_PAIRS) no classifier is trained and no process needed


def check_leakage(store: Store, run_id: int) -> LeakageReport:
    """The report over the run's kept groups. Raises InfError if it could not be computed.

    Runs in a process of its own, where numpy is imported: it would stay in a worker's memory. The
    store's URL, which may hold a password, goes over standard input: other users can see a
    command's arguments.
    """
    with store.read() as session:
        kept = session.scalar(
            select(func.count())
            .select_from(Group)
            .where(Group.run_id == run_id, Group.verdict == "kept")
        )
    if (kept or 0) < SMALL:
        return measure(store, run_id)
    done = subprocess.run(
        [sys.executable, *run_module(__name__)],
        input=json.dumps([store.url, run_id]),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise InfError(
            f"the leakage check of run {run_id} failed: {done.stderr.strip()[-500:]}",
            "Check again with `analyses leakage run=RUN`",
            code="leakage_check_run_failed",
        )
    return LeakageReport.model_validate_json(done.stdout)


def measure(store: Store, run_id: int) -> LeakageReport:
    """The report over the run's kept groups, computed in this process."""
    with store.read() as session:
        texts = compared_texts(session, kept_groups(session, run_id), shape_of(session, run_id))
    return _report("kept", texts)


def release_leakage(
    session: Session, run_ids: Collection[int], group_ids: Sequence[int], shape: Shape
) -> LeakageReport:
    """The report over a release's groups of these runs, as their texts are now.

    A single run's own report where it was made from exactly these texts.
    """
    texts = compared_texts(session, group_ids, shape)
    return _known(session, run_ids, texts) or _report("released", texts)


def known_leakage(
    session: Session, run_ids: Collection[int], group_ids: Sequence[int], shape: Shape
) -> LeakageReport | None:
    """A single run's own report if it was made from exactly these groups' texts, else None."""
    if _stored(session, run_ids) is None:
        return None  # texts of a million groups are not read for nothing
    return _known(session, run_ids, compared_texts(session, group_ids, shape))


def kept_groups(session: Session, run_id: int) -> Sequence[int]:
    """The ids of the run's kept groups that have texts."""
    return session.scalars(
        select(Group.id)
        .where(Group.run_id == run_id, Group.verdict == "kept")
        .where(is_complete(shape_of(session, run_id)))
        .order_by(Group.id)
    ).all()


def compared_texts(session: Session, group_ids: Sequence[int], shape: Shape) -> "Texts":
    """The compared texts of groups of one shape: each generated negative with its positive.

    A pair is named by its texts: ids differ between stores, and two datasets may share one. Queries
    are not compared: Q+ is a real one, and Q- is meant to read differently. Of more than MAX_GROUPS
    groups a sample, in which a group does not depend on which others there are.
    """
    if len(group_ids) > MAX_GROUPS:
        group_ids = sorted(sorted(group_ids, key=_hash)[:MAX_GROUPS])
    from analysis.text.leakage import LabelledText

    compared = _compared(shape)
    found: Texts = {f"{negative.sign} / {positive.sign}": [] for positive, negative in compared}
    place = {text.sign: number for number, text in enumerate(shape.all_texts)}
    source = [place[shape.first.query.sign], place[shape.first.passage.sign]]
    for batch in release_rows(session, group_ids, shape):
        for row in batch:
            pair = "\n".join(row.texts[number] for number in source)
            for positive, negative in compared:
                found[f"{negative.sign} / {positive.sign}"] += [
                    LabelledText(pair, row.texts[place[positive.sign]], False),
                    LabelledText(pair, row.texts[place[negative.sign]], True),
                ]
    return found


def stored_leakage(session: Session, run_id: int) -> LeakageReport | None:
    """The newest report among the results of the run's curate jobs, None if there is none."""
    job = _checked_by(session, run_id)
    return None if job is None else _report_of(job)


def why_outdated(session: Session, run_id: int) -> str:
    """Why the run's stored report is not of its groups as they are, with the command that repeats
    the check; "" where it is, or where there is none."""
    job = _checked_by(session, run_id)
    if job is None:
        return ""
    reason = ""
    if is_outdated(_report_of(job)):
        reason = "measured by an earlier version, whose intervals were others"
    elif job.finished_at is not None:
        later = _changed_since(session, run_id, job.finished_at)
        groups = "1 group was" if later == 1 else f"{later:,} groups were"
        reason = f"measured before {groups} kept or edited" if later else ""
        if not reason and is_of_other_verdicts(session, run_id):
            reason = "measured of the groups that another verdict version kept"
    return reason and f"{reason}; measure it again: `analyses leakage run={run_id}`"


def is_of_other_verdicts(session: Session, run_id: int) -> bool:
    """Whether the newest check, for leakage and shared parts, is of the groups that another verdict
    version kept; False where there is none."""
    job = _checked_by(session, run_id)
    ended = None if job is None else job.finished_at
    return ended is not None and was_decided_since(session, run_id, ended)


def _changed_since(session: Session, run_id: int, at: datetime) -> int:
    """Kept groups of the run that were finished, or whose texts were edited, after that time."""
    changed = or_(Review.created_at > at, Review.undone_at > at)
    edited = select(Review.group_id).where(Review.action == "edit", changed)
    found = session.scalar(
        select(func.count())
        .select_from(Group)
        .where(Group.run_id == run_id, Group.verdict == "kept")
        .where(or_(Group.finished_at > at, Group.id.in_(edited)))
    )
    return found or 0


def _checked_by(session: Session, run_id: int) -> Job | None:
    """The newest job of the run with a report."""
    jobs = session.scalars(
        select(Job)
        .where(Job.kind == "curate", Job.config["run_id"].as_integer() == run_id)
        .order_by(Job.id.desc())
    )
    return next((job for job in jobs if job.result and job.result.get("leakage")), None)


def _report_of(job: Job) -> LeakageReport:
    return LeakageReport.model_validate((job.result or {})["leakage"])


def auc_text(found: Separated) -> str:
    """The AUC of a comparison with its interval, or why there is none."""
    if found.auc is None or found.interval is None:
        return f"undefined: {found.reason}"
    low, high = found.interval
    return f"{found.auc:.3f} ({low:.3f} to {high:.3f})"


def leaking_sentence(report: LeakageReport) -> str:
    """A warning that names the comparisons above the limit; "" if there are none."""
    leaking = [
        f"{name.split(' / ')[0]} from {name.split(' / ')[1]} (AUC "
        f"{report.comparisons[name].auc:.2f})"
        for name in report.leaks
    ]
    if not leaking:
        return ""
    return (
        f"A classifier that never sees query or instruction can separate {' and '.join(leaking)}: "
        "a model trained on these groups may learn how the texts are written instead of what is "
        "requested."
    )


def _report(groups: str, texts: "Texts") -> LeakageReport:
    from analysis.text.leakage import leakage_report

    about = {"groups": groups, "texts_sha256": _digest(texts)}
    return LeakageReport.model_validate(about | leakage_report(texts))


def is_outdated(report: LeakageReport) -> bool:
    """Whether a stored report was made by earlier definitions, whose figures are others."""
    from analysis.text.leakage import VERSION

    return report.version != VERSION


def _stored(session: Session, run_ids: Collection[int]) -> LeakageReport | None:
    if len(run_ids) > 1:
        return None
    stored = stored_leakage(session, *run_ids)
    return None if stored is None or is_outdated(stored) else stored


def _known(session: Session, run_ids: Collection[int], texts: "Texts") -> LeakageReport | None:
    stored = _stored(session, run_ids)
    if stored is None or stored.texts_sha256 != _digest(texts):
        return None
    # measured where the extra [analyze] was missing: perhaps it is there now
    reasons = [found.reason for found in stored.comparisons.values()]
    return None if any("[analyze]" in reason for reason in reasons) else stored


def _hash(group_id: int) -> bytes:
    return hashlib.sha256(str(group_id).encode()).digest()


def _digest(texts: "Texts") -> str:
    """Of the texts whatever their order: groups of a release may be numbered otherwise."""
    rows = sorted(
        (name, each.pair, each.text, each.negative)
        for name, found in texts.items()
        for each in found
    )
    return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()


def _compared(shape: Shape) -> list[tuple[GroupText, GroupText]]:
    written = [text for role in shape.roles for text in shape.introduced(role)]
    pairs = [(shape.counterpart(text), text) for text in written if text.field != "query"]
    return [(right, wrong) for right, wrong in pairs if right is not None]


if __name__ == "__main__":
    url, number = json.load(sys.stdin)
    with unscoped():  # a part of the work that was let in already
        json.dump(measure(open_store(url), number).as_json(), sys.stdout)


def leakage_rows(report: LeakageReport) -> list[Cells]:
    """A row per comparison; the column of reasons only where one has no AUC."""
    rows = []
    for name, found in report.comparisons.items():
        low, high = found.interval or (None, None)
        features = found.features
        rows.append(
            {
                "Comparison": name,
                "AUC": found.auc,
                "95 % from": low,
                "to": high,
                "Typical of negatives": ", ".join(features.get("negative", [])),
                "Typical of positives": ", ".join(features.get("positive", [])),
                "Pairs": found.pairs,
                "AUC of length alone": found.length_auc,
                "Undefined because": found.reason,
            }
        )
    if any(row["Undefined because"] for row in rows):
        return rows
    return [{name: row[name] for name in row if name != "Undefined because"} for row in rows]
