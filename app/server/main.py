"""The entry script of every rerun: the session user, their pages, and the current page."""

import streamlit as st

from app.access.language import language_now
from app.access.openid import go_to_provider
from app.access.scope import begin_page
from app.access.session_user import current_user, failures_shown, show_notices
from app.kit.menu import IN_EVERY_LANGUAGE, entry_of, pages, permission_of
from app.server.shell import ICON, draw_sidebar, draw_signed_out, draw_style, draw_tabs
from app.text.languages import DEFAULT

st.set_page_config(page_title="InF Studio", page_icon=str(ICON), layout="wide")
draw_style()
with failures_shown():
    user = current_user()
    if user is None:
        draw_signed_out()
        go_to_provider()
    else:
        page = st.navigation(pages(user))
        begin_page(user, permission_of(page.url_path))
        draw_sidebar(user)
        draw_tabs(entry_of(user, page.url_path), page.url_path)
        show_notices()
        is_translated = page.url_path in IN_EVERY_LANGUAGE
        with failures_shown(language_now() if is_translated else DEFAULT):
            page.run()
