"""The leakage check of a finished run; the measure is `analysis.text.leakage`."""

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.errors import InfError
from db.modules import run_module
from db.release.rows import ReleaseRow, release_rows
from db.scenarios import COLUMNS, ROLES, GroupText, introduced
from db.store.store import Store, open_store
from db.tables import Group, Job, Triplet

if TYPE_CHECKING:
    from analysis.text.leakage import LabelledText

SMALL = 20  # kept groups: with fewer (MIN_PAIRS) no classifier is trained and no process needed


def check_leakage(store: Store, run_id: int) -> dict[str, Any]:
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
        raise InfError(f"the leakage check of run {run_id} failed: {done.stderr.strip()[-500:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def measure(store: Store, run_id: int) -> dict[str, Any]:
    """The report, computed in this process."""
    from analysis.text.leakage import leakage_report

    with store.read() as session:
        texts = kept_texts(session, run_id)
    return {"groups": "kept", **leakage_report(texts)}


def kept_texts(session: Session, run_id: int) -> dict[str, list["LabelledText"]]:
    """The compared texts of the run's kept groups: each generated negative with its positive.

    Queries are left out: Q+ is a real one, and Q- is meant to read differently.
    """
    group_ids = session.scalars(
        select(Group.id)
        .where(Group.run_id == run_id, Group.verdict == "kept")
        .where(Group.id.in_(select(Triplet.group_id)))
        .order_by(Group.id)
    ).all()
    found: dict[str, list[LabelledText]] = {
        f"{negative.sign} / {positive.sign}": [] for positive, negative in COMPARED
    }
    for batch in release_rows(session, group_ids):
        for row in batch:
            for positive, negative in COMPARED:
                name = f"{negative.sign} / {positive.sign}"
                found[name] += [_text(row, positive, False), _text(row, negative, True)]
    return found


def stored_leakage(session: Session, run_id: int) -> dict[str, Any] | None:
    """The newest report among the results of the run's curate jobs, None if there is none."""
    jobs = session.scalars(
        select(Job)
        .where(Job.kind == "curate", Job.config["run_id"].as_integer() == run_id)
        .order_by(Job.id.desc())
    )
    for job in jobs:
        if job.result and job.result.get("leakage"):
            return dict(job.result["leakage"])
    return None


def leaking_sentence(report: dict[str, Any]) -> str:
    """A warning that names the comparisons above the limit; "" if there are none."""
    leaking = [
        f"{name.split(' / ')[0]} from {name.split(' / ')[1]} (AUC "
        f"{report['comparisons'][name]['auc']:.2f})"
        for name in report["leaks"]
    ]
    if not leaking:
        return ""
    return (
        f"A classifier that never sees query or instruction can separate {' and '.join(leaking)}: "
        "a model trained on these groups may learn how the texts are written instead of what is "
        "requested."
    )


def _compared() -> list[tuple[GroupText, GroupText]]:
    first, *others = ROLES
    positive = {text.field: text for text in introduced(first)}
    pairs = [(positive[text.field], text) for role in others for text in introduced(role)]
    return [(right, wrong) for right, wrong in pairs if wrong.field != "query"]


def _text(row: ReleaseRow, text: GroupText, negative: bool) -> "LabelledText":
    from analysis.text.leakage import LabelledText

    return LabelledText(row.query_id, row.texts[COLUMNS.index(text.column)], negative)


COMPARED = _compared()


if __name__ == "__main__":
    url, number = json.load(sys.stdin)
    json.dump(measure(open_store(url), number), sys.stdout)
