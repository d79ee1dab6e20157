"""The entry script of every rerun: who is there, which pages they have, and the page itself."""

import streamlit as st

from app.access.openid import go_to_provider
from app.access.session_user import current_visitor, failures_shown, show_what_was_said
from app.kit.menu import pages
from app.server.shell import ICON, draw_sidebar, draw_signed_out, draw_style

st.set_page_config(page_title="InF Studio", page_icon=str(ICON), layout="wide")
draw_style()
with failures_shown():
    visitor = current_visitor()
    if visitor is None:
        draw_signed_out()
        go_to_provider()
    else:
        page = st.navigation(pages(visitor), expanded=True)
        draw_sidebar(visitor)
        show_what_was_said()
        page.run()
