"""Actions of Diversity, Coverage and Overlaps: queue an analysis of corpora, keep files for it."""

import streamlit as st

from analysis.request import REQUESTS, CorporaChosen
from app.access.session_user import action, notify, signed_in_user
from app.kit.fields import values_of_form
from app.operations import analyses
from app.operations.acting import queued
from db.errors import BadInput


@action
def start(page: str) -> None:
    """Queue the analysis of the chosen corpora; a stored result is not computed again."""
    state = st.session_state
    request = request_of_form(page)
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


def request_of_form(page: str) -> CorporaChosen:
    """The analysis that the page's form describes. Raises BadInput."""
    state, given = st.session_state, values_of_form(REQUESTS[page], key=page)
    given["published"] = [*(state.get(f"{page}.releases") or ()), *_kept(f"{page}.files")]
    if not any(given.get(name) for name in ("datasets", "published", "runs")):
        raise BadInput("no corpus", "choose a dataset, a release or a file", code="corpus_missing")
    if page == "contamination":
        given["against"] = _kept("contamination.against_files")
        if not given["against"] and not given.get("against_datasets"):
            raise BadInput(
                "no evaluation set", "choose one or upload its files", code="evaluation_set_missing"
            )
    return REQUESTS[page].read(given)


def _kept(key: str) -> list[str]:
    """Paths of the files that were uploaded in widget `key`."""
    files, user = st.session_state.get(key) or (), signed_in_user()
    return [analyses.keep_file(user, file.name, file.getvalue()) for file in files]
