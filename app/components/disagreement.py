"""Where judges disagree: two judges label by label, and the items judged most differently."""

import streamlit as st

from analysis.answers import Decision
from analysis.disagreement import ItemDisagreement, confusion_of, disagreements
from analysis.figures import confusion_heatmap
from app.components.agreement import DOWNLOAD
from app.components.plain import plain
from app.menu import view_file
from db.items import ItemPlace

SHOWN = 200


def draw_disagreement(decisions: list[Decision], places: dict[int, ItemPlace]) -> None:
    """The confusion of two judges, then the items."""
    judges = sorted({row.judge for row in decisions})
    if len(judges) < 2:
        return
    st.subheader("Two judges, label by label", anchor=False)
    with st.container(horizontal=True):
        one = st.selectbox("Rows", judges, key="agreement.one")
        other = st.selectbox("Columns", judges, index=1, key="agreement.other")
    labels, counts = confusion_of(decisions, one, other)
    if one == other or not labels:
        st.caption("Choose two judges with items in common.")
    else:
        figure = confusion_heatmap(labels, counts, one, other)
        st.plotly_chart(figure, key="agreement.confusion", config=DOWNLOAD)
    draw_items(disagreements(decisions), places)


def draw_items(found: list[ItemDisagreement], places: dict[int, ItemPlace]) -> None:
    """A row per item, most disagreement first; a chosen row leads to its group."""
    st.subheader("Items, most disagreement first", anchor=False)
    shown = found[:SHOWN]
    if not shown:
        st.caption("No item was judged twice yet.")
        return
    judges = sorted({judge for each in shown for judge in each.said})
    rows = [
        {
            "Item": each.item,
            "Disagreement": each.disagreement,
            "Scenario": places[int(str(each.item))].scenario,
            "Query": places[int(str(each.item))].query,
            **{judge: each.said.get(judge, "") for judge in judges},
        }
        for each in shown
    ]
    picked = st.dataframe(
        rows,
        hide_index=True,
        key="agreement.items",
        on_select="rerun",
        selection_mode="single-row",
        column_config={"Disagreement": st.column_config.NumberColumn(format="%.2f")},
    )
    for row in picked.selection.rows[:1]:
        place = places[int(str(shown[row].item))]
        st.markdown(f"**{plain(place.instruction)}**  \n{plain(place.query)}")
        st.page_link(
            view_file("groups"),
            label=f"Open group {place.group_id}",
            query_params={"group": str(place.group_id)},
            icon=":material/arrow_forward:",
        )
    if len(found) > SHOWN:
        st.caption(f"The first {SHOWN} of {len(found):,} items.")
