"""The form that chooses corpora: datasets, releases and files."""

import streamlit as st

from analysis.files.published import SUFFIXES
from analysis.files.shared import those_there
from analysis.request import REQUESTS
from app.kit.fields import draw_wrong
from app.kit.frame.dataset import chosen_dataset
from app.operations.analyses import CorporaOptions
from db.requests import default_of

GROUPS = {"kept": "kept", "all": "kept and dropped", "both": "filtered and unfiltered"}


def draw_corpora(page: str, options: CorporaOptions, *, is_preset: bool = True) -> None:
    """Render the widgets `<page>.datasets`, `.releases`, `.files` and `.groups`.

    The datasets are preset to the one of the frame, and again whenever that changes; without
    `is_preset` to none.
    """
    folders = {each.path: each for each in options.releases}
    there = those_there(folders)
    folders = {path: each for path, each in folders.items() if path in there}
    chosen, preset = chosen_dataset(), f"{page}.preset"
    if chosen is not None and st.session_state.get(preset) != chosen:
        st.session_state[preset] = chosen
        st.session_state[f"{page}.datasets"] = [chosen.name] if is_preset else []
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=300):
            st.multiselect("Datasets", options.datasets, key=f"{page}.datasets")
            draw_wrong(f"{page}.datasets")
        st.multiselect(
            "Releases",
            list(folders),
            format_func=lambda path: folders[path].name,
            key=f"{page}.releases",
            disabled=not folders,
            placeholder="none selected" if folders else "no release yet",
            width=240,
        )
        st.selectbox(
            "Which groups of the datasets",
            list(GROUPS),
            index=list(GROUPS).index(default_of(REQUESTS[page], "groups")),
            format_func=GROUPS.__getitem__,
            key=f"{page}.groups",
            width=210,
        )
    with st.expander(
        "Files: FollowIR, Promptriever, InstructIR, InF-IR, MAIR, BRIGHT or plain texts"
    ):
        draw_files(f"{page}.files", "Each file is a corpus in its published format.")


def draw_files(key: str, label: str) -> None:
    """Upload files in the published formats."""
    st.file_uploader(
        label,
        [suffix.removeprefix(".") for suffix in sorted(SUFFIXES)],
        accept_multiple_files=True,
        key=key,
    )
