"""Try a recipe on a few chosen pairs: preview the prompts, then show the complete answers."""

import streamlit as st

from app.access.identity import SessionUser
from app.curate import actions
from app.groups.group import draw_group
from app.operations import datasets, groups, runs
from app.text.numbers import counted
from app.text.plain import plain
from app.text.remedies import in_pages
from app.text.texts import draw_text
from curation.recipe.prompt import messages
from curation.recipe.tasks import TEXT_LANGUAGE
from curation.rules.language import language_name
from db.corpus.browsing import PairView
from db.errors import InfError

MAX_PAIRS = 5
MAX_OPTIONS = 50


def draw_trial(user: SessionUser, dataset_id: int, *, can_start: bool) -> None:
    """Draw the choice of up to five pairs, a preview of the first prompt, and the button."""
    search = st.text_input("Search in queries", key="curate.trial_search", type="search")
    found = datasets.pairs(user, dataset_id, search=search or "", limit=MAX_OPTIONS)
    offered = {each.query_id: each for each in found.data}
    kept = [each for each in st.session_state.get("curate.trial_pairs", []) if each in offered]
    st.session_state["curate.trial_pairs"] = kept
    chosen = st.multiselect(
        "Pairs",
        list(offered),
        key="curate.trial_pairs",
        max_selections=MAX_PAIRS,
        format_func=lambda name: offered[name].query,
        placeholder=f"up to {MAX_PAIRS}",
    )
    if chosen and st.toggle("Preview the first prompt", key="curate.trial_prompts"):
        _draw_prompts(user, [offered[name] for name in chosen])
    st.button(
        f"Try it on {counted(len(chosen), 'pair')}",
        key="curate.try",
        on_click=actions.start,
        args=(True,),
        disabled=not chosen or not can_start,
        help="Starts a separate run with the settings above on these pairs only.",
    )


def _draw_prompts(user: SessionUser, pairs: list[PairView]) -> None:
    try:
        wanted = actions.wanted_run()
        recipe = runs.recipe_of_start(user, wanted)
    except InfError as error:
        st.error(in_pages(str(error)))
        return
    task, spec = next(iter(recipe.tasks.items()))
    stage, shape = recipe.stages[task], recipe.shape
    if wanted.provider == "offline":
        st.caption("Offline: prompts are not sent; rules replace them.")
    st.caption(plain(f"The first call of each group, to the model {stage.model}."))
    for pair in pairs:
        given = {name: f"‹{name}›" for name in spec.inputs}  # what a run draws or finds
        given |= {
            "document": pair.passage,
            shape.first.passage.column: pair.passage,
            shape.first.query.column: pair.query,
            "language": pair.language,
            TEXT_LANGUAGE: language_name(pair.query, pair.passage),
        }
        with st.container(border=True):
            for message in messages(stage.prompt, given):
                draw_text(message["content"], label=message["role"].capitalize(), whole=True)


def draw_results(user: SessionUser, run_id: int) -> None:
    """Draw every group of a small run in full, with prompts and answers."""
    for group in groups.details(user, run_id, limit=MAX_PAIRS):
        draw_group(group)
