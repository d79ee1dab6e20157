"""The selection on the map: open, study, exclude, filter or grow more like it; and its list."""

import pandas as pd
import streamlit as st

from app.access.session_user import signed_in_user
from app.corpora.map import actions
from app.corpora.map.actions import clear_selection
from app.groups.filters import MAX_IDS
from app.kit.figure import Origin, draw_rows, frame_as_csv
from app.kit.frame.links import go_to, page_link
from app.kit.page import draw_hand_off
from app.operations import analyses
from app.text.numbers import counted
from app.text.plain import plain


def draw_growing(groups: list[int], pairs: list[int]) -> None:
    """The pairs of the selected groups and the selected pairs, and the way to a run over them."""
    with st.popover(
        "Grow more like these", icon=":material/psychiatry:", disabled=not (groups or pairs)
    ):
        found = analyses.growable(signed_in_user(), groups, pairs)
        st.markdown(
            f"{counted(len(found.without_kept), 'pair')} without a kept group, "
            f"{counted(len(found.with_kept), 'pair')} with one."
        )
        is_more = st.checkbox(
            "Also those with a kept group",
            key="coverage.grow_kept",
            value=not found.without_kept,
            disabled=not found.with_kept,
            help="A run makes one group of each pair; another run makes another one.",
        )
        chosen = [*found.without_kept, *(found.with_kept if is_more else ())]
        if found.elsewhere:
            st.caption(
                f"A run covers one dataset: {counted(found.elsewhere, 'pair')} of others left out."
            )
        if len(chosen) > MAX_IDS:
            st.caption(f"The first {MAX_IDS} of {len(chosen):,}.")
        if chosen:
            draw_hand_off(
                "curate",
                f"Choose recipe and budget for {counted(len(chosen[:MAX_IDS]), 'pair')}",
                dataset=found.dataset,
                pairs=",".join(map(str, chosen[:MAX_IDS])),
            )


LISTED = 500
COLUMNS = {
    "text": "Text",
    "sign": "Sign",
    "group_id": "Group",
    "corpus": "Corpus",
    "source": "Source",
    "cluster": "Cluster",
    "verdict": "Verdict",
}


def draw_selection(points: pd.DataFrame, rows: list[int], origin: Origin, analysis_id: int) -> None:
    """List the selected points and offer actions on them; rows: of the whole map."""
    chosen = points.iloc[rows]
    groups = sorted({int(group) for group in chosen["group_id"].dropna()})
    pairs = sorted({int(pair) for pair in chosen.get("pair_id", pd.Series()).dropna()})
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{counted(len(chosen), 'text')}** of {counted(len(groups), 'group')}")
        st.button("Back to topics", key="coverage.clear", on_click=clear_selection, type="tertiary")
    with st.container(key="coverage.actions"):
        _draw_workbench_link(groups)
        if st.button(
            "Create a study",
            key="coverage.study",
            icon=":material/fact_check:",
            disabled=not groups,
            help="Opens the Studies page with these groups as its list; one run only.",
        ):
            go_to("studies", {"run": actions.list_for_study(groups)})
        draw_growing(groups, pairs)
        _draw_exclusion(groups)
        with st.container(horizontal=True):
            st.button(
                "Show only these",
                key="coverage.only",
                icon=":material/filter_alt:",
                on_click=actions.show_only,
                args=(analysis_id, rows),
            )
            st.button(
                "Hide these",
                key="coverage.hide",
                icon=":material/visibility_off:",
                on_click=actions.hide,
                args=(analysis_id, rows),
            )
    listed = chosen.head(LISTED)[[name for name in COLUMNS if name in chosen]]
    rows_shown = [
        {
            **{str(name): value for name, value in row.items()},
            "Group": None if pd.isna(group) else f"groups?group={int(group)}",
        }
        for row, group in zip(
            listed.rename(columns=COLUMNS).to_dict("records"), listed["group_id"], strict=True
        )
    ]
    draw_rows(
        rows_shown,
        origin,
        key="coverage.selected",
        whole=lambda: frame_as_csv(chosen),
        column_config={
            "Group": st.column_config.LinkColumn(display_text=r"group=(\d+)", width="small"),
            "Text": st.column_config.TextColumn(width="medium"),
            "Sign": st.column_config.TextColumn(width="small"),
        },
    )
    if len(chosen) > LISTED:
        st.caption(f"First {LISTED} of {len(chosen):,}; the CSV has all.")


def _draw_workbench_link(groups: list[int]) -> None:
    """Link to these groups in the workbench: those of the run that has most of them, at most as
    many as an address takes."""
    by_run = analyses.runs_of(signed_in_user(), groups)
    for run_id, found in list(by_run.items())[:1]:
        mine = found[:MAX_IDS]
        page_link(
            "groups",
            f"Open {counted(len(mine), 'group')}",
            icon=":material/view_agenda:",
            parameters={"run": run_id, "groups": ",".join(map(str, mine))},
        )


def _draw_exclusion(groups: list[int]) -> None:
    """Reject the selected groups; releases leave rejected groups out."""
    with st.popover("Exclude from releases", icon=":material/block:", disabled=not groups):
        st.caption(
            plain(
                f"Rejects {counted(len(groups), 'group')} in your name, like a review. Approving a "
                "group reverses it."
            )
        )
        st.text_input(
            "Reason", key="coverage.reason", placeholder="why these groups are not released"
        )
        st.button(
            f"Reject {counted(len(groups), 'group')}",
            key="coverage.reject",
            on_click=actions.reject,
            args=(groups,),
        )
