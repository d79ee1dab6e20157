"""The time and work report of a study, or of all: a table and its CSV, by person."""

import streamlit as st

from analysis.files.csv_writer import csv_text
from app.access.session_user import signed_in_user
from app.kit.page import draw_table
from app.operations.judging import studies
from curation.judging.request import WorkReport
from db.study.studies import StudySummary
from db.study.work import MAX_ITEM_SECONDS


def draw_work(study: StudySummary) -> None:
    """Active minutes, items, gold and qualification per person, with a download."""
    with st.expander("Time and work per person", icon=":material/timer:"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            everywhere = st.toggle("All studies", key="studies.work_all")
            since = st.date_input("From", None, key="studies.work_since", width=160)
            until = st.date_input("To", None, key="studies.work_until", width=160)
        wanted = WorkReport(study_id=None if everywhere else study.id, since=since, until=until)
        rows = studies.work(signed_in_user(), wanted).data
        st.caption(
            "Active minutes: from an item's display to its answer or skip, at most "
            f"{MAX_ITEM_SECONDS / 60:g} min per item, overlapping times counted once. Days are UTC."
        )
        if not rows:
            st.caption("No work in this time.")
            return
        table = [each.as_json() for each in rows]
        draw_table(table, key="studies.work_table")
        st.download_button(
            "Download as CSV",
            csv_text(table),
            file_name="work.csv" if everywhere else f"study-{study.id}-work.csv",
            mime="text/csv",
            key="studies.work_csv",
        )
