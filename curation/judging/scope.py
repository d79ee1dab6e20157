"""The scope of agreement in a study: the run, or only the study's own items.

Kappa depends on which items were judged. Of one run, a sample of the whole gave 0.740, kept groups
alone 0.815, and the items on which judges differed 0.106. So a figure may be called one of the run
only where its items are a sample of the run.
"""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

from curation.judging.sampling import describe_sampling
from curation.rules.language import name_of
from db.run.validations import groups_with_items
from db.study.studies import compose, get_study


@dataclass(frozen=True)
class Scope:
    """`of_run`: whether agreement on the items estimates that on the run; `sentence` describes the
    items and, if it does not, states that."""

    of_run: bool
    sentence: str


def study_scope(session: Session, study_id: int) -> Scope:
    """The scope of a study, from how its items were sampled. Raises NotFound."""
    study = get_study(session, study_id)
    in_run: dict[str, int] = {}
    if study.run_id is not None:
        in_run = groups_with_items(session, study.run_id)
    return describe_scope(study.settings, compose(session, study_id).verdicts, in_run)


def of_filtered(scope: Scope) -> Scope:
    """The scope of those judgments of a study that pass a filter: a part is not a sample."""
    return replace(
        scope,
        of_run=False,
        sentence="Only the judgments that pass the filters, of a part of this study: agreement on "
        "them is not a measure of the run.",
    )


def describe_scope(
    settings: dict[str, Any], verdicts: dict[str, int], in_run: dict[str, int]
) -> Scope:
    """The scope of a sample. Pure.

    `verdicts` counts the study's items, and `in_run` the judged groups of its run, by verdict.
    """
    sample = str(settings.get("sampling", "stratified"))
    strata = [name for name in settings.get("strata") or () if name != "scenario"]
    kept, dropped = verdicts.get("kept", 0), verdicts.get("dropped", 0)
    added = sum(int(each.get("items", 0)) for each in settings.get("additions") or ())
    counted = f"{kept:,} from kept and {dropped:,} from dropped groups"
    left_out = [
        verdict
        for verdict in ("kept", "dropped")
        if in_run.get(verdict) and not verdicts.get(verdict)
    ]
    if sample == "disagreement":
        why = "This study's items were chosen because judges disagree on them"
    elif sample == "file":
        return Scope(False, "This study's items come from a file: no run made them.")
    elif sample == "list":
        why = "This study's items were listed by hand, not sampled"
    elif added:
        why = (
            f"{added:,} of this study's items {'was' if added == 1 else 'were'} added where they "
            "help an estimate most, not by their share of the run"
        )
    elif language := settings.get("language"):
        why = f"This study's items are of pairs in {name_of(language)} alone"
    elif left_out:
        why = f"This study has no item from the run's {in_run[left_out[0]]:,} {left_out[0]} groups"
    elif sample == "stratified" and strata:
        why = f"Each {' and '.join(strata)} has the same weight here, whatever its share of the run"
    else:
        return Scope(
            True, f"Items sampled {describe_sampling(settings)} from the whole run: {counted}."
        )
    return Scope(
        False,
        f"{why} ({counted}): agreement on them is not a measure of the run.",
    )
