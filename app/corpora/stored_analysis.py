"""A stored analysis on its page: choose one, show its origin, start the next."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from analysis.found.texts import F, Stored
from analysis.request import EMBEDDED, REQUESTS, CorporaChosen
from app.access.session_user import action, notify, signed_in_user
from app.jobs_page.card import draw_last_failure, follow_job
from app.kit.analysis_command import analysis_command
from app.kit.choice import choose
from app.kit.fields import at_field, values_of_form
from app.kit.figure import Origin
from app.operations import analyses
from app.operations.acting import queued
from db.errors import BadInput


@action
def start(page: str) -> None:
    """Queue the analysis of the chosen corpora; a stored result is not computed again."""
    state = st.session_state
    with at_field(f"{page}.{{}}"):
        request = request_of_form(page)
        job_id = analyses.start(signed_in_user(), request, queued)
        names = [
            *request.datasets,
            *(f"run {run}" for run in request.runs),
            *(path.rsplit("/", 1)[-1] for path in request.published),
        ]
        what = f"The {page.replace('_', ' ')} of {', '.join(names)}"
        notify(f"{what} is queued as job {job_id}.")
        state[f"{page}.job"] = job_id
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


def draw_start_button(page: str, label: str) -> None:
    """The button that queues the analysis of the form."""
    st.button(
        label,
        type="primary",
        key=f"{page}.start",
        on_click=start,
        args=(page,),
    )


def draw_started(page: str) -> None:
    """The progress of the job that was started here; why the last one failed."""
    if f"{page}.job" in st.session_state:
        follow_job(st.session_state[f"{page}.job"], key=f"{page}.follow")
    kind, config = ("embed", {"what": page}) if page in EMBEDDED else ("project", {})
    draw_last_failure(kind, f"{page}.job", config)


def choose_analysis(
    page: str, found: Sequence[Stored[F]], name: Callable[[Stored[F]], str] | None = None
) -> Stored[F]:
    """The chosen stored analysis, by default the latest."""
    return choose(
        "Stored analysis",
        found,
        key=f"{page}.chosen",
        parameter="analysis",
        ident=lambda each: each.id,
        name=name or analysis_name,
    )


def analysis_name(found: Stored[Any]) -> str:
    """Its corpora and when it was computed."""
    names = ", ".join(corpus.corpus for corpus in found.result.corpora)
    against = ", ".join(corpus.corpus for corpus in getattr(found.result, "against", ()))
    return f"{names}{' against ' * bool(against)}{against} · {found.created_at:%Y-%m-%d %H:%M}"


def origin_of(found: Stored[Any]) -> Origin:
    """Its input hash, time and command."""
    runs = [corpus.run_id for corpus in found.result.corpora]
    return Origin(
        found.inputs_sha256[:12],
        found.created_at,
        analysis_command(found.kind, found.config, runs),
    )
