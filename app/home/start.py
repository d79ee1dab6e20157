"""An empty store: load the demo, or import data; and how far the demo is."""

import streamlit as st

from app.access.identity import SessionUser
from app.access.permissions import NEEDS
from app.access.session_user import action, failures_shown, notify, signed_in_user
from app.kit.frame.links import go_to
from app.kit.menu import may_open
from app.kit.page import draw_command, draw_empty
from app.operations.overview import demo
from app.operations.overview.demo import Loading
from app.text.plain import plain

EVERY_SECONDS = 2.0


@action
def load_demo() -> None:
    """Start the demo for the current store. Raises Refused while it runs."""
    demo.load(signed_in_user())
    notify("The demo is being loaded. Its groups are there within a minute.")


@action
def dismiss_demo() -> None:
    """Forget the demo that failed: its message is gone for everybody, its log stays."""
    demo.dismiss(signed_in_user())


def draw_start(user: SessionUser) -> None:
    """The two ways to begin that the user may take."""
    if not may_open(user, "datasets"):
        draw_empty("Nothing here yet.", "Someone with the right curate imports a dataset first.")
        return
    with st.container(border=True, key="home-start"):
        st.markdown("**Nothing here yet.** Look around first, or begin with your own data.")
        with st.container(horizontal=True, vertical_alignment="center"):
            if NEEDS["server"].is_met(user):
                st.button(
                    "Load the demo",
                    type="primary",
                    icon=":material/play_arrow:",
                    key="home.load_demo",
                    on_click=load_demo,
                    help="602 groups that a language model wrote and others judged, a study, a "
                    "release and a training on this machine; no network. Takes about five minutes, "
                    "the first pages a few seconds.",
                )
            if st.button("Import your data", icon=":material/upload_file:", key="home.import"):
                go_to("datasets")
        st.caption("Your data: queries with the passages that answer them (CSV, JSONL, Parquet …).")
        draw_command(
            "inf demo\ninf datasets import NAME --pairs pairs.jsonl --passages passages.jsonl"
        )


def draw_loading(user: SessionUser, loading: Loading) -> None:
    """The demo's step, refreshed while it loads; the page reruns with every step.

    Of a demo that failed, the log line and what can be done show to who may use the server.
    """
    if loading.error:
        stopped = f"The demo stopped at {loading.step}"
        if not NEEDS["server"].is_met(user):
            st.warning(plain(f"{stopped}: an admin can go on with it."), icon=":material/error:")
            return
        st.error(plain(f"{stopped}: {loading.error}"), icon=":material/error:")
        with st.container(horizontal=True):
            st.button("Go on with the demo", key="home.resume_demo", on_click=load_demo)
            st.button("Dismiss", key="home.dismiss_demo", on_click=dismiss_demo)
        return
    st.fragment(_draw_live, run_every=EVERY_SECONDS)(loading.step)


def _draw_live(step_before: str) -> None:
    with failures_shown():
        now = demo.loading(signed_in_user())
        if now is None or now.error or now.step != step_before:
            st.rerun()
        st.info(plain(f"Loading the demo: {now.step}"), icon=":material/hourglass_top:")
