"""The frame of every page: style, logo, and who is signed in."""

import json
from html import escape
from pathlib import Path

import streamlit as st

from app.access.identity import SessionUser
from app.access.language import language_now, say
from app.kit.card_files import card_css, card_js
from app.kit.menu import Entry, title_of, view_file
from app.text.languages import LANGUAGES

STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
LOGO = Path(__file__).parent / "logo.svg"
ICON = Path(__file__).parent / "icon.svg"


def draw_style() -> None:
    """The few CSS rules that the theme's settings cannot express."""
    st.html(f"<style>{STYLE}</style>")


FOLDING = st.components.v2.component(
    "inf_sidebar",
    js=(Path(__file__).parent / "sidebar.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def draw_sidebar(user: SessionUser) -> None:
    """The logo above the menu, the user below it; folded at first in a narrow window."""
    st.logo(str(LOGO), size="large")
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
        st.html(f'<p class="inf-user">{line}</p>')
        FOLDING(key="frame.folding")


def draw_tabs(entry: Entry | None, name: str) -> None:
    """The pages of the current menu entry as tabs, and entry and tab marked; name: the page's.

    Streamlit marks only the page that the menu lists, which is the entry's first, and tabs in grey.
    """
    if entry is None or len(entry.views) == 1:
        return
    link = f'[data-testid="stSidebarNavLink"][href$="/{entry.views[0].name}"]'
    tab = f'.st-key-frame-tabs [data-testid="stPageLink-NavLink"][href$="{name}"]'
    mark = "background: var(--inf-mark); box-shadow: inset"
    st.html(
        f"<style>{link}, {link}:hover {{ {mark} 3px 0 0 var(--inf-accent); }} "
        f"{link} span {{ font-weight: 600; }} "
        f"{tab}, {tab}:hover {{ {mark} 0 -2px 0 var(--inf-accent); }}</style>"
    )
    with st.container(horizontal=True, gap="small", key="frame-tabs"):
        for view in entry.views:
            st.page_link(view_file(view.name), label=title_of(view), width="content")


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
