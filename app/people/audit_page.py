"""The Audit log page: sign-ins, role changes, reviews, exports and launches (admins only)."""

import streamlit as st

from app.access.session_user import signed_in_user
from app.kit.choice import draw_pages, page_offset
from app.kit.page import draw_empty, draw_heading, draw_table
from app.operations import people
from app.people.audit_words import in_words

ROWS = 50
COLUMNS = ("at", "actor", "name", "subject", "detail")

draw_heading("Audit log", "Who did what, newest first. Entries cannot be changed.")
user = signed_in_user()
chosen = st.multiselect("Actions", people.audit_names(user), key="audit.actions", placeholder="all")
found = people.audit(user, names=chosen, offset=page_offset("audit.page", ROWS), limit=ROWS)
if not found.data:
    draw_empty("No entries yet.", "Sign-ins, launches, reviews and exports appear here.")
else:
    draw_table(
        [row.as_json() | {"detail": in_words(row.data)} for row in found.data],
        height="content",
        column_order=COLUMNS,
        column_config={
            "at": st.column_config.DatetimeColumn("When", format="YYYY-MM-DD HH:mm:ss"),
            "actor": "Who",
            "name": "Action",
            "subject": "Subject",
            "detail": st.column_config.TextColumn("Detail", width="large"),
        },
    )
    draw_pages(found.total, key="audit.page", rows=ROWS)
