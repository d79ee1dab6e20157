"""The report of a study, and the time and work of its people, or of all studies."""

from functools import partial

import streamlit as st

from analysis.files.csv_writer import csv_text
from analysis.files.document import Section, html_table, to_html, to_pdf
from app.access.session_user import signed_in_user
from app.kit.page import draw_drawer, draw_table, draw_tabs
from app.operations.judging import studies
from app.studies import actions
from app.text.plain import plain
from curation.judging.request import WorkReport
from db.study.studies import StudySummary
from db.study.work import MAX_ITEM_SECONDS


def draw_report(study: StudySummary) -> None:
    """The report, once it is asked for: as tabs, as a page to save or print, and as a PDF."""
    with st.expander("Report", icon=":material/summarize:"):
        st.caption(
            "Design, judges, agreement with intervals, validity, disagreements with examples, "
            "what was adjudicated, limits; of what is stored now."
        )
        st.button(
            "Write the report",
            key="studies.report",
            on_click=actions.write_report,
            args=(study.id,),
        )
        of, document = st.session_state.get(actions.REPORT, (None, None))
        if document is None or of != study.id:
            return
        with st.container(horizontal=True):
            for kind, write in (("html", to_html), ("pdf", to_pdf)):
                st.download_button(
                    f"Download {kind.upper()}",
                    partial(write, document),
                    file_name=f"study-{study.id}-report.{kind}",
                    key=f"studies.report_{kind}",
                    on_click="ignore",
                )
        st.caption(plain(document.lead))
        parts = {one.title: partial(_draw_section, one) for one in document.sections}
        draw_tabs(parts, key="studies.report_tabs")


def _draw_section(section: Section) -> None:
    for sentence in section.sentences:
        st.markdown(plain(sentence))
    if section.tables:
        st.html("\n".join(map(html_table, section.tables)))


def draw_work(study: StudySummary) -> None:
    """Active minutes, items, gold and qualification per person, with a download."""
    draw_drawer(
        "Time and work per person",
        partial(_draw_work, study),
        key="studies.work",
        field="studies.work_since",
        icon=":material/timer:",
    )


def _draw_work(study: StudySummary) -> None:
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
        on_click="ignore",
    )
