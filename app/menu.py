"""Which pages there are and from which role on: a page not meant for a role is not reachable."""

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from app.identity import Visitor

VIEWS = Path(__file__).parent / "views"


@dataclass(frozen=True)
class View:
    """A page: its file in `views/`, title, icon, section, and the role it needs."""

    name: str
    title: str
    icon: str
    section: str
    role: str = "curator"


MENU = (
    View("home", "Home", "home", "", "annotator"),
    View("datasets", "Data sets", "database", "Curation"),
    View("curate", "Curate", "account_tree", "Curation"),
    View("groups", "Groups", "view_agenda", "Curation"),
    View("review", "Review", "rate_review", "Curation", "annotator"),
    View("releases", "Releases", "inventory_2", "Curation"),
    View("judge", "Judge", "gavel", "Judging", "annotator"),
    View("studies", "Studies", "fact_check", "Judging"),
    View("adjudicate", "Adjudicate", "balance", "Judging"),
    View("agreement", "Agreement", "handshake", "Judging"),
    View("validators", "Validators", "rule", "Judging"),
    View("diversity", "Diversity", "diversity_3", "Analysis"),
    View("coverage", "Coverage", "scatter_plot", "Analysis"),
    View("overlaps", "Overlaps", "content_copy", "Analysis"),
    View("train", "Train", "model_training", "Models"),
    View("evaluations", "Evaluations", "leaderboard", "Models"),
    View("try_it", "Try it", "travel_explore", "Models"),
    View("jobs", "Jobs", "schedule", "System"),
    View("accounts", "Accounts", "group", "System", "admin"),
    View("audit", "Audit log", "history", "System", "admin"),
)


def views_for(visitor: Visitor) -> list[View]:
    """The pages this visitor may open, in the menu's order."""
    return [view for view in MENU if visitor.may(view.role) and view_file(view.name).exists()]


def view_file(name: str) -> Path:
    """The file of a page, as `st.page_link` and `st.switch_page` take it."""
    return VIEWS / f"{name}.py"


def pages(visitor: Visitor) -> dict[str, list[st.Page]]:
    """The navigation for `st.navigation`, by section."""
    sections: dict[str, list[st.Page]] = {}
    for view in views_for(visitor):
        page = st.Page(
            view_file(view.name),
            title=view.title,
            icon=f":material/{view.icon}:",
            url_path=view.name,
            default=view.name == "home",
        )
        sections.setdefault(view.section, []).append(page)
    return sections
