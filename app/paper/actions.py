"""What the paper view shows of a project: its agreement and its map."""

from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from analysis.found.texts import CoverageFound, Stored
from analysis.map.printed_map import printed_map
from app.access.identity import SessionUser
from app.access.session_user import signed_in_user
from app.agreement.actions import read_report
from app.corpora.map.points import stored_points, visible_rows
from app.kit.analysis_command import agreement_command
from app.kit.figure import Origin
from app.operations.acting import store_address
from app.operations.judging import agreement, studies
from app.operations.overview.frame import PageDataset

if TYPE_CHECKING:
    import pandas as pd

# Twice its 720 pixels on the page; one of more than 1,460 would be scaled at every run.
DOTS_PER_INCH: Final = 213


def read_agreement(user: SessionUser, dataset: PageDataset) -> tuple[dict[str, Any], Origin] | None:
    """The report of the study that Agreement shows first, with its origin.

    None without judgments, or where a large study's figures are not computed yet.

    Without the items that are hidden from the user there.
    """
    found = studies.list_all(user, dataset.name).data
    if not found:
        return None
    study_id = agreement.study_to_show(user, [study.id for study in found])
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


def read_map(found: Stored[CoverageFound], colour_by: str) -> tuple["pd.DataFrame", bytes]:
    """The points of the map and its picture as PNG, without the texts of groups that are hidden
    from the user."""
    points = stored_points(signed_in_user(), found.id)
    visible = visible_rows(points)
    version = (store_address(), found.id, colour_by, visible.tobytes())
    return points[visible], _picture(points[visible], version)


@st.cache_data(max_entries=4, show_spinner="Drawing the map …")
def _picture(_points: Any, version: tuple[object, ...]) -> bytes:
    return printed_map(_points, str(version[2]), "png", DOTS_PER_INCH)
