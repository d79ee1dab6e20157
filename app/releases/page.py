"""The Releases page: export kept groups with a dataset card; compare and push releases."""

import streamlit as st

from app.jobs.card import follow_job
from app.kit.choice import choose
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import draw_empty, draw_hand_off, draw_heading, draw_labels, draw_table
from app.releases.diff import draw_release_diff
from app.releases.form import draw_release_form
from app.releases.push import draw_pushes
from app.text.numbers import counted
from app.text.plain import plain
from app.text.reviews import reviews_words
from db.release.releases import list_releases, pushes
from db.run.runs import list_runs
from db.store.store import open_store
from db.tables import Job, Release


def repositories(pushed: list[Job]) -> str:
    return ", ".join(dict.fromkeys(str((job.result or {}).get("repo")) for job in pushed))


def draw_release(release: Release, pushed: list[Job]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_labels(offline=release.offline)
        st.caption(
            plain(
                f"{counted(release.counts.get('groups', 0), 'group')} as {release.format} files "
                f"· made by {release.created_by} on {release.created_at:%Y-%m-%d at %H:%M} "
                f"· checksum (sha256) {release.content_sha256[:16]}"
            )
        )
    with st.container(horizontal=True, vertical_alignment="center", key="releases-next"):
        st.link_button(
            "Download as zip",
            f"/download/release/{release.id}",
            icon=":material/download:",
            help="All files of the release, after a check that the folder is as exported.",
        )
        draw_hand_off("train", "Train on it", release=release.id)
    draw_pushes(release, pushed)
    with st.container(border=True):
        st.markdown("**Dataset card**")
        st.code(release.card, language="markdown", height=420, wrap_lines=True)
    st.caption("To load it in Python on this server:")
    st.code(
        f'from datasets import load_dataset\ndata = load_dataset("{release.path}")',
        language="python",
    )


chosen = chosen_dataset()
with open_store().read() as session:
    every = [run for run in list_runs(session) if run.kept]
    made = len(list_releases(session))
    found = [] if chosen is None else list_releases(session, chosen.id)
    arrived = pushes(session)
runs = [run for run in every if chosen is not None and run.dataset_id == chosen.id]
draw_heading("Releases", "Immutable exports of groups, each with a dataset card.")
if not runs and not found:
    draw_empty(
        "No kept groups yet.",
        "A release contains groups that a curation run kept.",
        view="curate",
        link="Curate",
        command="inf export --dataset NAME --out DIR --format parquet",
    )
if runs:
    is_new = not found or "run" in st.query_params
    with st.expander("New release", icon=":material/add:", expanded=is_new):
        draw_release_form(runs, [run for run in every if run not in runs], made + 1)
if "releases.job" in st.session_state:
    follow_job(st.session_state["releases.job"], key="releases.follow")
if found:
    draw_table(
        [
            {
                "Release": each.id,
                "Name": each.name,
                "Groups": each.counts.get("groups"),
                "Reviews": reviews_words(str(each.filter.get("reviews", ""))),
                "Format": each.format,
                "Written by": "rules (offline)" if each.offline else "language model",
                "Created": each.created_at,
                "By": each.created_by,
                "Pushed to": repositories(arrived.get(each.id, [])),
            }
            for each in found
        ],
        column_config={
            "Release": st.column_config.NumberColumn(width=70),
            "Groups": st.column_config.NumberColumn(width=80),
            "Format": st.column_config.TextColumn(width=80),
            "Reviews": st.column_config.TextColumn(help="Which groups it has, by their reviews."),
            "Written by": st.column_config.TextColumn(
                help="What wrote instructions and hard negatives."
            ),
            "Created": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
        },
    )
    release = choose(
        "Release",
        found,
        key="releases.chosen",
        parameter="release",
        ident=lambda each: each.id,
        name=lambda each: f"release {each.id} · {each.name}",
    )
    draw_release(release, arrived.get(release.id, []))
    draw_release_diff(release, found)
