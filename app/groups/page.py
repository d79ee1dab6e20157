"""Groups page: the groups of a run, filtered, and one group in full."""

import streamlit as st

from app.access.session_user import failures_shown
from app.groups import actions
from app.groups.funnel import draw_funnel
from app.groups.group import draw_group
from app.groups.run_label import run_name
from app.kit.choice import choose, draw_pages, page_offset
from app.kit.page import draw_empty, draw_heading
from app.text.numbers import counted
from curation.recorded import NAME as RECORDED
from db.corpus.texts import pair_sources
from db.run.groups import GroupRow
from db.run.runs import STAGES, Funnel, funnel, list_runs
from db.store.store import open_store

ALL = "all"
ROWS = 10  # fits a table without scrolling; the chosen group is directly below
VERDICTS = (ALL, "kept", "dropped")
REVIEWS = (ALL, "none", "approve", "reject", "edit")


def read_reason_from_url(found: Funnel) -> None:
    """Set the filter once from `?reason=`, which the links of a funnel use."""
    wanted = st.query_params.get("reason")
    if wanted is not None:
        del st.query_params["reason"]
        if wanted in found.dropped:
            st.session_state["groups.reason"] = wanted


def draw_filters(found: Funnel, sources: list[str]) -> dict[str, str | None]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        search = st.text_input(
            "Search", key="groups.search", type="search", placeholder="in queries and instructions"
        )
        verdict = st.selectbox("Verdict", VERDICTS, key="groups.verdict", width=130)
        reason = st.selectbox(
            "Drop reason",
            (ALL, *found.dropped),
            format_func=lambda reason: reason.replace("_", " "),
            key="groups.reason",
            width=210,
        )
        stage = st.selectbox("Stage", (ALL, *STAGES), key="groups.stage", width=130)
        review = st.selectbox("Review", REVIEWS, key="groups.review", width=130)
        source = None
        if len(sources) > 1:
            source = st.selectbox("Source", (ALL, *sources), key="groups.source", width=160)
    chosen = {
        "verdict": verdict,
        "reason": reason,
        "stage": stage,
        "review": review,
        "source": source or ALL,
    }
    filters: dict[str, str | None] = {
        name: None if value == ALL else value for name, value in chosen.items()
    }
    return {**filters, "search": search}


def draw_rows(rows: list[GroupRow]) -> None:
    """Draw the table; selecting a row opens the group."""
    picked = st.dataframe(
        [
            {
                "Group": row.id,
                "Query": row.query_positive,
                "Instruction": row.instruction_positive,
                "Verdict": row.verdict or row.state,
                "Drop reason": (row.drop_reason or "").replace("_", " "),
                "Review": row.review or "",
            }
            for row in rows
        ],
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key="groups.table",
        column_config={"Instruction": st.column_config.TextColumn(width="large")},
    )
    for index in picked.selection.rows:
        if index < len(rows):
            st.query_params["group"] = str(rows[index].id)


WARNING = (
    "You may judge items of {} in a study that is not closed. If you open {}, you will see the "
    "answers: you are then never given the items, and answers you gave stay but can no longer be "
    "changed. Opening is recorded."
)


def draw_hidden(run_id: int) -> None:
    """How many groups of the run are hidden from the user, and opening all of them."""
    number = actions.count_hidden(run_id)
    if not number:
        return
    with st.expander(
        f"{counted(number, 'group')} hidden: you may judge them",
        icon=":material/visibility_off:",
    ):
        st.warning(WARNING.format("these groups", "them"), icon=":material/warning:")
        st.button(
            f"Open {counted(number, 'group')}",
            key="groups.open_all",
            on_click=actions.open_run,
            args=(run_id,),
        )


def draw_named(group_id: int) -> None:
    """The group, or the warning before one that is hidden from the user is opened."""
    group = actions.visible_group(group_id)
    if group is not None:
        draw_group(group)
        return
    st.warning(WARNING.format(f"group {group_id}", "it"), icon=":material/warning:")
    st.button(
        "Open the group",
        key=f"groups.open-{group_id}",
        on_click=actions.open_group,
        args=(group_id,),
    )


with open_store().read() as session:
    runs = list_runs(session)
chosen = None
if not runs:
    draw_heading("Groups", "Three triplets generated from each pair, kept or dropped as a whole.")
    draw_empty(
        "No runs yet.",
        "A curation run generates groups.",
        view="curate",
        link="Curate",
        command="inf curate --dataset NAME --provider offline",
    )
    st.stop()
place = st.container()
providers = sorted({run.provider for run in runs})
if len(providers) > 1:
    provider = st.selectbox("Provider", (ALL, *providers), key="groups.provider", width=160)
    runs = [run for run in runs if provider in (ALL, run.provider)]
chosen = choose(
    "Run", runs, key="groups.run", parameter="run", ident=lambda run: run.id, name=run_name
)
with place:
    draw_heading(
        "Groups",
        "Three triplets generated from each pair, kept or dropped as a whole.",
        offline=chosen.offline,
        recorded=chosen.provider == RECORDED,
    )
with open_store().read() as session:
    found = funnel(session, chosen.id)
    with st.expander("Funnel and drop reasons"):
        draw_funnel(found)
    read_reason_from_url(found)
    filters = draw_filters(found, pair_sources(session, chosen.dataset_id))
    offset = page_offset("groups.page", ROWS)
with failures_shown():
    page = actions.visible_groups(chosen.id, filters, offset=offset, limit=ROWS)
    st.caption(f"{counted(page.total, 'group')}. Select a row to open it.")
    draw_rows(page.rows)
    draw_pages(page.total, key="groups.page", rows=ROWS)
    draw_hidden(chosen.id)
    named = st.query_params.get("group", "")
    if named.isdecimal() and len(named) < 10:
        draw_named(int(named))
    elif page.rows:
        draw_named(page.rows[0].id)
