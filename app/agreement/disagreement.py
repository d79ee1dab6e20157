"""Disagreement: the confusion matrix of two judges, and the items with most disagreement."""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import streamlit as st

from analysis.agreement.answers import Decision
from analysis.agreement.disagreement import (
    ItemDisagreement,
    choices_of_two,
    confusion_of,
    disagreements,
)
from analysis.agreement.flagged import WITHOUT
from analysis.figures.figures import confusion_heatmap
from analysis.files.csv_writer import csv_text
from app.agreement.report import draw_flag_note
from app.kit.figure import Origin, draw_figure, draw_rows
from app.kit.frame.links import page_link
from app.text.numbers import counted
from db.study.items import ItemPlace

SHOWN = 200


def draw_disagreement(
    decisions: list[Decision],
    places: dict[int, ItemPlace],
    origin: Origin,
    *,
    hidden: set[int],
    flagged: Mapping[str, str],
    roles: Sequence[str],
) -> None:
    """The confusion matrix of two judges, then the items, but for `hidden` ones.

    flagged: why, by the names of people whose answers are in doubt; roles: of the judged groups'
    shape, in its order.
    """
    draw_confusion(
        sorted({row.judge for row in decisions}),
        lambda one, other: confusion_of(choices_of_two(decisions, one, other), roles),
        origin,
        flagged=flagged,
    )
    found = [each for each in disagreements(decisions) if int(str(each.item)) not in hidden]
    draw_items(found, places, origin, flagged)


def draw_confusion(
    judges: Sequence[str],
    of_two: Callable[[str, str], tuple[list[str], np.ndarray]],
    origin: Origin,
    *,
    flagged: Mapping[str, str],
) -> None:
    """The confusion matrix of two of the judges, which `of_two` counts."""
    if len(judges) < 2:
        st.caption("No disagreement to show: fewer than two judges have answered.")
        return
    st.header("Confusion matrix of two judges", anchor=False)
    with st.container(horizontal=True):
        one = st.selectbox("Rows", judges, key="agreement.one", persist_state="page")
        other = st.selectbox(
            "Columns", judges, index=1, key="agreement.other", persist_state="page"
        )
    labels, counts = of_two(one, other)
    if one == other or not labels:
        st.caption("Choose two judges with items in common.")
        return
    figure = confusion_heatmap(labels, counts, one, other)
    cells = [
        {f"{one} chose": row, f"{other} chose": column, "items": int(counts[i, j])}
        for i, row in enumerate(labels)
        for j, column in enumerate(labels)
    ]
    draw_figure(figure, cells, origin, key="agreement.confusion")
    draw_flag_note([{"flagged": {who: flagged[who] for who in (one, other) if who in flagged}}])


def draw_items(
    found: list[ItemDisagreement],
    places: dict[int, ItemPlace],
    origin: Origin,
    flagged: Mapping[str, str],
) -> None:
    """A row per item with every judgment, most disagreement first; a link opens its group."""
    st.header("Items, most disagreement first", anchor=False)
    shown = found[:SHOWN]
    if not shown:
        st.caption("No item to list: none has two judgments, or they are hidden from you.")
        return
    _draw_workbench_link(shown, places)
    judges = sorted({judge for each in shown for judge in each.labels})
    rows = [item_row(each, places[int(str(each.item))], judges, flagged) for each in shown]
    draw_rows(
        rows,
        origin,
        key="agreement.items",
        whole=lambda: csv_text(
            [item_row(each, places[int(str(each.item))], judges, flagged) for each in found]
        ),
        column_config={
            "Open": st.column_config.LinkColumn(
                display_text=r"group=(\d+)", width="small", help="Open its group"
            ),
            "Disagreement": st.column_config.NumberColumn(format="%.2f"),
            WITHOUT: st.column_config.NumberColumn(format="%.2f"),
        },
    )
    draw_flag_note([{"flagged": flagged}])
    if len(found) > SHOWN:
        st.caption(f"First {SHOWN} of {len(found):,} items; the CSV has all.")


def _draw_workbench_link(shown: list[ItemDisagreement], places: dict[int, ItemPlace]) -> None:
    """Link to the groups of the disputed items in the workbench."""
    disputed = [places[int(str(each.item))] for each in shown if each.disagreement > 0]
    groups = list(dict.fromkeys(str(place.group_id) for place in disputed))
    if groups:
        page_link(
            "groups",
            f"Open the {counted(len(groups), 'disputed group')}",
            icon=":material/view_agenda:",
            parameters={"run": disputed[0].run_id, "groups": ",".join(groups)},
        )


def item_row(
    each: ItemDisagreement, place: ItemPlace, judges: list[str], flagged: Collection[str] = ()
) -> dict[str, object]:
    """An item with the answer of every judge."""
    return {
        "Open": f"groups?group={place.group_id}",
        "Item": each.item,
        "Disagreement": each.disagreement,
        **({WITHOUT: each.without(flagged)} if flagged else {}),
        "Role": place.scenario,
        **{judge: each.labels.get(judge, "") for judge in judges},
        "Query": place.query,
        "Instruction": place.instruction,
        "Source": place.source,
    }
