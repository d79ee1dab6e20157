"""What the annotators' pages draw for their language: the declaration, and links to others."""

from html import escape
from urllib.parse import quote

import streamlit as st

from app.access.language import language_now
from app.text.languages import LANGUAGES

PAGE_LANGUAGE = st.components.v2.component(
    "inf_page_language",
    js="""
export default function ({ data }) {
  document.documentElement.lang = data.language;
  return () => (document.documentElement.lang = "en");
}
""",
)


def draw_page_language() -> None:
    """Declare the page's language to the browser and its screen reader; once per page."""
    PAGE_LANGUAGE(key="page.language", data={"language": language_now()})


def draw_language_choice(path: str) -> None:
    """Links to this page in every other language."""
    wanted = path + (f"?study={st.query_params['study']}" if "study" in st.query_params else "")
    links = [
        f'<a href="/language/{code}?next={quote(wanted, safe="")}" target="_self" lang="{code}" '
        f'hreflang="{code}">{escape(language.name)}</a>'
        for code, language in LANGUAGES.items()
        if code != language_now()
    ]
    st.html(f'<p class="inf-languages">{" · ".join(links)}</p>', width="content")
