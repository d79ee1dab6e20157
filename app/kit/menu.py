"""The pages and the permission each requires: other pages are neither listed nor reachable."""

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from app.access.identity import SessionUser
from app.access.language import say
from app.access.permissions import NEEDS

APP = Path(__file__).parents[1]


@dataclass(frozen=True)
class View:
    """A page: its name in the URL, file under `app/`, title, icon, section and permission."""

    name: str
    file: str
    title: str
    icon: str
    section: str
    permission: str


JUDGING = "Judging"  # the section of the annotators' pages
MENU = (
    View("home", "home/page.py", "Home", "home", "", "any"),
    View("datasets", "datasets/page.py", "Datasets", "database", "Curation", "curate"),
    View("curate", "curate/page.py", "Curate", "account_tree", "Curation", "curate"),
    View("groups", "groups/page.py", "Groups", "view_agenda", "Curation", "groups"),
    View("releases", "releases/page.py", "Releases", "inventory_2", "Curation", "export"),
    View("judge", "judge/page.py", "Judge", "gavel", JUDGING, "judge"),
    View("answers", "judge/answers_page.py", "My answers", "checklist", JUDGING, "judge"),
    View("studies", "studies/page.py", "Studies", "fact_check", JUDGING, "studies"),
    View(
        "adjudicate", "studies/adjudicate_page.py", "Adjudicate", "balance", JUDGING, "adjudicate"
    ),
    View("agreement", "agreement/page.py", "Agreement", "handshake", JUDGING, "studies"),
    View("validators", "agreement/validators_page.py", "Validators", "rule", JUDGING, "studies"),
    View(
        "diversity", "corpora/diversity_page.py", "Diversity", "diversity_3", "Analysis", "analyze"
    ),
    View("coverage", "corpora/coverage_page.py", "Coverage", "scatter_plot", "Analysis", "analyze"),
    View("overlaps", "corpora/overlaps_page.py", "Overlaps", "content_copy", "Analysis", "analyze"),
    View("train", "training/page.py", "Train", "model_training", "Models", "train"),
    View(
        "evaluations",
        "models/evaluations_page.py",
        "Evaluations",
        "leaderboard",
        "Models",
        "evaluate",
    ),
    View("try_it", "models/try_it_page.py", "Try it", "travel_explore", "Models", "try"),
    View("jobs", "jobs/page.py", "Jobs", "schedule", "System", "jobs"),
    View("members", "people/members_page.py", "Members", "badge", "System", "accounts"),
    View("accounts", "people/page.py", "Accounts", "group", "System", "accounts"),
    View("audit", "people/audit_page.py", "Audit log", "history", "System", "audit"),
)

IN_EVERY_LANGUAGE = ("judge", "answers")  # app/text/languages
FILES = {view.name: APP / view.file for view in MENU}


def views_for(user: SessionUser) -> list[View]:
    """The pages this user may open, in the menu's order."""
    return [view for view in MENU if may_open(user, view.name)]


def may_open(user: SessionUser, name: str) -> bool:
    """Whether the user may open this page; the home page is everybody's."""
    return name == "home" or NEEDS[permission_of(name)].is_met(user)


def permission_of(url_path: str) -> str:
    """The permission of the page with this path."""
    return next((view.permission for view in MENU if view.name == url_path), "any")


def view_file(name: str) -> Path:
    """The file of a page, as `st.page_link` and `st.switch_page` take it."""
    return FILES[name]


def pages(user: SessionUser) -> dict[str, list[st.Page]]:
    """The navigation for `st.navigation`, by section."""
    sections: dict[str, list[st.Page]] = {}
    for view in views_for(user):
        page = st.Page(
            FILES[view.name],
            title=say(f"{view.name}.title") if view.name in IN_EVERY_LANGUAGE else view.title,
            icon=f":material/{view.icon}:",
            url_path=view.name,
            default=view.name == "home",
        )
        section = say("menu.judging") if view.section == JUDGING else view.section
        sections.setdefault(section, []).append(page)
    return sections
