"""What the generated texts of a finished run share; the measure is `analysis.text.shared_parts`."""

import random
from collections.abc import Iterator, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from analysis.found.runs import SharedPart, SharedParts
from analysis.text.shared_parts import SAMPLE, Texts, shared_parts
from curation.run.leakage import is_of_other_verdicts, kept_groups
from db.release.rows import release_rows
from db.run.runs import shape_of
from db.shape import Shape
from db.store.store import Store
from db.tables import Group, Job

READ_FOR_SAMPLE = 2 * SAMPLE  # groups: several may be of one pair
WHERE = {
    "beginning": "at the beginning",
    "end": "at the end",
    "line": "as a line",
    "last line": "as the last line",
    "whole text": "as the whole text",
    "anywhere": "",
    "characters": "",
    "texts": "",
}
UNQUOTED = ("characters", "texts")  # named, not shared word by word


def check_shared_parts(store: Store, run_id: int) -> SharedParts:
    """The report over the run's kept groups."""
    with store.read() as session:
        ids = kept_groups(session, run_id)
        some = ids
        if len(ids) > READ_FOR_SAMPLE:
            some = sorted(random.Random(0).sample(ids, READ_FOR_SAMPLE))
        shape = shape_of(session, run_id)
        report = shared_parts(
            _texts(session, some, shape),
            lambda: _texts(session, ids, shape),
            tuple(text.sign for text in shape.all_texts if not text.from_source),
            sources=tuple(text.sign for text in shape.all_texts if text.from_source),
            requests=tuple(text.sign for text in shape.all_texts if text.field == "instruction"),
        )
    return SharedParts.model_validate({"groups": len(ids)} | report)


def stored_shared_parts(session: Session, run_id: int) -> SharedParts | None:
    """The newest report among the results of the run's curate jobs, None if there is none."""
    jobs = session.scalars(
        select(Job)
        .where(Job.kind == "curate", Job.config["run_id"].as_integer() == run_id)
        .order_by(Job.id.desc())
    )
    results = (job.result or {} for job in jobs)
    found = next((one["shared_parts"] for one in results if "shared_parts" in one), None)
    return None if found is None else SharedParts.model_validate(found)


def is_unchecked(session: Session, run_id: int) -> bool:
    """Whether a run has kept groups and these were never checked: it ended before there was a
    check, is not done, or was decided again since."""
    if stored_shared_parts(session, run_id) and not is_of_other_verdicts(session, run_id):
        return False
    kept = select(Group.id).where(Group.run_id == run_id, Group.verdict == "kept").limit(1)
    return session.scalar(kept) is not None


def check_command(run_id: int) -> str:
    """The sentence for a terminal that names the command which checks the run."""
    return f"not checked: run `analyses leakage run={run_id}`"


def shared_sentence(report: SharedParts | None) -> str:
    """What is shared, most frequent first and the first three parts by name; "" for nothing."""
    if report is None or not report.parts:
        return ""
    parts = report.parts
    named = "; ".join(part_text(part, report.groups) for part in parts[:3])
    more = f"; and {len(parts) - 3} more" if len(parts) > 3 else ""
    return f"Generated texts share what their sources do not have: {named}{more}."


def part_text(part: SharedPart, groups: int) -> str:
    """A part with its place and counts: “Mvh.” at the end of 12 P1- and 9 P2- of 18 groups."""
    counts = " and ".join(f"{count:,} {sign}" for sign, count in part.counts.items())
    place = WHERE[part.where]
    text = " ".join(part.text.split())
    quoted = text if part.where in UNQUOTED else f"“{text}”"
    between = f" {place} of " if place else " in "
    return f"{quoted}{between}{counts} of {groups:,} groups"


def _texts(session: Session, group_ids: Sequence[int], shape: Shape) -> Iterator[Texts]:
    for batch in release_rows(session, group_ids, shape):
        for row in batch:
            texts = dict(zip(shape.texts, row.texts, strict=True))
            yield Texts(row.group_id, row.query_id, texts)
