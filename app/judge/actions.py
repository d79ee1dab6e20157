"""What a browser receives of the judging card, and sends: see `app.operations.judging.card`."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from app.access.session_user import cookie_holder
from app.kit.outbox_card import outbox_scope
from app.operations.judging.card import answer_and_lease
from app.text.languages import DEFAULT, error_text

DWELL_MS = 300


def card_data(
    study_id: int,
    events: Sequence[Any],
    *,
    language: str = DEFAULT,
    before: str | None = None,
    guidelines: int | None = None,
) -> dict[str, Any]:
    """The data of the judging card, after storing the decisions it sent: the row of the operation.

    `scope` separates the outboxes of different judges and stores in the same browser; `formerly` is
    what an earlier version made of the name, under which answers may still wait. `before` and
    `guidelines`, the version that the page drew: as of `answer_and_lease`. Raises Refused without
    the permission.
    """
    reword = partial(error_text, language)
    card = answer_and_lease(
        cookie_holder(), study_id, events, before=before, shown=guidelines, reword=reword
    )
    judge = card.judge
    return card.as_json() | {
        "language": language,
        "scope": outbox_scope(judge.id, judge.created_at),
        "formerly": outbox_scope(judge.id, judge.name, judge.created_at),
        "dwell_ms": DWELL_MS,
    }
