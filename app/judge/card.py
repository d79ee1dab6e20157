"""The judging card, a Streamlit component (version 2)."""

import json
from collections.abc import Mapping
from typing import Any

from app.access.language import language_now
from app.judge.actions import card_data
from app.kit.outbox_card import before_in, card_component, draw_outbox_card, list_in
from app.text.languages import LANGUAGES

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


def draw_card(study_id: int, *, key: str, guidelines: int) -> dict[str, Any]:
    """Render the card of a study and store what it sent; returns what it shows.

    `guidelines`: the version drawn with the page. Raises Refused without the permission.
    """

    def data(outbox: Mapping[str, Any]) -> dict[str, Any]:
        return card_data(
            study_id,
            list_in(outbox, "events"),
            language=language_now(),
            before=before_in(outbox),
            guidelines=guidelines,
        )

    return draw_outbox_card(CARD, data, key=key)
