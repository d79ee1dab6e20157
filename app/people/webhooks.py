"""The webhooks of the Tokens page: endpoints of other servers that are sent events (admins)."""

import streamlit as st

from app.access.session_user import signed_in_user
from app.kit.fields import draw_wrong
from app.kit.page import draw_table
from app.operations.doors import events, webhooks
from app.operations.doors.webhooks import MAX_URL, WebhookAdd, WebhookRow
from app.people import actions
from app.text.plain import plain
from app.text.remedies import in_pages

LAST = 20


def draw_webhooks() -> None:
    """Every endpoint with its log, and the form that adds one."""
    st.header("Webhooks", anchor=False)
    st.caption(
        "Other servers that are sent events as they happen, signed (Standard Webhooks). An event "
        "names the thing; what is in it is read by its route."
    )
    if shown := st.session_state.pop(actions.SECRET, ""):
        st.success("The secret of the webhook, shown this once:", icon=":material/key:")
        st.code(shown, language=None)
    for row in webhooks.list_all(signed_in_user()).data:
        _draw_webhook(row)
    with st.form("webhooks.add"):
        st.markdown("**Add a webhook**")
        st.text_input(
            "URL",
            key="webhooks.url",
            max_chars=MAX_URL,
            placeholder="https://hooks.example.org/inf-studio",
        )
        draw_wrong("webhooks.url")
        st.multiselect(
            "Events", events.NAMES, key="webhooks.events", placeholder="all but judgment.stored"
        )
        st.checkbox(
            "Private network",
            key="webhooks.private",
            help=WebhookAdd.model_fields["private"].description,
        )
        st.form_submit_button("Add webhook", type="primary", on_click=actions.add_webhook)


def _draw_webhook(row: WebhookRow) -> None:
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(plain(f"`{row.url}`"), width="content")  # as code: no link
            st.badge(row.status, color="green" if row.status == "on" else "orange")
            wanted = ", ".join(row.events) or "all events"
            facts = f"{wanted} · {row.waiting:,} waiting · by {row.created_by}"
            st.caption(plain(facts), width="stretch")
        if row.problem:
            st.warning(plain(in_pages(row.problem)), icon=":material/key_off:")
        if row.status == "off":
            st.warning(plain(f"Switched off: {row.reason}"), icon=":material/link_off:")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.button(
                "Send test",
                key=f"webhooks.test-{row.id}",
                on_click=actions.test_webhook,
                args=(row.id,),
            )
            if row.status == "off" or row.problem:
                for label, skip in (("Enable", False), ("Enable, skip what waits", True)):
                    st.button(
                        label,
                        key=f"webhooks.enable-{row.id}-{skip}",
                        on_click=actions.enable_webhook,
                        args=(row.id, skip),
                    )
            with st.popover("Remove", key=f"webhooks.remove-{row.id}"):
                st.markdown(plain(f"Remove `{row.url}` and its log?"))
                st.button(
                    "Remove webhook",
                    type="primary",
                    key=f"webhooks.remove-do-{row.id}",
                    on_click=actions.remove_webhook,
                    args=(row.id,),
                )
        with st.expander("Deliveries"):
            found = webhooks.deliveries(signed_in_user(), row.id, limit=LAST).data
            draw_table([each.as_json() for each in found])
