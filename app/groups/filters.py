"""The filters of the workbench, kept in the URL: an address is a saved view.

Links from elsewhere (a drop reason, the map, a disputed item) are addresses with a filter. A widget
writes the address; an address that this page did not write itself sets the widgets.
"""

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.access.identity import SessionUser
from app.operations import groups
from curation.recipe.drop_reasons import reason_text
from db.review.queue import QueueFilter
from db.run.runs import STAGES, RunSummary

ALL = "all"
VIEWS: dict[str, dict[str, str]] = {
    "All": {},
    "Dropped, to review": {"verdict": "dropped", "review": "none"},
    "Kept, to review": {"verdict": "kept", "review": "none"},
    "Edited": {"review": "edit"},
    "Approved": {"review": "approve"},
    "Rejected": {"review": "reject"},
}
BLIND_VIEWS: dict[str, dict[str, str]] = {
    "All": {},
    "To review": {"review": "none"},
    "Edited": {"review": "edit"},
    "Approved": {"review": "approve"},
    "Rejected": {"review": "reject"},
}
REVIEWS = {
    "none": "not reviewed",
    "approve": "approved",
    "reject": "rejected",
    "edit": "edited",
}
STATUS = {"unfinished": "not finished", "released": "in a release", "trained": "trained a model"}
FILTERS = ("verdict", "reason", "stage", "review", "status", "source")
PARAMETERS = (*FILTERS, "search", "in", "groups")
WRITTEN = "groups.address"
MAX_IDS = 800  # proxies refuse addresses of more than 8 KB


def draw_filters(
    user: SessionUser, run: RunSummary, *, blind: bool, place: DeltaGenerator
) -> QueueFilter:
    """Draw the views of a run's groups, and the filters in `place`.

    Blind, none that reveals a verdict.
    """
    sources, reasons = groups.options(user, run.id, blind=blind)
    options = {
        "verdict": () if blind else ("kept", "dropped"),
        "reason": reasons,
        "stage": () if blind else STAGES,
        "review": tuple(REVIEWS),
        "status": () if blind else tuple(STATUS),
        "source": sources if len(sources) > 1 else (),
    }
    _read_address(options)
    views = BLIND_VIEWS if blind else VIEWS
    chosen = {name: st.session_state.get(f"groups.{name}", ALL) for name in options}
    active = {name: value for name, value in chosen.items() if value != ALL}
    with place:
        search, in_passages = _draw_widgets(options, len(active))
    with st.container(horizontal=True, gap="small"):
        for number, (name, sets) in enumerate(views.items()):
            st.button(
                name,
                key=f"groups.view-{number}",
                type="primary" if active == sets else "secondary",
                on_click=_set_view,
                args=(sets,),
            )
    ids = _ids()
    if ids is not None:
        st.button(
            f"Only {len(ids):,} linked groups",
            icon=":material/close:",
            key="groups.all_ids",
            help="Show the other groups, too.",
            on_click=_forget_ids,
        )

    def value(name: str) -> str | None:
        found = st.session_state.get(f"groups.{name}", ALL) if options[name] else ALL
        return None if found == ALL else str(found)

    return QueueFilter.read(
        {
            **{name: value(name) for name in options},
            "run_id": run.id,
            "search": (search or "").strip() or None,
            "in_passages": bool(in_passages and (search or "").strip()),
            "ids": ids,
        }
    )


def _draw_widgets(options: dict[str, Any], active: int) -> tuple[str | None, bool]:
    """Draw the search and the filters; returns the text and whether to search in passages."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        search = st.text_input(
            "Search",
            key="groups.search",
            type="search",
            placeholder="Search queries and instructions",
            on_change=_write_address,
        )
        with st.popover(f"Filters ({active})" if active else "Filters", icon=":material/tune:"):
            for name, values in options.items():
                if values:
                    st.selectbox(
                        "Drop reason" if name == "reason" else name.capitalize(),
                        (ALL, *values),
                        key=f"groups.{name}",
                        format_func=reason_text if name == "reason" else _label,
                        on_change=_write_address,
                    )
            in_passages = st.checkbox(
                "Search passages, too", key="groups.in_passages", on_change=_write_address
            )
    return search, in_passages


def _label(value: str) -> str:
    return (REVIEWS | STATUS).get(value, value.replace("_", " "))


def _read_address(options: dict[str, Any]) -> None:
    """Set the widgets from an address that this page did not write."""
    state, address = st.session_state, _address()
    if address != state.get(WRITTEN):
        for name in FILTERS:
            state[f"groups.{name}"] = address.get(name, ALL)
        state["groups.search"] = address.get("search", "")
        state["groups.in_passages"] = address.get("in") == "passages"
        state[WRITTEN] = address
    for name, values in options.items():
        if state.get(f"groups.{name}", ALL) not in (ALL, *values):
            state[f"groups.{name}"] = ALL


def _address() -> dict[str, str]:
    return {name: st.query_params[name] for name in PARAMETERS if name in st.query_params}


def _write_address() -> None:
    state = st.session_state
    found = {name: state.get(f"groups.{name}", ALL) for name in FILTERS}
    address = {name: value for name, value in found.items() if value and value != ALL}
    if (search := (state.get("groups.search") or "").strip()) != "":
        address["search"] = search
        if state.get("groups.in_passages"):
            address["in"] = "passages"
    if "groups" in st.query_params:
        address["groups"] = st.query_params["groups"]
    for name in PARAMETERS:
        if name in address:
            st.query_params[name] = address[name]
        elif name in st.query_params:
            del st.query_params[name]
    st.query_params.pop("group", None)  # it was opened under the filter before
    state[WRITTEN] = _address()


def _set_view(sets: dict[str, str]) -> None:
    for name in FILTERS[:5]:
        st.session_state[f"groups.{name}"] = sets.get(name, ALL)
    _write_address()


def _ids() -> tuple[int, ...] | None:
    """The groups that the address names, `?groups=1,2,3`; None if it names none."""
    named = st.query_params.get("groups")
    if named is None:
        return None
    found = [
        int(each) for each in named.split(",")[:MAX_IDS] if each.isdecimal() and len(each) < 10
    ]
    return tuple(found)


def _forget_ids() -> None:
    st.query_params.pop("groups", None)
    _write_address()
