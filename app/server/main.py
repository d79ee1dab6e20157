"""The entry script of every rerun: the session user, their pages, and the current page."""

import streamlit as st

from app.access.language import language_now
from app.access.scope import begin_page, drawn_for
from app.access.session_user import current_user, failures_shown, show_notices
from app.kit.frame.dataset import draw_dataset_choice, find_dataset
from app.kit.frame.tour import draw_tour
from app.kit.menu import IN_EVERY_LANGUAGE, pages, permission_of
from app.server.document.index_page import TITLE
from app.server.shell import ICON, draw_sidebar, draw_signed_out, draw_tabs
from app.text.languages import DEFAULT

st.set_page_config(page_title=TITLE, page_icon=str(ICON), layout="wide")
with failures_shown():
    user = current_user()
    if user is None:
        draw_signed_out()
    else:
        with drawn_for(user):
            page = st.navigation(pages(user), position="hidden")
            name = page.url_path or "home"
            begin_page(user, permission_of(name))
            choice = find_dataset(user, name)
            draw_sidebar(user, name)
            draw_dataset_choice(choice)
            if not choice.refused:
                draw_tour(user, name)
            draw_tabs(user, name)
            show_notices()
            with failures_shown(language_now() if name in IN_EVERY_LANGUAGE else DEFAULT):
                if choice.refused:
                    st.title(page.title, anchor=False)
                    raise choice.refusal()
                page.run()
