"""The Paper page: the paper's Figures 3a to 6 and Tables 1 to 6, ours next to what it prints."""

from functools import cache

import streamlit as st

from analysis.agreement.flagged import bar_rows
from analysis.figures.figures import human_model_bars
from analysis.found.texts import CoverageFound, DiversityFound
from analysis.paper.rows import trained_of
from app.access.identity import SessionUser
from app.access.session_user import signed_in_user
from app.kit.figure import draw_figure
from app.kit.frame.dataset import chosen_dataset
from app.kit.menu import may_open
from app.kit.page import draw_empty, draw_heading, draw_tabs
from app.operations import analyses, evaluations
from app.operations.overview.frame import PageDataset
from app.paper import actions, data, models

LEAD = (
    "The figures and tables of Zhuang et al., *Towards Better Instruction Following Retrieval "
    "Models* (2025). Rows say where they are from: published "
    "(printed in the paper) or ours (measured here). What nobody ran stays empty."
)


def draw_agreement(user: SessionUser, dataset: PageDataset) -> None:
    """Figure 4: agreement of people among themselves and of each model with them."""
    st.header("Figure 4: agreement of people and models", anchor=False)
    found = actions.read_agreement(user, dataset)
    if found is None:
        draw_empty(
            "No judgments yet.",
            "Figure 4 is the kappa of each model judge with the people of a study.",
            view="studies",
            link="Create a study",
        )
        return
    report, origin = found
    if report["simulated"]:
        st.warning(
            "The people of this study are simulated judges: a demonstration, not evidence.",
            icon=":material/smart_toy:",
        )
    figures = [report["human_human"], *report["human_model"].values()]
    if any(each["value"] is not None for each in figures):
        draw_figure(human_model_bars(report), bar_rows(report), origin, key="paper.figure_4")
    else:
        reasons = "; ".join(dict.fromkeys(str(each["reason"]) for each in figures))
        draw_empty(
            "No kappa with people yet.",
            f"Of {origin.version}: {reasons}.",
            view="agreement",
            link="Agreement",
        )
    st.caption(
        "The paper prints no values: on 100 samples, o3-mini has the highest mean kappa with "
        "three annotators, above FollowIR-7B, gpt-4o-mini and gpt-4o."
    )


draw_heading("Paper", LEAD)
dataset = chosen_dataset()
user = signed_in_user()
if dataset is None:
    draw_empty(
        "No dataset yet.",
        "The page fills with what a project measures: import pairs to begin.",
        view="datasets",
        link="Datasets",
        command="inf datasets import NAME --pairs FILE",
    )
    st.stop()
named = dataset  # there is one from here on
diversity = next(iter(analyses.stored(user, DiversityFound, named.id)), None)


@cache
def ours() -> models.Ours:
    """The scores of the two tabs that show any."""
    scores, checkpoints = evaluations.of_dataset(user, named.id, right="analyze")
    return models.Ours(scores, trained_of(checkpoints))


def draw_data() -> None:
    data.draw_table_one(diversity)


def draw_spread() -> None:
    data.draw_coverage(next(iter(analyses.stored(user, CoverageFound, named.id)), None))
    data.draw_diversity(diversity)


def draw_quality() -> None:
    if may_open(user, "agreement"):
        draw_agreement(user, named)
    data.draw_filtering(diversity)


def draw_models() -> None:
    models.draw_models("table_2", ours())
    models.draw_ranking(ours())


def draw_further() -> None:
    models.draw_models("table_5", ours())


def draw_ablations() -> None:
    models.draw_objectives(ours())
    models.draw_designs(ours())
    models.draw_backbone(ours())


tabs = {"Data": draw_data, "Coverage": draw_spread, "Quality": draw_quality}
if may_open(user, "evaluations"):
    tabs |= {"Models": draw_models, "Further models": draw_further, "Ablations": draw_ablations}
draw_tabs(tabs, key="paper.tab")
