"""The adjudicator's card: the judging card over disputed items, a component of Streamlit."""

from functools import partial
from typing import Any

from app.access.language import language_now
from app.access.session_user import cookie_holder
from app.judge.actions import DWELL_MS
from app.judge.card import BEFORE
from app.kit.card_files import nothing
from app.kit.outbox_card import card_component, outbox_of, outbox_scope
from app.operations.judging.adjudication import decide_and_show
from app.text.languages import DEFAULT, error_text
from db.errors import Refused

CARD = card_component(
    "adjudication",
    "studies/adjudication",
    shared=("kit/sign_in.js", "judge/card.js"),
    styles=("kit/sign_in.css", "judge/card.css"),
    before=BEFORE,
    runs="AdjudicationCard",
)


def card_data(
    study_id: int, outbox: dict[str, Any], *, language: str = DEFAULT, **shown: Any
) -> dict[str, Any]:
    """The data of the card after storing what it sent; `shown` as of `decide_and_show`."""
    events, before, aside = (outbox.get(name) for name in ("events", "before", "aside"))
    card = decide_and_show(
        cookie_holder(),
        study_id,
        events if isinstance(events, list) else [],
        before=before if isinstance(before, str) else None,
        aside=aside if isinstance(aside, list) else [],
        reword=partial(error_text, language),
        **shown,
    )
    scope = outbox_scope("adjudication", card.judge.id, card.judge.created_at)
    return card.as_json() | {
        "language": language,
        "scope": scope,
        "formerly": scope,
        "dwell_ms": DWELL_MS,
    }


def draw_card(study_id: int, *, key: str, first: int | None, include_agreed: bool) -> None:
    """Render the card and store what it sent; for who was signed out, a sign-in form."""
    language = language_now()
    try:
        data = card_data(
            study_id,
            outbox_of(key),
            language=language,
            first=first,
            include_agreed=include_agreed,
        )
    except Refused as refused:
        if refused.code != "signed_out":
            raise
        data = {"signed_out": True, "language": language}
    CARD(key=key, data=data, on_outbox_change=nothing)
