"""Checking an edited text as a generated one: by the run's rules, then by its validator.

The rules run before the edit is stored, and refuse it; the validator afterwards, in a job, since it
is a model. Its answer is shown with the group; the approval of a person decides.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from curation.judges.judge import Choice, ItemJudge
from curation.judges.registry import judge_named
from curation.judging.studies import Waiting, enrol, judge_waiting, record_choice
from curation.providers.registry import PROVIDERS
from curation.recipe.settings import filters_from_store
from curation.rules.filters import check_text
from db.errors import BadInput, Refused
from db.jobs.runner import JobHandle
from db.review.texts import group_texts, missing_texts
from db.run.group_detail import get_group
from db.run.revalidations import FAILS, HOLDS, waiting_items
from db.run.runs import get_run
from db.store.store import Store
from db.tables import Group, Pair, Recipe, Run


def check_edit(session: Session, group_id: int, changes: Mapping[str, str]) -> None:
    """Check changed texts by the rules of the group's run (see `curation.rules.filters`).

    Raises BadInput with all their findings, NotFound.
    """
    group = get_group(session, group_id)
    run = session.get_one(Run, group.run_id)
    body = session.get_one(Recipe, run.recipe_id).body
    rules = filters_from_store(body)
    known = {
        **group_texts(session, [group_id])[group_id],
        group.shape.first.query.column: group.query_positive,
        group.shape.first.passage.column: group.document_positive,
        **changes,
    }
    if missing_texts(group.shape, known):
        return  # `edit_group` refuses it
    texts = {text.sign: known[text.column] for text in group.shape.all_texts}
    meta = session.scalars(
        select(Pair.meta).join(Group, Group.pair_id == Pair.id).where(Group.id == group_id)
    ).one()
    language = str(meta.get("language") or "")
    found = [
        check_text(group.shape, text, changes[text.column], rules, texts, language=language)
        for text in group.shape.all_texts
        if text.column in changes
    ]
    drops = [drop for drop in found if drop is not None]
    if drops:
        counts = "; ".join(f"{drop.detail} ({drop.reason.replace('_', ' ')})" for drop in drops)
        raise BadInput(
            f"the run's rules refuse the edit: {counts}",
            "change the text, or reject the group",
            code="edit_breaks_rules",
        )


def revalidate(handle: JobHandle, run_id: int, group_id: int | None) -> dict[str, Any]:
    """Let a run's validator judge its edited groups, or the one of `group_id`.

    Continues where it stopped. Raises Refused for a run without a validator of ours.
    """
    judge = validator_of(handle.store, run_id)
    with handle.store.write() as session:
        judge_id = enrol(session, judge).id
        session.commit()
    with handle.store.read() as session:
        waiting = waiting_items(session, run_id, judge_id, group_id)
    handle.report(0, len(waiting), judge.name)
    counts: Counter[str] = Counter()

    def record(session: Session, shown: Waiting, choice: Choice) -> None:
        event_id = f"{judge.name}@revalidation/{shown.item_id}"
        label, expected = record_choice(
            session, shown, choice, judge_id=judge_id, event_id=event_id, run_id=run_id
        )
        counts[HOLDS if label == expected else FAILS] += 1

    unusable = judge_waiting(handle, judge, judge_id, waiting, record, of=("run", run_id))
    return {
        "run_id": run_id,
        "judge": judge.name,
        "offline": judge.offline,
        "items": len(waiting),
        "holds": counts[HOLDS],
        "fails": counts[FAILS],
        "unusable": dict(unusable),
    }


def validator_of(store: Store, run_id: int) -> ItemJudge:
    """The judge that validates a run's edited groups. Raises NotFound, Refused."""
    with store.read() as session:
        run = get_run(session, run_id)
        body = session.get_one(Recipe, run.recipe_id).body
    if run.provider not in PROVIDERS.names():
        raise Refused(
            f"run {run_id} was made by {run.provider!r}, which has no validator here",
            "let a judge answer its items in a study (`studies judge`)",
            code="validator_missing",
        )
    model = str(body.get("stages", {}).get("validation", {}).get("model", ""))
    if body.get("checks") and not model:
        raise Refused(
            f"the recipe of run {run_id} has checks and no validation, which edits are judged by",
            "let a judge answer its items in a study (`studies judge`)",
            code="validator_missing",
        )
    return judge_named(PROVIDERS.find(run.provider).judge_name(model), store)
