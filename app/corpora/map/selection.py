"""The selection on the map: its list, and actions to filter, study or reject it."""

import pandas as pd
import streamlit as st

from app.corpora.map import actions
from app.kit.figure import Origin, draw_rows, frame_as_csv
from app.kit.menu import view_file
from app.text.numbers import counted
from app.text.plain import plain

LISTED = 500
COLUMNS = {
    "corpus": "Corpus",
    "field": "Text of",
    "role": "Role",
    "source": "Source",
    "cluster": "Cluster",
    "verdict": "Verdict",
    "text": "Text",
    "group_id": "Group",
}


def draw_selection(points: pd.DataFrame, rows: list[int], origin: Origin, analysis_id: int) -> None:
    """List the selected points and offer actions on them."""
    if not rows:
        st.caption("Select texts with Box or Lasso above the map to list them here.")
        return
    chosen = points.iloc[rows]
    groups = sorted({int(group) for group in chosen["group_id"].dropna()})
    st.subheader("Selected", anchor=False)
    st.markdown(f"**{counted(len(chosen), 'text')}** of {counted(len(groups), 'group')}")
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
        if st.button(
            "Create a study",
            key="coverage.study",
            icon=":material/fact_check:",
            disabled=not groups,
            help="Opens the Studies page with these groups as its list; one run only.",
        ):
            actions.list_for_study(groups)
            st.switch_page(view_file("studies"))
        _draw_workbench_link(groups)
        _draw_exclusion(groups)
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
            "Text": st.column_config.TextColumn(width="large"),
        },
    )
    if len(chosen) > LISTED:
        st.caption(f"First {LISTED} of {len(chosen):,}; the CSV has all.")


def _draw_workbench_link(groups: list[int]) -> None:
    """Link to these groups in the workbench: those of the run that has most of them."""
    run_id, mine = actions.groups_of_one_run(groups)
    if run_id is not None:
        st.page_link(
            view_file("groups"),
            label=f"Open {counted(len(mine), 'group')}",
            icon=":material/view_agenda:",
            query_params={"run": str(run_id), "groups": ",".join(map(str, mine))},
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
