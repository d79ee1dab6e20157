"""The Tokens page: the programs that act for the user; for admins everybody's, and webhooks."""

import streamlit as st

from app.access.permissions import NEEDS
from app.access.session_user import signed_in_user
from app.kit.fields import draw_fields, draw_wrong
from app.kit.page import draw_empty, draw_heading, draw_table
from app.operations import datasets
from app.operations.doors import tokens
from app.operations.doors.tokens import MAX_NAME, TokenCreate, TokenRow
from app.people import actions
from app.people.webhooks import draw_webhooks
from app.text.plain import plain
from db.values import RIGHTS, TOKEN_RIGHTS


def draw_token(row: TokenRow) -> None:
    """One valid token, and the button that ends it."""
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(row.name)}**", width="content")
        on = "all of their datasets" if row.datasets is None else ", ".join(row.datasets) or "none"
        budget = "no budget"
        if row.budget_usd is not None:
            budget = f"${row.left_usd:.2f} of ${row.budget_usd:.2f} left"
        used = f"last used {row.used_at:%Y-%m-%d %H:%M} UTC" if row.used_at else "never used"
        st.caption(
            plain(
                f"…{row.hint} · {row.person} · {', '.join(row.rights)} · {on} · {budget} · "
                f"until {row.expires_at:%Y-%m-%d} · {used}"
            ),
            width="stretch",
        )
        st.button(
            "Revoke",
            key=f"tokens.revoke-{row.id}",
            help="Programs that use it are refused from now on.",
            on_click=actions.revoke_token,
            args=(row.id,),
        )


draw_heading(
    "Tokens",
    "A program acts for you by a token: with some of your rights, on all or some of your "
    "datasets, until it expires or you revoke it.",
)
user = signed_in_user()
is_admin = NEEDS[tokens.ALL].is_met(user)
found = tokens.list_all(user, everybody=is_admin).data
if shown := st.session_state.pop(actions.TOKEN, ""):
    st.success("The token, shown this once:", icon=":material/key:")
    st.code(shown, language=None)
valid = [row for row in found if row.status == "valid"]
for row in valid:
    draw_token(row)
if not valid:
    draw_empty(
        "No tokens.",
        "With one, a notebook or script signs in at `/api/v1`, whose reference is at "
        "`/api/v1/docs`.",
    )
with st.form("tokens.add"):
    st.markdown("**Create a token**")
    first, second, third = st.columns([2, 1, 1])
    with first:
        named = {"max_chars": MAX_NAME, "placeholder": "what it is for"}
        draw_fields(TokenCreate, ["name"], key="tokens", more={"name": named})
    with second:
        draw_fields(TokenCreate, ["days"], key="tokens")
    third.number_input(
        "Budget, USD",
        min_value=0.01,
        value=None,
        key="tokens.budget_usd",
        placeholder="none",
        help=TokenCreate.model_fields["budget_usd"].description,
    )
    all_rights = (*RIGHTS, *TOKEN_RIGHTS) if is_admin else RIGHTS
    held = [right for right in all_rights if user.rights.anywhere(right)]
    st.pills("Rights", held, selection_mode="multi", key="tokens.rights")
    draw_wrong("tokens.rights")
    names = [each.name for each in datasets.list_all(user).data] if "curate" in held else []
    st.multiselect(
        "Datasets", names, key="tokens.datasets", placeholder="all that you have rights on"
    )
    st.form_submit_button("Create token", type="primary", on_click=actions.create_token)
if ended := [row for row in found if row.status != "valid"]:
    with st.expander(f"Expired and revoked ({len(ended)})"):
        columns = {"name": "Token", "hint": "Ends in", "person": "Person", "status": "State"}
        rows = [row.as_json() for row in ended]
        draw_table(rows, column_order=list(columns), column_config=columns)
if is_admin:
    draw_webhooks()
