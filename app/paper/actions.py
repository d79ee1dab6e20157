"""What the paper view reads of a project: analyses, judgments, scores and checkpoints."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from analysis.map.printed_map import printed_map
from analysis.paper.rows import Trained
from app.access.session_user import signed_in_user
from app.agreement.actions import read_report
from app.corpora.map.points import stored_points, visible_rows
from app.kit.analysis_command import agreement_command
from app.kit.figure import Origin
from app.operations.acting import store_address
from app.operations.judging import agreement
from db.outcome.analyses import list_analyses
from db.outcome.checkpoints import list_checkpoints
from db.outcome.evaluations import Scored, newest_scores
from db.store.store import open_store
from db.study.studies import list_studies
from db.tables import Analysis, Checkpoint

if TYPE_CHECKING:
    import pandas as pd

# Twice its 720 pixels on the page; one of more than 1,460 would be scaled at every run.
DOTS_PER_INCH: Final = 213


def read_analysis(kind: str, dataset_id: int) -> Analysis | None:
    """The newest analysis of the dataset."""
    with open_store().read() as session:
        found = list_analyses(session, kind, dataset_id=dataset_id)
    return found[0] if found else None


def read_agreement(dataset_id: int) -> tuple[dict[str, Any], Origin] | None:
    """The report of the study that Agreement shows first, with its origin.

    None without judgments, or where a large study's figures are not computed yet.

    Without the items that are hidden from the user there.
    """
    with open_store().read() as session:
        studies = list_studies(session, dataset_id=dataset_id)
    if not studies:
        return None
    user = signed_in_user()
    study_id = agreement.study_to_show(user, [study.id for study in studies])
    seen = agreement.seen(user, study_id)
    report, state = read_report(user, study_id, seen), seen.state
    if report is None or not report["judgments"]:
        return None
    origin = Origin(
        f"{report['judgments']:,} judgments of study {study_id}, latest no. {state.last_id}",
        state.last_at,
        agreement_command(study_id, []),
    )
    return report, origin


def read_map(found: Analysis, colour_by: str) -> tuple["pd.DataFrame", bytes]:
    """The points of the map and its picture as PNG, without the texts of groups that are hidden
    from the user."""
    points = stored_points(signed_in_user(), found.id)
    visible = visible_rows(points)
    version = (store_address(), found.id, colour_by, visible.tobytes())
    return points[visible], _picture(points[visible], version)


@st.cache_data(max_entries=4, show_spinner="Drawing the map …")
def _picture(_points: Any, version: tuple[object, ...]) -> bytes:
    return printed_map(_points, str(version[2]), "png", DOTS_PER_INCH)


def read_scores(dataset_id: int) -> tuple[list[Scored], list[Checkpoint]]:
    """The newest scores of untrained models and of checkpoints trained on the dataset, and these
    checkpoints, newest first."""
    with open_store().read() as session:
        checkpoints = list_checkpoints(session, dataset_id=dataset_id)
        known = {each.id for each in checkpoints}
        scores = [
            each
            for each in newest_scores(session)
            if each.checkpoint_id is None or each.checkpoint_id in known
        ]
    return scores, checkpoints


def trained_of(checkpoints: Sequence[Checkpoint]) -> list[Trained]:
    """What Tables 3, 4 and 6 vary, of each checkpoint."""
    found = []
    for each in checkpoints:
        settings = each.config.get("settings") or each.config
        pooling = str(settings.get("pooling", "auto"))
        found.append(
            Trained(
                model=each.path,
                base=each.base_model,
                objective=str(settings.get("objective", "")),
                encoders=str(settings.get("encoders", "shared")),
                # auto: Table 4's base model is a decoder, whose pooling is that of the last token
                pooling="last" if pooling == "auto" else pooling,
                epochs=float(settings.get("epochs") or 0),
            )
        )
    return found
