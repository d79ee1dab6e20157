"""The Connections page: model servers that runs use (admins only)."""

import streamlit as st

from app.access.session_user import signed_in_user
from app.connections import actions
from app.connections.form import KINDS, draw_form, draw_key_fields
from app.curate.server_choice import tested_of
from app.kit.page import draw_empty, draw_hand_off, draw_heading
from app.operations import connections
from app.operations.connections import ConnectionRow, Tested
from app.text.numbers import counted
from app.text.plain import plain
from app.text.remedies import in_pages
from db.servers.connections import SERVERS

SUPPORT = {"supports_schema": "JSON schema", "supports_reasoning": "reasoning"}
SUPPORT |= {"supports_batch": "batches"}
ANSWERS = {True: "yes", False: "no", None: "unknown"}


def draw_connection(row: ConnectionRow) -> None:
    """One connection, what its last test found, and its controls."""
    key = str(row.id or "environment")
    tested = tested_of(row)
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(row.name)}**", width="content")
            st.badge(KINDS[row.kind], color="gray")
            if row.id and row.private:
                st.badge("private network", color="orange")
            origin = "environment variables" if row.id is None else f"by {row.created_by}"
            facts = [f"`{row.url}`" if row.url else "no server", actions.key_text(row), origin]
            st.caption(plain(" · ".join(facts)), width="stretch")
        if row.problem and row.id is None:
            st.caption(plain(f"{in_pages(row.problem)}: nothing is sent there."))
            return
        if row.problem:
            st.warning(plain(in_pages(row.problem)), icon=":material/key_off:")
        if tested is not None:
            draw_tested(tested)
        elif row.kind in SERVERS:
            st.caption("No test has succeeded yet.")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if row.kind in SERVERS:
                draw_test(row, key, tested)
            if row.id is not None:
                draw_changes(row, key)


def draw_tested(tested: Tested) -> None:
    """What a test found, in one line."""
    supports = (f"{label} {ANSWERS[getattr(tested, name)]}" for name, label in SUPPORT.items())
    name = tested.model
    if tested.answered_as != name:
        name += f" (answers as {tested.answered_as})"
    models = counted(len(tested.models), "model") if tested.models else "models not listed"
    facts = (models, f"{tested.seconds:.2f} s for a call to {name}", *supports)
    st.caption(plain(f"{' · '.join(facts)} · tested {tested.at:%Y-%m-%d %H:%M} UTC"))


def draw_test(row: ConnectionRow, key: str, tested: Tested | None) -> None:
    models = list(tested.models) if tested else []
    st.selectbox(
        "Model to try",
        models,
        index=models.index(tested.model) if tested and tested.model in models else None,
        key=f"connections.model-{key}",
        accept_new_options=True,
        placeholder="first of its list",
        width=260,
    )
    st.button(
        "Test",
        key=f"connections.test-{key}",
        icon=":material/network_check:",
        help="Lists the models and makes three small calls.",
        on_click=actions.test,
        args=(row.name, f"model-{key}"),
    )


def draw_changes(row: ConnectionRow, key: str) -> None:
    if row.kind in SERVERS:
        with (
            st.popover("Change key", key=f"connections.change-{key}"),
            st.form(f"connections.key-form-{key}", clear_on_submit=True, border=False),
        ):
            draw_key_fields(f"key-{key}", f"secret-{key}")
            st.caption("Runs use it from their next start or resume on. Neither: no key.")
            st.form_submit_button(
                "Save key",
                type="primary",
                key=f"connections.key-do-{key}",
                on_click=actions.change_key,
                args=(row.name, key),
            )
        with st.popover("Prices", key=f"connections.prices-open-{key}"):
            st.text_area(
                "USD per million tokens in and out",
                "\n".join(
                    f"{model}={price['input']:g}/{price['output']:g}"
                    for model, price in row.prices.items()
                ),
                key=f"connections-{row.name}.prices",
                placeholder="model=0.15/0.6",
                help="One model per line. They take precedence over prices.toml.",
            )
            st.button(
                "Save prices",
                type="primary",
                key=f"connections.prices-do-{key}",
                on_click=actions.change_prices,
                args=(row.name,),
            )
    with st.popover("Remove", key=f"connections.remove-{key}"):
        st.markdown(f"Remove **{plain(row.name)}**? Runs that are over keep its name and address.")
        st.button(
            "Remove connection",
            type="primary",
            key=f"connections.remove-do-{key}",
            on_click=actions.remove,
            args=(row.name,),
        )


draw_heading(
    "Connections",
    "Model servers that runs use. Who may curate starts runs with them; keys are not shown again.",
)
found = connections.list_all(signed_in_user()).data
for one in found:
    draw_connection(one)
if len(found) == 1:
    draw_empty(
        "No connections yet.",
        "Connect a model server with the form below, or by this command on the machine where the "
        "app runs.",
        command="inf connections add NAME --url URL --secret VAR",
    )
draw_form()
if any(one.tested for one in found):
    draw_hand_off("curate", "Start a run with a connection")
