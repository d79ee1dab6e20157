"""The Audit log page: sign-ins, role changes, reviews, exports and launches (admins only)."""

import streamlit as st

from app.kit.choice import draw_pages, page_offset
from app.kit.page import draw_empty, draw_heading, draw_table
from app.people.audit_words import in_words
from db.events import event_names, list_events
from db.store.store import open_store

ROWS = 50

draw_heading("Audit log", "Who did what, newest first. Entries cannot be changed.")
with open_store().read() as session:
    actions = event_names(session)
    chosen = st.multiselect("Actions", actions, key="audit.actions", placeholder="all")
    rows, total = list_events(
        session, names=chosen, offset=page_offset("audit.page", ROWS), limit=ROWS
    )
if not rows:
    draw_empty("No entries yet.", "Sign-ins, launches, reviews and exports appear here.")
else:
    draw_table(
        [
            {
                "When": row.at,
                "Who": row.actor,
                "Action": row.name,
                "Subject": row.subject,
                "Detail": in_words(row.data),
            }
            for row in rows
        ],
        height="content",
        column_config={
            "When": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss"),
            "Detail": st.column_config.TextColumn(width="large"),
        },
    )
    draw_pages(total, key="audit.page", rows=ROWS)
