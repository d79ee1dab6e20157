"""Home page: how good the data and the model are, what runs, what waits, and the next step."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from app.access.identity import SessionUser
from app.access.language import language_of_items, say
from app.access.permissions import NEEDS
from app.access.scope import begin_page
from app.access.session_user import current_user
from app.home.example import draw_example
from app.home.lights import read_quality
from app.home.path import Step, next_step, path_of
from app.home.quality import Level, Light
from app.home.start import draw_loading, draw_start
from app.home.story import draw_story
from app.home.waiting import (
    WAITING,
    Other,
    button_of,
    draw_agreement,
    draw_invitation,
    draw_others,
    draw_own_items,
    others_of,
    others_of_annotator,
)
from app.jobs_page.card import follow_job
from app.kit.frame.dataset import chosen_dataset
from app.kit.frame.links import go_to, page_link
from app.kit.menu import may_open
from app.kit.page import draw_command, draw_drawer, draw_heading, draw_labels, draw_link
from app.models.try_it import draw_swap
from app.operations import try_it
from app.operations.overview import demo
from app.operations.overview.home import OwnItems, SeenStudies, overview, own_items
from app.operations.overview.quality import OfModel
from app.text.numbers import counted
from app.text.plain import plain
from db.outcome.overview import Overview

LIGHTS: dict[Level, tuple[str, str, str]] = {
    "good": ("good", ":material/check_circle:", "green"),
    "look": ("look", ":material/visibility:", "orange"),
    "problem": ("problem", ":material/error:", "red"),
    "unknown": ("not known", ":material/radio_button_unchecked:", "gray"),
}


STEP_WORDS: dict[Level, str] = {"good": "done", "unknown": "to do"}


def draw_light(level: Level, *, of_step: bool = False) -> None:
    """The light as a label: an icon and a word, not a colour alone."""
    word, icon, colour = LIGHTS[level]
    if of_step:
        word = STEP_WORDS.get(level, word)
    st.badge(word, icon=icon, color=colour)  # type: ignore[arg-type]


def draw_lights(lights: Sequence[Light]) -> None:
    """A card per figure, three in a row where the page is wide enough."""
    user = current_user()
    with st.container(horizontal=True, gap="small", key="home-lights"):
        for light in lights:
            with st.container(border=True, key=f"home-light-{lights.index(light)}"):
                with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                    if user is not None and may_open(user, light.view):
                        page_link(
                            light.view,
                            plain(light.label),
                            parameters=light.parameters,
                            width="content",
                        )
                    else:
                        st.markdown(plain(light.label), width="content")
                    draw_light(light.level)
                st.metric(light.label, plain(light.value), label_visibility="collapsed")
                st.caption(plain(light.why))


def counts_text(found: Overview, dataset: str) -> str:
    """One line of what the dataset holds."""
    return " · ".join(
        (
            f"{counted(found.pairs, 'pair')} in {dataset}",
            f"{found.kept:,} of {counted(found.kept + found.dropped, 'finished group')} kept",
            f"{counted(found.judgments, 'judgment')} by people and models",
            f"{counted(found.reviews, 'group')} reviewed",
            counted(found.releases, "release"),
            counted(found.checkpoints, "checkpoint"),
        )
    )


def leads_to(step: Step | None, own: OwnItems | None) -> bool:
    """Whether the next step is to judge the user's own items."""
    if step is None or own is None or not own.left:
        return False
    return (step.view, step.parameters.get("study")) == ("judge", str(own.study_id))


def draw_next(
    step: Step | None, user: SessionUser, own: OwnItems | None, others: Sequence[Other]
) -> None:
    """What waits for the user: one thing with its one button, and the command that does the same;
    links to the others.

    own: the items that the step leads to, which are described here.
    """
    st.header(WAITING, anchor=False)
    with st.container(border=True, key="home-step"):
        if step is None:
            view, button, parameters = "evaluations", "See the evaluations", {}
            then = " See how the models perform." if may_open(user, view) else ""
            st.markdown(f"**All steps are done.**{then}")
        else:
            st.markdown(f"**Next: {plain(step.title)}** — {plain(step.state)}")
            view, button, parameters = step.view, step.button, dict(step.parameters)
        if own is not None:
            draw_invitation(own)
            button = button_of(own)
        if may_open(user, view) and st.button(button, type="primary", key="home.next"):
            go_to(view, parameters)
        if step is not None and step.command:
            draw_command(step.command)
        draw_others(others)


def draw_step(step: Step) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width=90):
            draw_light(step.level, of_step=True)
        with st.container(width=110):
            draw_link(step.view, label=step.title)
        st.caption(plain(step.state), width="stretch")


def draw_steps(steps: Sequence[Step]) -> None:
    for each in steps:
        draw_step(each)


def draw_newest_model(user: SessionUser, model: OfModel | None) -> None:
    """A held-out query of the dataset's newest model; of another dataset's nothing."""
    if model is None or model.checkpoint is None or not may_open(user, "try_it"):
        return
    examples = try_it.examples(user, language=language_of_items())
    if examples.model == model.checkpoint.path:
        draw_swap(examples, key="home-swap")


user = current_user()
assert user is not None
seen = SeenStudies(user)
if not NEEDS["jobs"].is_met(user):
    draw_heading(say("home.welcome", name=user.name), say("home.lead"))
    draw_link("judge", label=say("home.to_items"), icon=":material/gavel:")
    draw_own_items(own_items(user, seen, language_of_items()))
    if others := others_of_annotator(user, seen):
        st.header(say("home.waiting"), anchor=False)
        draw_others(others)
    st.stop()

begin_page(user, "jobs")  # "any" is met by one right, and would then count everything
heading = draw_heading(
    "Home",
    "From real query and passage pairs to trustworthy data and a model that follows instructions.",
)
chosen = chosen_dataset()
found, running = overview(user, None if chosen is None else chosen.id)
with heading:
    draw_labels(offline=found.offline_runs > 0, simulated=found.simulated_judgments > 0)
loading = demo.loading(user)
if loading is not None:
    draw_loading(user, loading)
if chosen is None:
    if loading is None or loading.error:
        draw_start(user)
    draw_example(user, is_open=True)
    st.stop()
line = read_quality(user, chosen, seen)
st.caption(plain(counts_text(found, chosen.name)))
steps = path_of(found, line.quality, line.judged, may_open=partial(may_open, user))
step, own = next_step(steps), own_items(user, seen, language_of_items())
is_next = leads_to(step, own)
draw_story(user, line.figures)
others = others_of(user, seen, None if is_next else own, found)
draw_next(step, user, own if is_next else None, others)
for job_id in running:
    follow_job(job_id, key=f"home.job-{job_id}")
draw_agreement(own)
draw_newest_model(user, line.figures.of_model)
draw_lights(line.quality.lights)
draw_example(user, is_open=not found.reviews and not found.checkpoints)
draw_drawer("All steps", partial(draw_steps, steps), key="home.steps", icon=":material/checklist:")
