"""The dataset of a page: chosen once, in the frame, and kept in the URL as `?dataset=NAME`.

A run, study, group, release or analysis that the URL names decides, then the parameter, then the
choice before, then the dataset worked on last. With a single dataset there is nothing to choose,
and the URL need not name it.
"""

from dataclasses import dataclass

import streamlit as st

from app.access.identity import SessionUser
from app.access.permissions import NEEDS
from app.kit.choice import draw_choice
from app.kit.menu import permission_of
from app.operations.overview.frame import PageDataset, datasets_of_page
from db.errors import BadInput, NotFound

PARAMETER = "dataset"
CHOSEN, REFUSED = "frame.page_dataset", "frame.refused"
WIDGET = "frame.named_dataset"
OF_NO_DATASET = (
    "judge",
    "answers",
    "evaluations",
    "jobs",
    "connections",
    "members",
    "accounts",
    "audit",
)


@dataclass(frozen=True)
class Choice:
    """What the frame offers: the names of the datasets; refused: a name in the URL that is none of
    them, so that the page cannot be drawn."""

    names: tuple[str, ...] = ()
    refused: str = ""

    def refusal(self) -> NotFound:
        """The same of a dataset that does not exist as of one that the user may not open here: who
        may not see it does not learn of it."""
        then = "choose one in the list above" if self.names else "have an admin give you the right"
        return NotFound(
            f"there is no dataset {self.refused!r} that you may open on this page",
            then,
            code="dataset_not_visible",
        )


def find_dataset(user: SessionUser, page: str) -> Choice:
    """Find the dataset of the page for `chosen_dataset` and for links, and write it to the URL."""
    permission = "jobs" if page == "home" else permission_of(page)
    st.session_state[REFUSED] = False
    if page in OF_NO_DATASET or not NEEDS[permission].is_met(user):
        return Choice()
    found, of_row = datasets_of_page(user, permission, st.query_params)
    by_name = {one.name: one for one in found}
    names = tuple(sorted(by_name))
    wanted = st.query_params.get(PARAMETER)
    chosen = _named(found, by_name, wanted, of_row)
    st.session_state[CHOSEN] = chosen
    if wanted is not None and chosen is None:
        st.session_state[REFUSED] = True
        return Choice(names, refused=wanted)
    if chosen is not None and wanted != chosen.name and (len(found) > 1 or wanted is not None):
        st.query_params[PARAMETER] = chosen.name
    return Choice(names)


def _named(
    found: list[PageDataset], by_name: dict[str, PageDataset], wanted: str | None, of_row: set[int]
) -> PageDataset | None:
    before = st.session_state.get(CHOSEN)
    ranked = [
        *(one for one in found if one.id in of_row and one.name == wanted),
        *(one for one in found if one.id in of_row),
        *([by_name[wanted]] if wanted in by_name else []),
    ]
    if wanted is None:
        ranked += [*(one for one in found if one == before), *found]
    return ranked[0] if ranked else None


def chosen_dataset() -> PageDataset | None:
    """The dataset of this page; None where there is none yet."""
    chosen: PageDataset | None = st.session_state.get(CHOSEN)
    return chosen


def require_dataset() -> PageDataset:
    """The dataset of this page. Raises BadInput where there is none."""
    chosen = chosen_dataset()
    if chosen is None:
        raise BadInput("there is no dataset", "import one first", code="dataset_missing")
    return chosen


def draw_dataset_choice(choice: Choice) -> None:
    """Draw the choice in the frame, where there is one to make."""
    chosen = chosen_dataset()
    with st.container(key="frame-dataset"):
        if len(choice.names) > 1 or (choice.refused and choice.names):
            draw_choice(
                "Dataset",
                choice.names,
                None if choice.refused or chosen is None else chosen.name,
                key=WIDGET,
                on_choice=choose_dataset,
                placeholder="choose a dataset",
            )


def choose_dataset(name: str) -> None:
    """Let the next page be about this dataset: what else the URL names is of the one before."""
    st.query_params.from_dict({PARAMETER: name})


def with_dataset(parameters: dict[str, str]) -> dict[str, str]:
    """A link's parameters with the dataset of this page, if its URL names one."""
    name = st.query_params.get(PARAMETER)
    if name is None or st.session_state.get(REFUSED):
        return parameters
    return {PARAMETER: name} | parameters
