"""A store with something of everything, written straight into the tables, for tests of pages.

The texts hold what must be shown as it is: markup, formulas, long words, right-to-left script.
"""

from sqlalchemy import select
from sqlalchemy.orm import Session
from study_world import make_world, sampled_study

from db.shape import INF_IR
from db.store.store import Store
from db.tables import (
    Checkpoint,
    Evaluation,
    Group,
    Job,
    Judge,
    Judgment,
    MetricPoint,
    Passage,
    Release,
    ReleaseGroup,
    Review,
    Run,
    SlotText,
    Study,
    StudyItem,
    utc_now,
)

NASTY = "<script>alert(1)</script> **bold** $\\LaTeX$ :red[x] <b>b</b> שלום 🙂 `code` & done"


def fill(store: Store) -> None:
    """Every page has something to show after this."""
    run_id = make_world(store, groups=30)
    with store.write() as session:
        _nasty_texts(session)
        study = sampled_study(session, run_id=run_id, items=12, overlap=2, name="first study")
        _judgments(session, study)
        _reviews(session)
        jobs = _jobs(session)
        _outcome(session, run_id, jobs)
        session.commit()


def _nasty_texts(session: Session) -> None:
    """Texts that a page could take for its own markup, in one group and one passage."""
    first = session.scalars(select(Group.id).order_by(Group.id)).first()
    for each in session.scalars(select(SlotText).where(SlotText.group_id == first)):
        if each.slot.startswith("I"):
            each.text = f"{each.text} {NASTY}"
    session.query(Passage).first().text = NASTY


def _judgments(session: Session, study: Study) -> None:
    items = [row.item_id for row in session.query(StudyItem).filter_by(study_id=study.id)]
    for number in (1, 2):
        judge = Judge(name=f"simulated:{number}", kind="person", simulated=True)
        model = Judge(name=f"offline:{number}", kind="model", offline=True)
        session.add_all([judge, model])
        session.flush()
        for each in (judge, model):
            for position, item_id in enumerate(items):
                session.add(
                    Judgment(
                        event_id=f"{each.name}-{item_id}",
                        judge_id=each.id,
                        item_id=item_id,
                        study_id=study.id,
                        choice=INF_IR.roles[(position + (number == 2 and position == 0)) % 3],
                        order_shown=list(INF_IR.roles),
                    )
                )


def _reviews(session: Session) -> None:
    session.add(Review(group_id=1, action="approve", reviewed_by="ann"))
    session.add(Review(group_id=2, action="reject", reason="off topic", reviewed_by="ann"))


def _jobs(session: Session) -> dict[str, Job]:
    now = utc_now()
    found = {}
    for kind, status in (
        ("curate", "done"),
        ("train", "done"),
        ("evaluate", "failed"),
        ("export", "cancelled"),
        ("judge", "lost"),
        ("project", "queued"),
    ):
        job = Job(kind=kind, status=status, config={"n": 1}, done=3, total=5, started_by="ann")
        job.started_at = None if status == "queued" else now
        job.finished_at = None if status == "queued" else now
        job.error = "it broke: `x`\nsecond line" if status == "failed" else None
        session.add(job)
        found[kind] = job
    session.flush()
    for step in range(1, 6):
        for name, value in (("loss", 2.0 / step), ("learning_rate", 1e-5), ("ndcg@10", 0.5)):
            session.add(MetricPoint(job_id=found["train"].id, name=name, step=step, value=value))
    return found


def _outcome(session: Session, run_id: int, jobs: dict[str, Job]) -> None:
    run = session.get_one(Run, run_id)
    release = Release(
        dataset_id=run.dataset_id,
        name="world-1",
        content_sha256="0" * 64,
        path="/nowhere/world-1",
        format="parquet",
        filter={"reviews": "not-rejected", "run_id": run_id},
        counts={"groups": 20, "verdicts": {"kept": 20}},
        card="---\nlicense: cc0-1.0\n---\n# world\n",
        offline=True,
    )
    session.add(release)
    session.flush()
    session.add(ReleaseGroup(release_id=release.id, group_id=1, split="world"))
    metrics = {"ndcg@5": 0.5, "ndcg@10": 0.6, "map": 0.4, "mrr": 0.5, "recall@10": 0.9}
    checkpoint = Checkpoint(
        release_id=release.id,
        job_id=jobs["train"].id,
        path="/nowhere/checkpoint-1",
        base_model="sentence-transformers/all-MiniLM-L6-v2",
        config={"objective": "P"},
        summary={"steps": 5, "loss_first": 2.0, "loss_last": 0.4},
    )
    session.add(checkpoint)
    session.flush()
    for name, checkpoint_id, follows in (
        ("base/model", None, None),
        (checkpoint.path, checkpoint.id, 0.25),
    ):
        session.add(
            Evaluation(
                model=name,
                benchmark="held-out world",
                metrics={**metrics, "p-mrr": follows},
                per_query={f"g{n:06}": {"map": 0.1 * n, "p-mrr": follows} for n in range(5)},
                checkpoint_id=checkpoint_id,
            )
        )
