"""Releases: export what was kept, with its data set card; the list, a card in preview."""

import streamlit as st

from app import releasing
from app.components.choice import choose
from app.components.jobs import follow_job
from app.components.page import draw_empty, draw_heading, draw_labels
from app.components.plain import plain
from app.components.run import run_name
from db.releases import REVIEWS, Choice, count_chosen, list_releases
from db.runs import RunSummary, list_runs
from db.store import open_store
from db.tables import Release


def draw_form(runs: list[RunSummary], number: int) -> None:
    by_id = {run.id: run for run in runs}
    run_id = st.selectbox(
        "Run", list(by_id), format_func=lambda n: run_name(by_id[n]), key="releases.run"
    )
    run = by_id[run_id] if run_id is not None else runs[0]
    first, second, third = st.columns([2, 1, 1])
    first.text_input("Name", f"release-{number}", key="releases.name")
    second.selectbox("Format", ("parquet", "jsonl"), key="releases.format")
    reviews = third.selectbox(
        "Groups", REVIEWS, key="releases.reviews", help="Which reviews a group needs to go out."
    )
    dropped = st.checkbox("Include dropped groups", key="releases.include_dropped")
    with open_store().read() as session:
        chosen = Choice(run.id, reviews or REVIEWS[0], dropped)
        groups = count_chosen(session, chosen)
    st.caption(plain(f"{groups:,} groups of data set {run.dataset} go out."))
    st.button(
        "Make the release",
        type="primary",
        key="releases.start",
        on_click=releasing.start,
        args=(run.id, run.dataset),
        disabled=groups == 0,
    )


def draw_release(release: Release) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_labels(offline=release.offline)
        st.caption(
            plain(
                f"{release.format} · {release.path} · sha256 {release.content_sha256[:16]} "
                f"· by {release.created_by} · {release.created_at:%Y-%m-%d %H:%M}"
            )
        )
    with st.container(border=True):
        st.markdown("**Data set card**")
        st.code(release.card, language="markdown", height=420, wrap_lines=True)
    st.code(
        f'from datasets import load_dataset\ndata = load_dataset("{release.path}")',
        language="python",
    )


with open_store().read() as session:
    runs = [run for run in list_runs(session) if run.kept]
    found = list_releases(session)
draw_heading("Releases", "Immutable, exported sets of groups, each with its data set card.")
if not runs and not found:
    draw_empty(
        "No kept groups yet.",
        "A release is made of the groups that a curation run kept.",
        view="curate",
        link="Curate",
        command="inf export --dataset NAME --out DIR --format parquet",
    )
if runs:
    with st.expander("New release", icon=":material/add:", expanded=not found):
        draw_form(runs, len(found) + 1)
if "releases.job" in st.session_state:
    follow_job(st.session_state["releases.job"], key="releases.follow")
if found:
    st.dataframe(
        [
            {
                "Release": each.id,
                "Name": each.name,
                "Groups": each.counts.get("groups"),
                "Reviews": each.filter.get("reviews"),
                "Format": each.format,
                "Offline": each.offline,
                "Made": each.created_at,
            }
            for each in found
        ],
        hide_index=True,
        column_config={"Made": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm")},
    )
    chosen = choose(
        "Release",
        found,
        key="releases.chosen",
        parameter="release",
        ident=lambda each: each.id,
        name=lambda each: f"release {each.id} · {each.name}",
    )
    draw_release(chosen)
