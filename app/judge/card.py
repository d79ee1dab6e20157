"""The judging card, a Streamlit component (version 2)."""

import json

from app.access.language import language_now
from app.judge.actions import card_data
from app.kit.card_files import nothing
from app.kit.outbox_card import card_component, outbox_of
from app.text.languages import LANGUAGES
from db.errors import Refused

SHOWN = ("card.", "keys.", "reason.", "form.", "signed_out", "answers.skipped")
# Streamlit sends the script with every frame: only what the card shows.
CATALOGUE = {
    code: {key: text for key, text in language.texts.items() if key.startswith(SHOWN)}
    for code, language in LANGUAGES.items()
}
DIRECTIONS = {code: language.direction for code, language in LANGUAGES.items()}
BEFORE = (
    f"const CATALOGUE = {json.dumps(CATALOGUE)};\nconst DIRECTIONS = {json.dumps(DIRECTIONS)};\n"
)
CARD = card_component(
    "judging",
    "judge/card",
    shared=("kit/sign_in.js",),
    styles=("kit/sign_in.css",),
    before=BEFORE,
    runs="JudgingCard",
)


def draw_card(study_id: int, *, key: str, guidelines: int) -> bool:
    """Render the card of a study and store what it sent; whether guidelines wait to be read.

    `guidelines`: the version drawn with the page. Raises Refused without the permission.

    For who was signed out meanwhile it is a sign-in form, and keeps what was not sent.
    """
    language = language_now()
    outbox = outbox_of(key)
    events, before = outbox.get("events"), outbox.get("before")
    try:
        data = card_data(
            study_id,
            events if isinstance(events, list) else [],
            language=language,
            before=before if isinstance(before, str) else None,
            guidelines=guidelines,
        )
    except Refused as refused:
        if refused.code != "signed_out":
            raise
        data = {"signed_out": True, "language": language}
    CARD(key=key, data=data, on_outbox_change=nothing)
    return data.get("unread") is True
