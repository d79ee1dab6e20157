"""The judging card (a Streamlit component, version 2)."""

from app.components.card_files import nothing
from app.components.outbox_card import card_component, outbox_of
from app.judging import card_data

CARD = card_component("judging")


def draw_card(study_id: int, *, key: str) -> None:
    """The card of a study, after storing what it sent. Raises Refused for who may not judge."""
    events = outbox_of(key).get("events")
    data = card_data(study_id, events if isinstance(events, list) else [])
    CARD(key=key, data=data, on_outbox_change=nothing)
