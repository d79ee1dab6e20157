"""What answers a run of the form: a connection or a provider, and a model for each stage."""

from dataclasses import dataclass

import streamlit as st

from app.access.session_user import signed_in_user
from app.kit.menu import may_open
from app.operations import connections, recipes
from app.operations.connections import ConnectionRow, Tested
from app.text.plain import plain
from app.text.remedies import in_pages
from curation.providers.registry import PROVIDERS, describe_providers
from curation.recipe.recipe import Recipe
from curation.run.starting import RunStart
from db.errors import InfError

CHOSEN_SERVER = "curate.provider"
TESTED = "connections.tested"  # of the environment, which the store has no row for
STORED = "connection "  # what a stored connection's choice begins with; no provider's name has it


@dataclass(frozen=True)
class Chosen:
    """The choice of the form. `row` is the connection that it is, also that of the environment.

    `has_server`: whether any connection to a model server can be used.
    """

    provider: str
    connection: str | None
    row: ConnectionRow | None
    has_server: bool

    @property
    def problem(self) -> str | None:
        """Why no run can be started with it, or None."""
        return None if self.row is None else self.row.problem


def chosen_server() -> Chosen:
    """What the form's first field holds."""
    return _chosen(_rows(), st.session_state[CHOSEN_SERVER])


def _rows() -> dict[str, ConnectionRow]:
    """The connections by the choice that each is: the environment's is the provider openai."""
    listed = connections.list_all(signed_in_user()).data
    return {"openai" if row.id is None else f"{STORED}{row.name}": row for row in listed}


def tested_of(row: ConnectionRow) -> Tested | None:
    """What the last test of a connection found; of the environment's in this session."""
    of_environment: Tested | None = st.session_state.get(TESTED)
    return row.tested if row.id else of_environment


def _chosen(rows: dict[str, ConnectionRow], choice: str) -> Chosen:
    row = rows.get(choice)
    has_server = any(each.url and each.problem is None for each in rows.values())
    if row is None or row.id is None:
        return Chosen("" if choice.startswith(STORED) else choice, None, row, has_server)
    return Chosen(row.provider, row.name, row, has_server)


def draw_server_choice() -> Chosen:
    """Draw the field. Returns its choice."""
    rows = _rows()

    def label(choice: str) -> str:
        row = rows.get(choice)
        if row is None:
            return choice
        return f"{row.name} ({row.url})" if row.url else row.name

    stored = [choice for choice in rows if choice.startswith(STORED)]
    choice = st.selectbox(
        "Connection",
        [*PROVIDERS.names(), *stored],
        format_func=label,
        key=CHOSEN_SERVER,
        help=f"Who writes and judges. {describe_providers()}",
    )
    return _chosen(rows, choice or "offline")


def draw_problem(chosen: Chosen) -> None:
    """Draw why the choice cannot be used, and who can add another one."""
    if chosen.problem is not None:
        st.caption(plain(in_pages(chosen.problem)))
    is_needed = chosen.problem is not None or not chosen.has_server
    if is_needed and not may_open(signed_in_user(), "connections"):
        st.caption("An admin can connect a model server on the Connections page.")


def draw_models(chosen: Chosen) -> None:
    """Draw the choice of models, where the connection is a server."""
    recipe = _recipe(chosen)
    if recipe is None or chosen.row is None or chosen.row.url is None:
        return
    tested = tested_of(chosen.row)
    models = list(tested.models) if tested else []
    own = sorted({stage.model for stage in recipe.stages.values()})
    fits = not models or set(own) <= set(models)
    listed = [None, *models]
    st.selectbox(
        "Model",
        listed,
        index=0 if fits or tested is None else listed.index(tested.model),
        format_func=lambda name: name or f"as the recipe says: {', '.join(own)}",
        key=_model_key(chosen),
        accept_new_options=True,
        help="For all stages. "
        + ("From the server's list." if models else "Test the connection to choose from its list."),
    )
    with st.expander("Another model for a stage"), st.container(horizontal=True):
        for task in recipe.stages:
            st.selectbox(
                task.replace("_", " ").capitalize(),
                listed,
                format_func=lambda name: name or "as above",
                key=_model_key(chosen, task),
                accept_new_options=True,
                width=220,
            )


def model_settings(chosen: Chosen) -> list[str]:
    """The settings of the chosen models, those of single stages last."""
    recipe = _recipe(chosen)
    if recipe is None or chosen.row is None or chosen.row.url is None:
        return []
    held = {task: st.session_state.get(_model_key(chosen, task)) for task in recipe.stages}
    all_of_them = st.session_state.get(_model_key(chosen))
    lines = [f"model={all_of_them}"] if all_of_them else []
    return lines + [f"{task}.model={model}" for task, model in held.items() if model]


def _model_key(chosen: Chosen, task: str = "") -> str:
    return f"curate.model-{chosen.connection or 'environment'}-{task}"


def _recipe(chosen: Chosen) -> Recipe | None:
    try:
        wanted = RunStart(
            dataset="", provider=chosen.provider, recipe=st.session_state.get("curate.recipe")
        )
        return recipes.chosen(signed_in_user(), wanted)
    except InfError:  # the form names it where the run is started
        return None
