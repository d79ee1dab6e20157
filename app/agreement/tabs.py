"""The tabs below the verdict of the Agreement page: what is in one is read when it is opened."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import streamlit as st

from analysis.agreement.flagged import figures_over_time, window_rows
from analysis.agreement.judging_figures import over_time_lines
from analysis.agreement.judgment_filter import decisions_of
from analysis.study import run_text
from analysis.study.design import TARGETS
from app.access.session_user import signed_in_user
from app.agreement import actions
from app.agreement.actions import add_planned
from app.agreement.disagreement import draw_confusion, draw_disagreement
from app.agreement.judges import draw_consensus, draw_judges
from app.agreement.report import (
    draw_flag_note,
    draw_headlines,
    draw_measures,
    draw_pairs,
    headline_dots,
)
from app.agreement.verdict import draw_about_run, draw_thresholds
from app.kit.figure import Origin, draw_figure
from app.kit.page import draw_drawer, draw_table, draw_tabs
from app.operations.judging import agreement
from app.text.numbers import counted
from app.text.plain import plain
from app.text.remedies import in_pages
from curation.judging.request import PlanStudy
from db.errors import InfError
from db.study.items import ItemPlace
from db.study.judgments import JudgmentRow

NAMES = {
    "precision": "precision (kept items confirmed)",
    "overturned": "wrongly dropped (missed items confirmed)",
    "recall": "recall",
}


def draw_plan(study_id: int) -> None:
    """Choose a figure and a half-width; show the plan and the button that adds its items."""
    with st.expander("Plan more judgments", icon=":material/add_task:"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            target = st.selectbox(
                "Figure to know better",
                TARGETS,
                format_func=NAMES.__getitem__,
                key="agreement.plan_target",
                persist_state="page",
                width=320,
            )
            points = st.number_input(
                "To ± percentage points",
                0.1,
                50.0,
                5.0,
                0.5,
                key="agreement.plan_reach",
                persist_state="page",
                width=200,
            )
            wanted = st.toggle("Show the plan", key="agreement.plan_show", persist_state="page")
        if not wanted:
            return
        try:
            request = PlanStudy(study_id=study_id, target=target, reach=points)
            found = agreement.plan(signed_in_user(), request)
        except InfError as error:
            st.info(plain(in_pages(str(error))))
            return
        st.markdown(plain(run_text.plan_sentence(found.as_json())))
        if not found.items:
            return
        draw_table(
            [
                {
                    "Items": cell.items,
                    "Among": cell.among,
                    **{name.capitalize(): value for name, value in cell.strata.items()},
                }
                for cell in found.cells
            ],
        )
        st.button(
            f"Add {counted(found.items, 'item')} to the study",
            key="agreement.plan_add",
            on_click=add_planned,
            args=(study_id, target, found.items),
        )


@dataclass(frozen=True)
class Results:
    """A study's results, of the judgments that the filters leave.

    figures: as of `curation.judging.agreement`. about: what the study says about its run, None
    where it has none or items are left out of the figures. rows and what follows: of a study whose
    judgments are read here; None where a job computed its figures.
    """

    study_id: int
    figures: Mapping[str, Any]
    about: dict[str, Any] | None
    command: str
    origin: Origin
    rows: list[JudgmentRow] | None = None
    roles: Sequence[str] = ()
    places: dict[int, ItemPlace] = field(default_factory=dict)
    hidden: set[int] = field(default_factory=set)
    version: actions.Version | None = None


def draw_result_tabs(found: Results) -> None:
    """People, pairs, measures and the run, where there are any; then over time, judges, items."""
    parts: dict[str, Callable[[], object]] = {}
    report = found.figures["report"]
    if headline_dots(report):
        parts["People and models"] = partial(draw_headlines, report, found.origin)
    if any(pair["items"] for pair in report["pairs"]):
        parts["Pairs"] = partial(draw_pairs, report, found.origin)
        parts["Measures"] = partial(draw_measures, report, found.origin)
    if found.about is not None and found.about["known"]:
        parts["Whole run"] = partial(_draw_run, found, found.about)
    over_time = replace(found.origin, command=f"{found.command} --over-time")
    parts |= {
        "Over time": partial(draw_over_time, found.figures["over_time"], over_time),
        "Judges": partial(_draw_judges, found),
    }
    if found.rows is not None:
        parts["Items"] = partial(_draw_items, found, found.rows)
    else:
        parts["Confusion"] = partial(_draw_confusion, found)
    draw_tabs(parts, key="agreement.tab")


def _draw_run(found: Results, about: dict[str, Any]) -> None:
    study = f"inf studies {{}} {found.study_id} --json"
    draw_about_run(about, replace(found.origin, command=study.format("estimate")))
    draw_plan(found.study_id)
    if found.version is not None:
        version = found.version
        draw_drawer(  # it reads every judgment of the run
            "Were the filter stricter",
            lambda: draw_thresholds(
                _about("thresholds", found, version),
                replace(found.origin, command=study.format("thresholds")),
            ),
            key="agreement.stricter",
            icon=":material/tune:",
        )


def _about(what: str, found: Results, version: actions.Version) -> dict[str, Any]:
    return actions.about(what, found.study_id, version, signed_in_user())


def _draw_judges(found: Results) -> None:
    by_judge = replace(found.origin, command=f"{found.command} --by-judge")
    draw_judges(found.figures["by_judge"], by_judge)
    if found.version is not None:
        draw_consensus(
            _about("consensus", found, found.version),
            found.hidden,
            replace(found.origin, command=f"inf studies consensus {found.study_id} --json"),
        )


def _draw_confusion(found: Results) -> None:
    draw_confusion(
        sorted(row["judge"] for row in found.figures["by_judge"]),
        partial(agreement.confusion, signed_in_user(), found.study_id),
        found.origin,
        flagged=found.figures["report"]["flagged"],
    )


def _draw_items(found: Results, rows: list[JudgmentRow]) -> None:
    flagged = found.figures["report"]["flagged"]
    draw_disagreement(
        decisions_of(rows),
        found.places,
        found.origin,
        hidden=found.hidden,
        flagged=flagged,
        roles=found.roles,
    )


def draw_over_time(windows: Sequence[dict[str, Any]], origin: Origin) -> None:
    """The lines, and the number of undefined values."""
    st.header("Over time", anchor=False)
    if not windows:
        st.caption("Too few judged items for windows of time.")
        return
    rows = window_rows(windows)
    if not any(row["Value"] is not None for row in rows):
        reason = rows[0]["Reason if undefined"]
        st.caption(plain(f"Agreement is undefined in every window: {reason}."))
        return
    draw_figure(over_time_lines(windows), rows, origin, key="agreement.over_time")
    draw_flag_note(figures_over_time(windows))
    missing = sum(row["Value"] is None for row in rows)
    st.caption(
        f"Items in order of completion by people, in {len(windows)} windows of equal size."
        + (
            f" {counted(missing, 'undefined value')} not shown; the CSV has the reasons."
            * bool(missing)
        )
    )
