"""Home's picture: the newest run's groups from pairs to a trained model, and what was measured."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple

import streamlit as st

from analysis.figures.dots import Dot, dots, known
from analysis.figures.flow import OTHER_REASONS, Stream, few_reasons, flow
from app.access.identity import SessionUser
from app.agreement.report import headline_dots
from app.kit.figure import Origin, draw_figure, draw_plot
from app.kit.frame.links import page_link
from app.kit.menu import may_open
from app.operations.overview.quality import Figures, OfModel, OfRun, OfStudy
from app.text.numbers import counted
from app.text.plain import plain
from curation.recipe.drop_reasons import reason_text
from db.outcome.overview import KeptGroups
from db.run.runs import Funnel

REVIEWS = {
    "approve": ("Approved", "on"),
    "edit": ("Edited", "on"),
    "reject": ("Rejected", "out"),
    "none": ("Not reviewed", "waits"),
}
AGREEMENT, FLIP = "Agreement", "Instruction flip"


def streams_of(found: Funnel, kept: Sequence[KeptGroups]) -> list[Stream]:
    """The run's groups from place to place; every one ends where it is now."""
    dropped = few_reasons({reason_text(name): n for name, n in found.dropped.items()})
    streams = [Stream("Pairs", "Kept", found.kept, "on")]
    streams += [Stream("Pairs", reason, count, "out") for reason, count in dropped.items()]
    streams.append(Stream("Pairs", "Not finished", found.waiting + found.in_work, "waits"))
    for review, (place, kind) in REVIEWS.items():
        here = [each for each in kept if each.review == review]
        streams.append(Stream("Kept", place, sum(each.groups for each in here), kind))
        released = sum(each.groups for each in here if each.is_released)
        streams.append(Stream(place, "Released", released, "on"))
    used = sum(each.groups for each in kept if each.is_used)
    return [*streams, Stream("Released", "Trained", used, "on")]


class Branch(NamedTuple):
    """Where a place of the picture leads: its link's text, the page, and the filter there."""

    label: str
    view: str
    parameters: Mapping[str, object]


def branches_of(found: Funnel, kept: Sequence[KeptGroups]) -> dict[str, Branch]:
    """The branches by place; also those of rare drop reasons, which the picture sums."""
    run, counts = {"run": found.run_id}, Counter[str]()
    for each in streams_of(found, kept):
        counts[each.end] += each.groups
    counts |= {reason_text(name): number for name, number in found.dropped.items()}
    leads: dict[str, tuple[str, Mapping[str, object]]] = {
        "Kept": ("groups", run | {"verdict": "kept"}),
        **{
            place: ("groups", run | {"verdict": "kept", "review": review})
            for review, (place, _) in REVIEWS.items()
        },
        "Released": ("groups", run | {"verdict": "kept", "status": "released"}),
        "Trained": ("groups", run | {"verdict": "kept", "status": "trained"}),
        "Not finished": ("groups", run | {"status": "unfinished"}),
        **{reason_text(name): ("groups", run | {"reason": name}) for name in found.dropped},
        OTHER_REASONS: ("groups", run | {"verdict": "dropped"}),
    }
    return {
        place: Branch(f"{place}: {counts[place]:,}", view, parameters)
        for place, (view, parameters) in leads.items()
        if counts[place]
    }


def dots_of(study: OfStudy | None, model: OfModel | None) -> dict[str, list[Dot]]:
    """Agreement of people and with models, and the flip of the base and the trained model."""
    found: dict[str, list[Dot]] = {AGREEMENT: [], FLIP: []}
    if study is not None and study.report is not None:
        found[AGREEMENT] = headline_dots(study.report).get("all", [])
    if model is not None:
        found[FLIP] = [
            Dot(
                f"Instruction flip, {name}",
                mean.value,
                known(mean.low, mean.high),
                f"{mean.queries:,} groups",
            )
            for name, mean in model.flips.items()
        ]
    return {group: each for group, each in found.items() if each}


def draw_story(user: SessionUser, found: Figures) -> None:
    """The path as one picture, and next to it the dots; nothing before a group is finished."""
    if found.of_run is None or found.of_run.run is None:
        return
    measured = dots_of(found.of_study, found.of_model)
    with st.container(key="side_by_side.home-story"):
        left, right = st.columns([2, 1]) if measured else (st.container(), None)
    with left:
        _draw_path(user, found.of_run)
    if right is not None:
        with right:
            st.markdown("**What was measured**")
            draw_plot(dots(measured, title="95 % intervals"), key="home.dots")


def _draw_path(user: SessionUser, found: OfRun) -> None:
    run, funnel = found.run, found.funnel
    assert run is not None and funnel is not None
    st.markdown(f"**From {counted(funnel.pairs, 'pair')} to a model** · {plain(run.name)}")
    found_branches = branches_of(funnel, found.kept)
    branches = {name: one for name, one in found_branches.items() if may_open(user, one.view)}
    streams = streams_of(funnel, found.kept)
    picture = flow(streams, list(branches))
    rows = [asdict(each) for each in streams if each.groups]
    version = f"{funnel.finished:,} finished groups of run {run.id}"
    draw_figure(picture, rows, Origin(version, None, f"inf runs show {run.id}"), key="home.flow")
    with st.container(horizontal=True, gap="small", key="home-branches"):  # boot.js clicks them
        for one in branches.values():
            page_link(one.view, plain(one.label), width="content", parameters=one.parameters)
