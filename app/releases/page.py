"""The Releases page: export kept groups with a dataset card; compare and push releases."""

from collections.abc import Sequence
from functools import partial
from urllib.parse import quote

import streamlit as st

from analysis.files.csv_writer import csv_text
from app.access.session_user import require_permission
from app.jobs_page.card import draw_last_failure, follow_job
from app.kit.choice import choose
from app.kit.figure import draw_rows
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import (
    draw_command,
    draw_drawer,
    draw_empty,
    draw_hand_off,
    draw_heading,
    draw_labels,
    draw_table,
)
from app.operations import releases
from app.operations.releases import ReleaseRow, ReleaseShown
from app.releases.card import draw_card
from app.releases.form import draw_release_form
from app.releases.push import draw_push
from app.text.numbers import counted
from app.text.plain import plain
from app.text.reviews import reviews_words
from db.run.versions import versions_in

SHOWN = 500


def draw_release_diff(release: ReleaseRow, others: Sequence[ReleaseRow]) -> None:
    """Choose an earlier release and list the differences."""
    by_id = {
        each.id: each
        for each in others
        if each.id != release.id and each.dataset_id == release.dataset_id
    }
    if not by_id:
        return
    before = st.selectbox(
        "Changes since",
        [None, *by_id],
        format_func=lambda n: "choose a release" if n is None else f"release {n} · {by_id[n].name}",
        key="releases.before",
    )
    if before is None:
        return
    found = releases.diff(require_permission(releases.RIGHT), before, release.id)
    rows = found.data
    if not rows:
        st.caption("Both releases contain the same groups.")
        return
    changes = found.changes.items()
    st.caption(plain(", ".join(f"{change} {number:,}" for change, number in changes)))
    listed = [row.as_json() for row in rows]
    draw_rows(
        listed[:SHOWN],
        None,
        key="releases.diff",
        whole=lambda: csv_text(listed),
        column_config={"query_id": "Query", "change": "Change", "why": "Reason"},
    )
    if len(rows) > SHOWN:
        st.caption(f"First {SHOWN}. `inf releases diff {before} {release.id}` lists all.")


COLUMNS = (
    *("id", "name", "groups", "reviewed", "format", "offline"),
    *("created_at", "created_by", "pushed_to"),
)


def draw_release(release: ReleaseShown) -> None:
    versions = versions_in(release.filter)
    verdicts = f" · verdicts of {versions}" if versions else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_labels(offline=release.offline)
        st.caption(
            plain(
                f"{counted(release.groups or 0, 'group')} as {release.format} files "
                f"· made by {release.created_by} on {release.created_at:%Y-%m-%d at %H:%M} "
                f"· checksum (sha256) {release.content_sha256[:16]}{verdicts}"
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
    for each in release.pushes:
        tag = f" · tag {each.tag}" if each.tag else ""
        link = f"[{plain(each.repo)}]({quote(each.url, safe=':/')})"
        st.caption(f"On the Hub: {link}{plain(f'{tag} · {each.at:%Y-%m-%d %H:%M}')}")
    again = " again" if release.pushes else ""
    draw_push("release", release.id, f"Push it to the Hub{again}", key="releases")
    st.header("Dataset card", anchor=False)
    draw_card(release.card, key="made")
    draw_command(
        f'from datasets import load_dataset\ndata = load_dataset("{release.path}")',
        label="Load it in Python on this server",
    )


chosen = chosen_dataset()
user = require_permission(releases.RIGHT)
every = releases.runs(user)
made = releases.count(user)
found = [] if chosen is None else list(releases.list_all(user, chosen.name).data)
runs = [run for run in every if chosen is not None and run.dataset_id == chosen.id]
draw_heading("Releases", "Immutable exports of groups, each with a dataset card.")
if not runs and not found:
    draw_empty(
        "No kept groups yet.",
        "A release contains groups that a curation run kept.",
        view="curate",
        link="Curate",
        command="inf releases create DATASET --out DIR",
    )
if runs:
    is_new = not found or "run" in st.query_params
    elsewhere = [run for run in every if run not in runs]
    draw_drawer(
        "New release",
        partial(draw_release_form, runs, elsewhere, made + 1),
        key="releases.new",
        field="releases.run",
        icon=":material/add:",
        is_open=is_new,
    )
if "releases.job" in st.session_state:
    follow_job(st.session_state["releases.job"], key="releases.follow")
draw_last_failure("export", "releases.job")
if found:
    draw_table(
        [each.as_json() | {"reviewed": reviews_words(each.reviews)} for each in found],
        column_order=[
            each for each in COLUMNS if each != "offline" or any(one.offline for one in found)
        ],
        column_config={
            "id": st.column_config.NumberColumn("Release", width=70),
            "name": "Name",
            "groups": st.column_config.NumberColumn("Groups", width=80),
            "format": st.column_config.TextColumn("Format", width=80),
            "reviewed": st.column_config.TextColumn(
                "Reviews", help="Which groups it has, by their reviews."
            ),
            "offline": st.column_config.CheckboxColumn(
                "Offline", help="Whether rules, not a language model, wrote any of its texts."
            ),
            "created_at": st.column_config.DatetimeColumn("Created", format="YYYY-MM-DD HH:mm"),
            "created_by": "By",
            "pushed_to": st.column_config.ListColumn("Pushed to"),
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
    draw_release(releases.show(user, release.id))
    draw_release_diff(release, found)
