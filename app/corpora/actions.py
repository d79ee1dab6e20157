"""Actions of Diversity, Coverage and Overlaps: queue an analysis of the chosen corpora."""

from typing import Any

import streamlit as st

from analysis.request import REQUESTS, DiversityStart
from app.access.session_user import action, notify, signed_in_user
from app.corpora.files import keep_uploads
from app.operations import analyses
from app.operations.acting import queued
from db.errors import BadInput
from db.requests import default_of


@action
def start(page: str) -> None:
    """Queue the analysis of the chosen corpora; a stored result is not computed again."""
    state = st.session_state
    request = REQUESTS[page].read({**config_of_form(page), **_settings(page)})
    names = [
        *request.datasets,
        *(f"run {run}" for run in request.runs),
        *(path.rsplit("/", 1)[-1] for path in request.published),
    ]
    what = f"The {page.replace('_', ' ')} of {', '.join(names)}"
    job_id = analyses.start(signed_in_user(), request, queued)
    state[f"{page}.job"] = job_id
    notify(f"{what} is queued as job {job_id}.")
    st.query_params.pop("analysis", None)
    state.pop(f"{page}.chosen", None)


def config_of_form(page: str) -> dict[str, Any]:
    """The corpora chosen in the form. Raises BadInput if there are none."""
    state = st.session_state
    config = {
        "datasets": list(state.get(f"{page}.datasets") or ()),
        "published": [
            *(state.get(f"{page}.releases") or ()),
            *keep_uploads(state.get(f"{page}.files") or ()),
        ],
        "groups": state.get(f"{page}.groups") or "kept",
    }
    if not config["datasets"] and not config["published"] and not state.get(f"{page}.runs"):
        raise BadInput("no corpus", "choose a dataset, a release or a file", code="corpus_missing")
    return config


def _settings(page: str) -> dict[str, Any]:
    """The other settings of the page's form."""
    state = st.session_state
    if page == "diversity":
        return {
            "sample": state.get("diversity.sample"),
            "repeats": state.get("diversity.repeats") or default_of(DiversityStart, "repeats"),
            "seed": state.get("diversity.seed") or 0,
        }
    if page == "coverage":
        names = ("model", "seed", "onto", "runs", "pairs")
        return {name: state.get(f"coverage.{name}") for name in names}
    if page == "near_duplicates":
        return {}
    against = {
        "against_datasets": list(state.get("contamination.against_datasets") or ()),
        "against": keep_uploads(state.get("contamination.against_files") or ()),
    }
    if not any(against.values()):
        raise BadInput(
            "no evaluation set", "choose one or upload its files", code="evaluation_set_missing"
        )
    return {**against, "paraphrase_threshold": state.get("contamination.threshold")}
