"""The judging card, a Streamlit component (version 2)."""

from app.judge.actions import card_data
from app.kit.card_files import nothing
from app.kit.outbox_card import card_component, outbox_of

CARD = card_component("judging", "judge/card")


def draw_card(study_id: int, *, key: str) -> None:
    """Render the card of a study and store what it sent. Raises Refused without the permission."""
    events = outbox_of(key).get("events")
    data = card_data(study_id, events if isinstance(events, list) else [])
    CARD(key=key, data=data, on_outbox_change=nothing)
