"""What the Try it page opens with: the examples that the newest training left in its job."""

from dataclasses import dataclass, field
from typing import Any

from app.access.session_user import record_read, require_permission
from db.assignment.hidden import is_hidden
from db.outcome.checkpoints import list_checkpoints
from db.store.scope import unscoped
from db.store.store import open_store
from db.tables import Checkpoint, Job
from trainer.report.compared.trained import index_stays

WORKS, FAILS, LOST = "works", "fails", "lost"
NONE_TRAINED = (
    "No example yet: it appears when a training with held-out groups is done. These compare the "
    "trained model with its base."
)
NOT_STORED = (
    "No example is stored for {model}: it was trained without held-out groups, by an earlier "
    "version, or in another store. Train again to see one."
)
NO_GROUP = {
    WORKS: "No such example: in none of the {groups} held-out groups does {model} follow the "
    "instruction where {base} ranks the same passage first under both instructions.",
    FAILS: "No such example: {model} follows the instruction in all {groups} held-out groups.",
    LOST: "No such example: {model} follows the instruction wherever {base} does.",
}
ALL_HIDDEN = (
    "The examples are hidden from you: you may judge their items in a study that is not closed."
)


@dataclass(frozen=True)
class Examples:
    """The newest checkpoint's examples, by kind one that the reader may see.

    `missing`: why there is none at all. `why_not`: by kind, why that one is missing. `stays`: the
    sentence of a model whose index is still its base's.
    """

    missing: str = ""
    base: str = ""
    model: str = ""
    found: dict[str, Any] = field(default_factory=dict)
    shown: dict[str, dict[str, Any]] = field(default_factory=dict)
    why_not: dict[str, str] = field(default_factory=dict)
    stays: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Those that were stored; trainings of earlier versions have no lost ones."""
        return tuple(kind for kind in (WORKS, FAILS, LOST) if kind in self.found)


def read_examples() -> Examples:
    """The examples of the newest checkpoint, without groups that the user may be given to judge.

    What is shown is recorded as read, so that no later study gives the user items of it.
    """
    user = require_permission("try")
    with open_store().read() as session:
        newest = next(iter(list_checkpoints(session, limit=1)), None)
        if newest is None:
            return Examples(missing=NONE_TRAINED)
    # The user may see the checkpoint: its job may be another's, and any study hides its groups.
    with unscoped(), open_store().read() as session:
        job = session.get(Job, newest.job_id) if newest.job_id is not None else None
        found = job.shown.get("examples") if job else None
        if not found:
            return Examples(missing=NOT_STORED, model=newest.path, base=newest.base_model)
        shown, why_not = {}, {}
        for kind in NO_GROUP:
            examples = found.get(kind, {}).get("examples", [])
            visible = (
                each
                for each in examples
                if (group := group_here(newest, each)) is None
                or not is_hidden(session, group, user.name)
            )
            if one := next(visible, None):
                shown[kind] = one
            else:
                why_not[kind] = ALL_HIDDEN if examples else NO_GROUP[kind]
        read = [group_here(newest, each) for each in shown.values()]
    record_read([group for group in read if group is not None], user)
    return Examples(
        base=newest.base_model,
        model=newest.path,
        found=found,
        shown=shown,
        why_not=why_not,
        stays=index_stays(newest),
    )


def group_here(checkpoint: Checkpoint, example: dict[str, Any]) -> int | None:
    """The example's group in this store; None where its release was made elsewhere."""
    if checkpoint.release_id is None or not str(example["group"]).isdigit():
        return None
    return int(example["group"])
