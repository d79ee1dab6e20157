"""The pages and the permission each requires: others are not listed, and name the right."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from app.access.identity import SessionUser
from app.access.language import language_now, say
from app.access.permissions import NEEDS
from app.access.session_user import failures_shown, require_permission

APP = Path(__file__).parents[1]


@dataclass(frozen=True)
class View:
    """A page: its name in the URL, file under `app/`, title, icon, menu section and permission."""

    name: str
    file: str
    title: str
    icon: str
    section: str
    permission: str


@dataclass(frozen=True)
class Entry:
    """An entry of the menu and the pages behind its tabs; the entry opens the first of them."""

    label: str
    icon: str
    views: tuple[View, ...]


DATA, GROUPS, PEOPLE, INSIGHT = "Data", "Groups", "People", "Insight"
MODELS, SETTINGS = "Models", "Settings"
ICONS = {
    DATA: "database",
    GROUPS: "view_agenda",
    PEOPLE: "groups",
    INSIGHT: "insights",
    MODELS: "model_training",
    SETTINGS: "settings",
}
MENU = (
    View("home", "home/page.py", "Home", "home", "Home", "any"),
    View("datasets", "datasets/page.py", "Datasets", "database", DATA, "curate"),
    View("recipes", "recipes/page.py", "Recipes", "menu_book", DATA, "curate"),
    View("curate", "curate/page.py", "Curate", "account_tree", DATA, "curate"),
    View("releases", "releases/page.py", "Releases", "inventory_2", DATA, "export"),
    View("groups", "groups/page.py", "Groups", "view_agenda", GROUPS, "groups"),
    View("studies", "studies/page.py", "Studies", "fact_check", PEOPLE, "studies"),
    View("judge", "judge/page.py", "Judge", "gavel", PEOPLE, "judge"),
    View("answers", "judge/answers_page.py", "My answers", "checklist", PEOPLE, "judge"),
    View("adjudicate", "studies/adjudicate_page.py", "Adjudicate", "balance", PEOPLE, "adjudicate"),
    View("agreement", "agreement/page.py", "Agreement", "handshake", INSIGHT, "studies"),
    View("validators", "agreement/validators_page.py", "Validators", "rule", INSIGHT, "studies"),
    View("coverage", "corpora/coverage_page.py", "Coverage", "scatter_plot", INSIGHT, "analyze"),
    View("diversity", "corpora/diversity_page.py", "Diversity", "diversity_3", INSIGHT, "analyze"),
    View("overlaps", "corpora/overlaps_page.py", "Overlaps", "content_copy", INSIGHT, "analyze"),
    View("paper", "paper/page.py", "Paper", "article", INSIGHT, "analyze"),
    View("train", "training/page.py", "Train", "model_training", MODELS, "train"),
    View(
        "evaluations",
        "models/evaluations_page.py",
        "Evaluations",
        "leaderboard",
        MODELS,
        "evaluate",
    ),
    View("try_it", "models/try_it_page.py", "Try it", "travel_explore", MODELS, "try"),
    View("jobs", "jobs_page/page.py", "Jobs", "schedule", "Jobs", "jobs"),
    View("members", "people/members_page.py", "Members", "badge", SETTINGS, "accounts"),
    View("accounts", "people/page.py", "Accounts", "group", SETTINGS, "accounts"),
    View("connections", "connections/page.py", "Connections", "hub", SETTINGS, "connections"),
    View("tokens", "people/tokens_page.py", "Tokens", "key", SETTINGS, "tokens"),
    View("audit", "people/audit_page.py", "Audit log", "history", SETTINGS, "audit"),
)

IN_EVERY_LANGUAGE = ("judge", "answers")  # app/text/languages
JUDGING = IN_EVERY_LANGUAGE  # the annotators' pages
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


def entries_for(user: SessionUser) -> list[Entry]:
    """The menu of this user: one entry per section, its pages as tabs.

    Who may do nothing in People but judge has Judge and My answers as entries of their own, and
    who may do nothing at all but judge has only these.
    """
    views = views_for(user)
    sections: dict[str, list[View]] = {}
    for view in views:
        sections.setdefault(view.section, []).append(view)
    if all(view.name in JUDGING for view in sections.get(PEOPLE, [])):
        entries = [(name, found) for name, found in sections.items() if name != PEOPLE]
        entries += [(view.name, [view]) for view in sections.get(PEOPLE, [])]
    else:
        entries = list(sections.items())
    if len(entries) > 1 and all(view.name in ("home", *JUDGING) for view in views):
        entries = [(name, found) for name, found in entries if name != "Home"]
    return [_entry(name, found) for name, found in entries]


def _entry(section: str, views: list[View]) -> Entry:
    """A section's entry; a single page goes by its own title."""
    if len(views) == 1:
        return Entry(title_of(views[0]), views[0].icon, (views[0],))
    label = say("menu.people") if section == PEOPLE else section
    return Entry(label, ICONS[section], tuple(views))


def entry_of(user: SessionUser, url_path: str) -> Entry | None:
    """The entry that holds the page with this path; None where the menu does not list it."""
    name = url_path or "home"
    entries = entries_for(user)
    return next((one for one in entries if name in [view.name for view in one.views]), None)


def title_of(view: View) -> str:
    """A page's title, in the user's language where the page is translated."""
    return say(f"{view.name}.title") if view.name in IN_EVERY_LANGUAGE else view.title


def pages(user: SessionUser) -> list[st.Page]:
    """The pages for `st.navigation`, which lists none: the frame draws the menu. At the address of
    one that the user may not open stands which right it requires."""
    return [
        st.Page(
            FILES[view.name] if may_open(user, view.name) else _refusal(view),
            title=title_of(view),
            icon=f":material/{view.icon}:",
            url_path=view.name,
            default=view.name == "home",
        )
        for view in MENU
    ]


def _refusal(view: View) -> Callable[[], None]:
    def refuse() -> None:
        st.title(title_of(view), anchor=False)
        with failures_shown(language_now()):
            require_permission(view.permission)

    return refuse
