"""Actions of Diversity, Coverage and Overlaps: queue an analysis of corpora, keep files for it."""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import streamlit as st

from analysis.files.published import SUFFIXES
from analysis.request import REQUESTS, CorporaChosen
from app.access.session_user import action, notify, signed_in_user
from app.kit.fields import values_of_form
from app.operations import analyses
from app.operations.acting import queued
from db.errors import BadInput
from db.store.settings import home

UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Uploaded(Protocol):
    """An uploaded file."""

    name: str

    def getvalue(self) -> bytes: ...


def keep_uploads(files: Iterable[Uploaded]) -> list[str]:
    """Paths of the stored files, each in a folder named by its content hash.

    Raises BadInput for an unsupported file type.
    """
    return [str(_keep(file.name, file.getvalue())) for file in files]


def _keep(name: str, content: bytes) -> Path:
    safe = UNSAFE.sub("-", Path(name).name).lstrip(".-") or "texts"
    if Path(safe).suffix not in SUFFIXES:
        formats = ", ".join(sorted(SUFFIXES))
        raise BadInput(f"{name!r} is no corpus", f"upload {formats}", code="format_unknown")
    folder = home() / "corpora" / hashlib.sha256(content).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / safe
    if not path.exists():
        half = folder / f".{safe}.part"
        half.write_bytes(content)
        half.replace(path)
    return path


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
    uploaded = keep_uploads(state.get(f"{page}.files") or ())
    given["published"] = [*(state.get(f"{page}.releases") or ()), *uploaded]
    if not any(given.get(name) for name in ("datasets", "published", "runs")):
        raise BadInput("no corpus", "choose a dataset, a release or a file", code="corpus_missing")
    if page == "contamination":
        given["against"] = keep_uploads(state.get("contamination.against_files") or ())
        if not given["against"] and not given.get("against_datasets"):
            raise BadInput(
                "no evaluation set", "choose one or upload its files", code="evaluation_set_missing"
            )
    return REQUESTS[page].read(given)
