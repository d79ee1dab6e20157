"""Review page: approve, reject or edit groups one by one, on a card or with plain widgets.

Annotators see no verdict, and no queue that reveals one, unless a curator allows it for the run.
"""

import streamlit as st

from app.access.permissions import NEEDS
from app.access.session_user import failures_shown, require_permission, show_notices
from app.groups import actions
from app.groups.actions import Desk
from app.groups.review_card import draw_card
from app.groups.review_many import draw_many
from app.groups.review_plain import draw_plain
from app.groups.run_label import run_name
from app.kit.choice import choose
from app.kit.outbox_card import draw_lifeline
from app.kit.page import draw_empty, draw_heading
from app.text.numbers import counted
from db.corpus.texts import pair_sources
from db.review.queue import QueueFilter
from db.review.reviews import count_reviews
from db.run.revalidations import waiting_items
from db.run.runs import RunSummary, funnel, list_runs
from db.store.store import open_store
from db.tables import Run

ALL = "all"
QUEUES = {
    "kept, not reviewed": ("kept", "none"),
    "dropped, not reviewed": ("dropped", "none"),
    "edited, not approved": (None, "edit"),
    "approved": (None, "approve"),
    "rejected": (None, "reject"),
}
BLIND_QUEUES = {
    "not reviewed": (None, "none"),
    "edited, not approved": (None, "edit"),
    "approved": (None, "approve"),
    "rejected": (None, "reject"),
}


def draw_filters(run: RunSummary, *, blind: bool) -> QueueFilter:
    """Draw the filters of the card and of the bulk review: queue, drop reason, source, search."""
    with open_store().read() as session:
        sources = pair_sources(session, run.dataset_id)
        dropped = list(funnel(session, run.id).dropped)
    queues = BLIND_QUEUES if blind else QUEUES
    with st.container(horizontal=True, vertical_alignment="bottom"):
        queue = st.selectbox(
            "Queue", list(queues), key=f"review.queue_{'blind' if blind else 'all'}"
        )
        verdict, review = queues[queue or next(iter(queues))]
        reason = ALL
        if verdict == "dropped":
            reason = st.selectbox(
                "Drop reason",
                (ALL, *dropped),
                format_func=lambda each: each.replace("_", " "),
                key="review.drop_reason",
            )
        source = ALL
        if len(sources) > 1:
            source = st.selectbox("Source", (ALL, *sources), key="review.source", width=160)
        search = st.text_input(
            "Search", key="review.search", type="search", placeholder="in queries and instructions"
        )
    return QueueFilter(
        run_id=run.id,
        verdict=verdict,
        reason=None if reason == ALL else reason,
        source=None if source == ALL else source,
        review=review,
        search=(search or "").strip() or None,
    )


def draw_counts(run: RunSummary) -> None:
    with open_store().read() as session:
        counts = count_reviews(session, run.id)
    summary = f"{sum(counts.values()):,} of {run.kept + run.dropped:,} groups reviewed"
    summary += "".join(f" · {action} {n:,}" for action, n in counts.items())
    if hidden := actions.count_hidden(run.id):
        summary += f" · {counted(hidden, 'group')} of the run hidden: you may judge them"
    st.caption(summary)


def draw_curators_part(run: RunSummary, wanted: QueueFilter) -> None:
    """Draw bulk review, validation of edits, and the visibility of verdicts."""
    draw_many(wanted)
    with open_store().read() as session:
        waiting = len(waiting_items(session, run.id))
        shown = session.get_one(Run, run.id).verdicts_shown
    with st.container(horizontal=True, vertical_alignment="center"):
        st.toggle(
            "Show verdicts of this run to annotators",
            shown,
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


@st.fragment(key="review-desk")
def draw_desk(desk: Desk) -> None:
    with failures_shown():
        draw_card(desk, key=f"review.card_{desk.wanted.run_id}")


@st.fragment(key="review-plain-desk")
def draw_plain_desk(desk: Desk) -> None:
    with failures_shown():
        show_notices()
        draw_plain(desk)


def draw_review(runs: list[RunSummary]) -> None:
    user = require_permission("review")

    def curates(run: RunSummary) -> bool:
        return user.rights.on_dataset("curate", run.dataset_id)

    run = choose(
        "Run",
        runs,
        key="review.run",
        parameter="run",
        ident=lambda run: run.id,
        name=lambda run: run_name(run) if curates(run) else f"run {run.id} · {run.dataset}",
    )
    with open_store().read() as session:
        blind = actions.is_blind(session, user, run.id)
    wanted = draw_filters(run, blind=blind)
    draw_counts(run)
    named = st.query_params.get("group", "")
    desk = Desk(wanted, int(named) if named.isdecimal() and len(named) < 10 else None)
    if st.session_state.get("review.plain"):
        draw_plain_desk(desk)
    else:
        draw_desk(desk)
        draw_lifeline()
    if curates(run):
        draw_curators_part(run, wanted)
    st.toggle(
        "Plain page",
        key="review.plain",
        help="The same groups without the card, for browsers in which the card does not work.",
    )


draw_heading("Review", "Approve a group, reject it with a reason, or edit it.")
with open_store().read() as session:
    found = [run for run in list_runs(session) if run.kept + run.dropped]
if found:
    with failures_shown():
        draw_review(found)
else:
    with failures_shown():
        is_curator = NEEDS["curate"].is_met(require_permission("review"))
        draw_empty(
            "Nothing to review yet.",
            "A curation run generates groups.",
            view="curate" if is_curator else "",
            link="Curate",
            command="inf curate --dataset NAME --provider offline",
        )
