"""What is archived or purged: a dataset with all its runs, or a single run."""

from dataclasses import dataclass

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from db.corpus.datasets import get_dataset
from db.errors import Refused
from db.people.rights import Rights
from db.run.runs import get_run
from db.tables import Dataset, Group, Item, Run


@dataclass(frozen=True)
class Target:
    """A dataset, or the run of it."""

    dataset: Dataset
    run: Run | None = None

    @property
    def kind(self) -> str:
        """`dataset` or `run`, as in the audit log's actions."""
        return "dataset" if self.run is None else "run"

    @property
    def subject(self) -> str:
        """Its name or number."""
        return self.dataset.name if self.run is None else str(self.run.id)

    @property
    def title(self) -> str:
        """How a sentence calls it."""
        return f"dataset {self.dataset.name!r}" if self.run is None else f"run {self.run.id}"

    @property
    def row(self) -> Dataset | Run:
        """Its row."""
        return self.dataset if self.run is None else self.run

    @property
    def run_ids(self) -> Select[int]:
        """The runs that belong to it."""
        if self.run is not None:
            return select(Run.id).where(Run.id == self.run.id)
        return select(Run.id).where(Run.dataset_id == self.dataset.id)

    @property
    def group_ids(self) -> Select[int]:
        """The groups of its runs."""
        return select(Group.id).where(Group.run_id.in_(self.run_ids))

    @property
    def item_ids(self) -> Select[int]:
        """The items of its groups."""
        return select(Item.id).where(Item.group_id.in_(self.group_ids))


def target_of(session: Session, *, dataset: str | None = None, run_id: int | None = None) -> Target:
    """The dataset of that name, or the run of that id. Raises NotFound, which lists others."""
    if run_id is None:
        assert dataset is not None
        return Target(get_dataset(session, dataset))
    run = get_run(session, run_id)
    return Target(session.get_one(Dataset, run.dataset_id), run)


def lock_target(session: Session, target: Target) -> None:
    """Let nobody make anything new from it until the transaction ends, and read its row anew.

    `require_active` and foreign keys wait for this lock on PostgreSQL; SQLite has one writer.
    """
    for row in (target.dataset, target.run):
        if row is not None:
            session.refresh(row, with_for_update=True)


def require_curate(rights: Rights, target: Target) -> None:
    """Raise Refused without the right to curate the dataset."""
    if not rights.on_dataset("curate", target.dataset.id):
        raise Refused(
            f"archiving {target.title} requires the right to curate dataset "
            f"{target.dataset.name!r}",
            "ask an admin for it",
            code="curate_right_missing",
        )
