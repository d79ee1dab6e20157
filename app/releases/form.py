"""The form of a new release: its filter with live counts, its splits and a preview."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import streamlit as st

from app.access.identity import Actor
from app.access.session_user import action, notify, require_permission
from app.groups.run_label import run_name
from app.kit.choice import take_from_url
from app.kit.fields import at_field, draw_fields, values_of_form
from app.kit.page import draw_hand_off, draw_link, draw_table
from app.operations import releases
from app.operations.acting import queued
from app.operations.releases import ReleaseOptions
from app.releases.card import draw_card
from app.text.numbers import counted
from app.text.plain import plain
from app.text.remedies import in_pages
from app.text.reviews import reviews_words
from curation.release.request import ReleasePlan
from db.errors import InfError
from db.home import home
from db.release.choice import ChosenCount
from db.run.runs import RunSummary

# Where a field of the plan has its place; every other one is under More options.
FILTER, CHOICES = ("reviews", "sources", "study_id"), ("include_dropped", "balance")
SPLITS = ("name", "format", "split_by", "held_out", "held_out_by")
PLACED = (*FILTER, "languages", *CHOICES, "leave_out_contaminated", *SPLITS, "views")
ELSEWHERE = ("datasets", "runs", "out", "accept_licences")
DUPLICATES_NOTE = ", before duplicates between runs are left out"
REVIEWED = {"": "not reviewed", "approve": "approved", "edit": "edited", "reject": "rejected"}


def draw_release_form(runs: list[RunSummary], elsewhere: list[RunSummary], number: int) -> None:
    """Filter, splits and format of a release of one of the runs, and further ones.

    elsewhere: the runs of other datasets; number: what the release is called by default.
    """
    by_id = {run.id: run for run in runs}
    take_from_url("releases.run", "run", {str(number): number for number in by_id})
    run_id = st.selectbox(
        "Run", list(by_id), format_func=lambda n: run_name(by_id[n]), key="releases.run"
    )
    run = by_id[run_id] if run_id is not None else runs[0]
    chosen = [run, *_draw_further_runs({each.id: each for each in (*runs, *elsewhere)}, run)]
    ids, user = tuple(each.id for each in chosen), require_permission(releases.RIGHT)
    _draw_filter(ids, releases.options(user, ReleasePlan(runs=ids, out="release")))
    _draw_splits(number)
    with st.expander("More options"):
        _draw(more_options(ReleasePlan))
    wanted = plan_of_form(ids)
    _draw_counts(user, wanted)
    _draw_preview(user, wanted)


def _draw_further_runs(by_id: dict[int, RunSummary], run: RunSummary) -> list[RunSummary]:
    others = [each for each in by_id if each != run.id]
    if not others:
        return []
    further = st.multiselect(
        "Further runs",
        others,
        format_func=lambda n: run_name(by_id[n]),
        key="releases.further_runs",
        placeholder="none",
        help="One release of several runs and datasets. Of groups of the same pair, one run's are "
        "taken: the best review first, then the run that stands first here.",
    )
    return [by_id[each] for each in further if each in others]


def more_options(plan: type[ReleasePlan]) -> list[str]:
    """The fields that have no place of their own."""
    return [name for name in plan.model_fields if name not in (*PLACED, *ELSEWHERE)]


def _draw(names: Iterable[str], **more: Mapping[str, Any]) -> None:
    draw_fields(ReleasePlan, names, key=FORM, more=more)


def _draw_filter(runs: tuple[int, ...], options: ReleaseOptions) -> None:
    sources = options.sources
    studies: dict[int | None, str] = {None: "any or none"}
    studies |= {number: f"study {number} · {name}" for number, name in options.studies.items()}
    with st.container(horizontal=True):
        _draw(
            FILTER,
            reviews={"format_func": reviews_words},
            sources={"options": sources, "placeholder": "all", "disabled": len(sources) < 2},
            study_id={
                "options": list(studies),
                "format_func": studies.__getitem__,
                "disabled": len(runs) > 1,
            },
        )
    if options.languages:
        _draw(["languages"], languages={"options": options.languages, "placeholder": "all"})
    with st.container(horizontal=True, vertical_alignment="bottom"):
        balance = {"none": "all", "source": "as many as the rarest has"}
        _draw(
            CHOICES if len(sources) > 1 else CHOICES[:1],
            balance={"format_func": balance.__getitem__, "width": 240},
        )
        _draw(["leave_out_contaminated"])
        draw_link("overlaps", label="Compare", icon=":material/compare:")


def _draw_splits(number: int) -> None:
    narrow: dict[str, float] = {"width": 140}
    with st.container(horizontal=True):
        named = ReleasePlan(out="release", name=f"release-{number}")
        more = dict.fromkeys(SPLITS, narrow) | {
            "name": {"width": 240},
            "held_out": {"max_value": 0.9, "step": 0.05, **narrow},
        }
        draw_fields(ReleasePlan, SPLITS, key=FORM, now=named, more=more)
    _draw(["views"], views={"placeholder": "InF Studio and datasets only"})


def _draw_counts(user: Actor, wanted: ReleasePlan) -> None:
    found = releases.counts(user, wanted)
    total = sum(each.groups for each in found)
    if not total:
        st.warning("No groups match these filters. Remove one.", icon=":material/filter_alt:")
    else:
        st.markdown(
            f"**{counted(total, 'group')}** selected" + DUPLICATES_NOTE * (len(wanted.runs) > 1)
        )
        st.caption(plain(" · ".join(_breakdown(found))))
    for check in releases.checks(user, wanted):
        run_id, icon = check.run_id, ":material/content_copy:"
        if check.shared:
            st.warning(plain(f"Run {run_id}: {check.shared}"), icon=icon)
            draw_hand_off("curate", f"Shared parts of run {run_id}", run=run_id)
        else:
            st.info(f"Run {run_id} is not checked for shared parts.", icon=icon)
            draw_hand_off("curate", f"Check run {run_id}", run=run_id)
    st.button(
        "Create release",
        type="primary",
        key="releases.start",
        on_click=start,
        args=(wanted.runs,),
        disabled=total == 0,
    )


def _breakdown(found: list[ChosenCount]) -> list[str]:
    """Group counts by verdict, review and source; a kind with a single value is left out."""
    kinds = [Counter[str]() for _ in range(3)]
    for each in found:
        for kind, name in zip(
            kinds, (each.verdict, REVIEWED[each.review], each.source or "no source"), strict=True
        ):
            kind[name] += each.groups
    return [
        ", ".join(f"{name} {count:,}" for name, count in kind.most_common(6))
        for kind in kinds
        if len(kind) > 1 or kind is kinds[1]
    ]


def _draw_preview(user: Actor, wanted: ReleasePlan) -> None:
    if not st.toggle("Preview", key="releases.preview"):
        return
    try:
        found = releases.preview(user, wanted)
    except InfError as error:
        st.error(plain(in_pages(str(error))))
        return
    if found.conflicts:
        st.warning(
            plain(f"These licences conflict: {'; '.join(found.conflicts)}."),
            icon=":material/gavel:",
        )
        _draw(["accept_licences"])
    splits = ", ".join(f"{name} {count:,}" for name, count in found.splits.items())
    st.caption(plain(f"Splits: {splits}"))
    rows, card = st.tabs(["First rows", "Card"])
    with rows:
        draw_table(found.rows)
    with card:
        draw_card(found.card, key="preview")


FORM = "releases"


def plan_of_form(runs: tuple[int, ...]) -> ReleasePlan:
    """The release that the form describes, of these runs, in the folder of releases."""
    found = values_of_form(ReleasePlan, key=FORM)
    name = str(found.get("name", "")).strip()
    if len(runs) > 1:
        found.pop("study_id", None)
    found |= {"runs": runs, "name": name, "out": str(home() / "releases" / (name or "release"))}
    return ReleasePlan.read(found)


@action
@at_field(f"{FORM}.{{}}")
def start(runs: tuple[int, ...]) -> None:
    """Queue the export that the form describes, into the releases folder."""
    actor, wanted = require_permission(releases.RIGHT), plan_of_form(runs)
    wanted = wanted.model_copy(update={"out": releases.new_folder(actor, wanted.name)})
    job_id = releases.create(actor, wanted, queued)
    st.session_state["releases.job"] = job_id
    notify(f"Release {wanted.name} is queued as job {job_id}.")
    st.query_params.pop("release", None)
    st.session_state.pop("releases.chosen", None)
