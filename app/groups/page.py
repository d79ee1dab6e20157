"""Groups page: the workbench on a run's groups, with its filters, bulk reviews and settings.

Who may not curate the dataset sees no verdict, and no list that reveals one, unless a curator
allows it for the run.
"""

from collections.abc import Mapping, Sequence

import streamlit as st

from app.access.identity import SessionUser
from app.access.session_user import failures_shown, require_permission
from app.groups import actions
from app.groups.bulk import draw_bulk
from app.groups.filters import draw_filters
from app.groups.funnel import draw_funnel
from app.groups.run_label import run_name
from app.groups.workbench import draw_workbench
from app.kit.choice import choose
from app.kit.frame.dataset import chosen_dataset
from app.kit.outbox_card import draw_lifeline
from app.kit.page import draw_empty, draw_heading
from app.operations import groups
from app.operations.judging.desk import Desk
from app.operations.runs import list_all as list_runs
from app.text.numbers import counted
from curation.recorded import NAME as RECORDED
from db.errors import Refused
from db.run.runs import RunSummary
from db.run.versions import FIRST

ALL = "all"
LEAD = "Read a group; approve, reject with a reason, edit. Approved groups are released."
WARNING = (
    "You may judge items of {} in a study that is not closed. If you open {}, you will see the "
    "answers: you are then never given the items, and answers you gave stay but can no longer be "
    "changed. Opening is recorded."
)


def draw_hidden(run_id: int, number: int, *, curates: bool) -> None:
    """How many groups of the run are hidden from the user, and opening all of them."""
    if not number:
        return
    if not curates:
        st.caption(f"{counted(number, 'group')} of the run hidden: you may judge them")
        return
    with st.expander(
        f"{counted(number, 'group')} of the run hidden: you may judge them",
        icon=":material/visibility_off:",
    ):
        st.warning(WARNING.format("these groups", "them"), icon=":material/warning:")
        st.button(
            f"Open {counted(number, 'group')}",
            key="groups.open_all",
            on_click=actions.open_hidden,
            kwargs={"run_id": run_id},
        )


def draw_warning(group_id: int) -> None:
    """The warning before a group that is hidden from the user is opened."""
    st.warning(WARNING.format(f"group {group_id}", "it"), icon=":material/warning:")
    st.button(
        "Open the group",
        key=f"groups.open-{group_id}",
        on_click=actions.open_hidden,
        kwargs={"group_id": group_id},
    )


def draw_counts(counts: Mapping[str, int], run: RunSummary, hidden: int) -> None:
    summary = f"{sum(counts.values()):,} of {counted(run.kept + run.dropped, 'group')} reviewed"
    names = {"approve": "approved", "reject": "rejected", "edit": "edited"}
    summary += "".join(f" · {n:,} {names[action]}" for action, n in counts.items())
    if open_groups := run.pairs - run.kept - run.dropped:
        summary += f" · {counted(open_groups, 'group')} still in work"
    if run.verdict_version != FIRST:
        summary += f" · verdict version {run.verdict_version}"
    if hidden:
        summary += f" · {hidden:,} hidden, as you may judge them"
    st.caption(summary)


def draw_curators_part(user: SessionUser, run: RunSummary, *, verdicts_shown: bool) -> None:
    """Draw the funnel, validation of edits, and the visibility of verdicts."""
    waiting = groups.waiting(user, run.id)
    box = st.expander("Funnel and drop reasons", key="groups.funnel", on_change="rerun")
    if box.open:  # counting 100,000 groups takes 80 ms
        with box:
            draw_funnel(groups.progress(user, run.id))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.toggle(
            "Show verdicts of this run to annotators",
            verdicts_shown,
            key=f"review.verdicts_{run.id}",
            on_change=actions.show_verdicts,
            args=(run.id,),
            help="Off: annotators get kept and dropped groups mixed, without the model's judgment.",
        )
        if waiting:
            st.button(
                f"Validate {counted(waiting, 'edited item')}",
                key="review.revalidate",
                on_click=actions.revalidate,
                args=(run.id,),
            )


@st.fragment(key="groups-workbench")
def draw_desk(desk: Desk, run: RunSummary, hidden: int) -> None:
    """The counts stand above the workbench, which first stores what was decided."""
    counts = st.container()
    with failures_shown():
        user = draw_workbench(desk, key=f"groups.workbench_{run.id}")
        with counts:
            draw_counts(groups.reviewed(user, run.id), run, hidden)


def named_group() -> int | None:
    """The group that the URL names."""
    named = st.query_params.get("group", "")
    return int(named) if named.isdecimal() and len(named) < 10 else None


def read_run_of_group(user: SessionUser, runs: Sequence[RunSummary]) -> None:
    """Choose the run of the group that the URL names, if it names no run."""
    group_id = named_group()
    if group_id is None or "run" in st.query_params:
        return
    run_id = groups.run_of(user, group_id)
    if any(run.id == run_id for run in runs):
        st.query_params["run"] = str(run_id)


def draw_page(user: SessionUser, runs: Sequence[RunSummary]) -> None:
    def curates(run: RunSummary) -> bool:
        return user.rights.on_dataset("curate", run.dataset_id)

    place = st.container(key="groups-head")
    read_run_of_group(user, runs)
    providers = sorted({run.provider for run in runs if curates(run)})
    with st.container(key="groups-choice"):
        chosen, filters = st.columns([2, 3], vertical_alignment="bottom")
    with chosen:
        if len(providers) > 1:
            provider = st.selectbox(
                "Provider",
                (ALL, *providers),
                key="groups.provider",
                format_func=lambda each: "all providers" if each == ALL else each,
            )
            runs = [run for run in runs if provider in (ALL, run.provider)]
        run = choose(
            "Run",
            runs,
            key="groups.run",
            parameter="run",
            ident=lambda run: run.id,
            name=lambda run: run_name(run) if curates(run) else f"run {run.id} · {run.dataset}",
        )
    with place:
        draw_heading("Groups", LEAD, offline=run.offline, recorded=run.provider == RECORDED)
    here = groups.standing_in(user, run.id)
    wanted = draw_filters(user, run, blind=here.blind, place=filters)
    group_id = named_group()
    if group_id is not None and groups.is_hidden(user, group_id):
        if not here.curates:
            raise Refused(
                f"group {group_id} is not in your queue",
                "choose another filter, or a group from the list",
                code="group_not_in_queue",
            )
        draw_warning(group_id)
        group_id = None
    hidden = groups.count_hidden(user, run.id)
    draw_desk(Desk(wanted, group_id), run, hidden)
    draw_lifeline()
    draw_hidden(run.id, hidden, curates=here.curates)
    if here.curates and here.reviews:
        draw_bulk(wanted)
    if here.curates:
        draw_curators_part(user, run, verdicts_shown=here.run.verdicts_shown)


chosen = chosen_dataset()
user = require_permission("groups")
runs = () if chosen is None else list_runs(user, dataset_id=chosen.id, right="groups").data
linked = st.query_params.get("run")  # also one of which nothing is finished yet
found = [run for run in runs if run.kept + run.dropped or str(run.id) == linked]
if found:
    with failures_shown():
        draw_page(user, found)
else:
    draw_heading("Groups", LEAD)
    draw_empty(
        "No groups yet.",
        "A curation run generates groups.",
        view="curate",
        link="Curate",
        command="inf runs create NAME --provider offline",
    )
