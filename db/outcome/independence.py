"""Which models judged the groups of a run, and of the run behind a held-out benchmark."""

from sqlalchemy import exists, or_, select
from sqlalchemy.orm import Session

from db.release.releases import datasets_of_release, runs_of_filter
from db.tables import Checkpoint, Dataset, Judge, Judgment, Release

HELD_OUT = "held-out "
DATASET = "dataset "


def validators_of(session: Session, run_id: int) -> dict[str, str]:
    """The model of every judge that validated the run, by the judge's name."""
    rows = session.execute(
        select(Judge.name, Judge.model)
        .where(
            Judge.kind == "model",
            # by judge: each is found with its first judgment of the run
            exists().where(
                Judgment.judge_id == Judge.id,
                Judgment.run_id == run_id,
                Judgment.study_id.is_(None),
            ),
        )
        .order_by(Judge.name)
    )
    return dict(rows.all())


def trained_on_dataset(session: Session, checkpoint_id: int, benchmark: str) -> bool:
    """Whether a release of a checkpoint, the main or a further one, was grown from the dataset that
    a benchmark is.

    Such benchmarks are called "dataset NAME".
    """
    checkpoint = session.get(Checkpoint, checkpoint_id)
    if checkpoint is None:
        return False
    further = [each["content_sha256"] for each in checkpoint.summary.get("more_releases", ())]
    releases = session.scalars(
        select(Release).where(
            or_(Release.id == checkpoint.release_id, Release.content_sha256.in_(further))
        )
    )
    datasets = {one for release in releases for one in datasets_of_release(session, release)}
    names = session.scalars(select(Dataset.name).where(Dataset.id.in_(datasets)))
    return benchmark in {f"{DATASET}{name}" for name in names}


def runs_of_benchmark(session: Session, benchmark: str) -> list[int]:
    """The runs whose validation chose the held-out groups that a benchmark is.

    None for any other benchmark, and where people approved all groups of the release.

    Held-out benchmarks are called after their release: "held-out NAME SHA256" (12 digits).
    """
    if not benchmark.startswith(HELD_OUT):
        return []
    digits = benchmark.rsplit(" ", 1)[-1]
    release = session.scalars(
        select(Release).where(Release.content_sha256.startswith(digits)).order_by(Release.id)
    ).first()
    if release is None or release.filter.get("reviews") == "approved":
        return []
    return runs_of_filter(release.filter)
