"""The pages and the role each requires: other pages are neither listed nor reachable."""

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from app.access.identity import SessionUser

APP = Path(__file__).parents[1]


@dataclass(frozen=True)
class View:
    """A page: its name in the URL, file under `app/`, title, icon, section and required role."""

    name: str
    file: str
    title: str
    icon: str
    section: str
    role: str = "curator"


MENU = (
    View("home", "home/page.py", "Home", "home", "", "annotator"),
    View("datasets", "datasets/page.py", "Datasets", "database", "Curation"),
    View("curate", "curate/page.py", "Curate", "account_tree", "Curation"),
    View("groups", "groups/page.py", "Groups", "view_agenda", "Curation"),
    View("review", "groups/review_page.py", "Review", "rate_review", "Curation", "annotator"),
    View("releases", "releases/page.py", "Releases", "inventory_2", "Curation"),
    View("judge", "judge/page.py", "Judge", "gavel", "Judging", "annotator"),
    View("studies", "studies/page.py", "Studies", "fact_check", "Judging"),
    View("adjudicate", "studies/adjudicate_page.py", "Adjudicate", "balance", "Judging"),
    View("agreement", "agreement/page.py", "Agreement", "handshake", "Judging"),
    View("validators", "agreement/validators_page.py", "Validators", "rule", "Judging"),
    View("diversity", "corpora/diversity_page.py", "Diversity", "diversity_3", "Analysis"),
    View("coverage", "corpora/coverage_page.py", "Coverage", "scatter_plot", "Analysis"),
    View("overlaps", "corpora/overlaps_page.py", "Overlaps", "content_copy", "Analysis"),
    View("train", "training/page.py", "Train", "model_training", "Models"),
    View("evaluations", "models/evaluations_page.py", "Evaluations", "leaderboard", "Models"),
    View("try_it", "models/try_it_page.py", "Try it", "travel_explore", "Models"),
    View("jobs", "jobs/page.py", "Jobs", "schedule", "System"),
    View("accounts", "people/page.py", "Accounts", "group", "System", "admin"),
    View("audit", "people/audit_page.py", "Audit log", "history", "System", "admin"),
)

FILES = {view.name: APP / view.file for view in MENU}


def views_for(user: SessionUser) -> list[View]:
    """The pages this user may open, in the menu's order."""
    return [view for view in MENU if user.may(view.role)]


def view_file(name: str) -> Path:
    """The file of a page, as `st.page_link` and `st.switch_page` take it."""
    return FILES[name]


def pages(user: SessionUser) -> dict[str, list[st.Page]]:
    """The navigation for `st.navigation`, by section."""
    sections: dict[str, list[st.Page]] = {}
    for view in views_for(user):
        page = st.Page(
            FILES[view.name],
            title=view.title,
            icon=f":material/{view.icon}:",
            url_path=view.name,
            default=view.name == "home",
        )
        sections.setdefault(view.section, []).append(page)
    return sections
