"""The form that chooses corpora: datasets, releases and files."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from analysis.files.published import SUFFIXES
from db.tables import Release

GROUPS = {"kept": "kept groups", "all": "kept and dropped", "both": "filtered and unfiltered"}


def draw_corpora(
    page: str, names: Sequence[str], releases: Sequence[Release], *, default: int = 1
) -> None:
    """Render the widgets `<page>.datasets`, `.releases`, `.files` and `.groups`."""
    folders = {each.path: each for each in releases if Path(each.path).exists()}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.multiselect(
            "Datasets", names, default=names[:default], key=f"{page}.datasets", width=300
        )
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
            "Groups of datasets",
            list(GROUPS),
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
