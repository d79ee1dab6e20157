"""The frame of every page: menu, tabs, and who is signed in."""

import json
from html import escape
from pathlib import Path

import streamlit as st

from app.access.identity import SessionUser
from app.access.language import language_now, say
from app.access.permissions import NEEDS
from app.kit.card_files import card_css, card_js
from app.kit.frame.links import page_link
from app.kit.menu import Entry, entries_for, entry_of, title_of
from app.text.languages import LANGUAGES

LOGO = Path(__file__).parent / "logo.svg"
ICON = Path(__file__).parent / "icon.svg"


# goto.js opens the box; who may only judge has no more pages than the menu
GOTO = '<button type="button" class="inf-goto-open">Go to …<kbd>Ctrl K</kbd></button>'
FOLDING = st.components.v2.component(
    "inf_sidebar",
    js=(Path(__file__).parent / "sidebar.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def draw_sidebar(user: SessionUser, page: str) -> None:
    """The logo above the menu, the user below it; folded at first in a narrow window.

    The menu's entries open their first page; the entry and the tab of this page are marked.
    """
    st.logo(str(LOGO), size="large")
    current = entry_of(user, page)
    name = escape(user.name)
    if user.account_id is None:
        line = f"{name} · {escape(say('menu.no_accounts'))}"
    else:
        role = escape(say(f"form.role_{user.role}"))
        line = (
            f'{name} · {role} · <a href="/account" target="_self">{escape(say("menu.account"))}</a>'
            f' · <a href="/sign-out" target="_self">{escape(say("menu.sign_out"))}</a>'
        )
    with st.sidebar:
        with st.container(key="frame-menu", gap=None):
            for entry in entries_for(user):
                with st.container(key=f"frame-entry-{entry.views[0].name}"):
                    page_link(entry.views[0].name, entry.label, icon=f":material/{entry.icon}:")
        goto = GOTO if NEEDS["jobs"].is_met(user) else ""
        st.html(f'{goto}<p class="inf-user">{line}</p>{_mark(current, page)}')
        first = current.views[0].name if current else ""
        FOLDING(key="frame.folding", data={"entry": first, "page": page})


def _mark(entry: Entry | None, page: str) -> str:
    """The style that marks the entry and the tab of this page: Streamlit marks in grey."""
    if entry is None:
        return ""
    link, tab = (
        f".st-key-frame-{one} a" for one in (f"entry-{entry.views[0].name}", f"tab-{page}")
    )
    mark = "background: var(--inf-mark); box-shadow: inset"
    return (
        f"<style>{link}, {link}:hover {{ {mark} 3px 0 0 var(--inf-accent); }} "
        f"{link} p {{ font-weight: 600; }} "
        f"{tab} p {{ font-weight: 600; }} "
        f"{tab}, {tab}:hover {{ {mark} 0 -2px 0 var(--inf-accent); }}</style>"
    )


def draw_tabs(user: SessionUser, page: str) -> None:
    """The pages of the current menu entry as tabs."""
    entry = entry_of(user, page)
    if entry is None or len(entry.views) == 1:
        st.empty()  # in the place of the tabs of the page before, which else stood until the end
        return
    with st.container(horizontal=True, gap="small", key="frame-tabs"):
        for view in entry.views:
            with st.container(key=f"frame-tab-{view.name}", width="content"):
                page_link(view.name, title_of(view), width="content")


SIGN_IN = st.components.v2.component(
    "inf_sign_in",
    js=f"const CATALOGUE = {json.dumps({c: dict(one.texts) for c, one in LANGUAGES.items()})};\n"
    + card_js("kit/sign_in.js")
    + """
export default function ({ parentElement, data }) {
  if (parentElement.querySelector("form")) return;
  parentElement.appendChild(signInForm({ ...CATALOGUE[data.language], signed_out: "" }, () => {}));
}
""",
    css=card_css("kit/sign_in.css"),
)


def draw_signed_out() -> None:
    """The page without a valid cookie: the form on the spot, which comes back to this address."""
    st.html(
        f'<p>{escape(say("signed_out"))} <a href="/sign-in" target="_self">'
        f"{escape(say('form.sign_in'))}</a></p>"
    )
    SIGN_IN(key="session.sign_in", data={"language": language_now()})
