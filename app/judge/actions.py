"""What a browser receives of the judging card, and sends: see `app.operations.judging.card`."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from app.access.session_user import cookie_holder
from app.judge.text_language import lang_of
from app.kit.outbox_card import outbox_scope
from app.operations.judging.card import answer_and_lease
from app.text.languages import DEFAULT, error_text
from db.answers.own_answers import OwnAnswer
from db.assignment.shown_items import ShownItem
from db.assignment.threads import Message
from db.question import PICK

DWELL_MS = 300


def card_data(
    study_id: int,
    events: Sequence[Any],
    *,
    language: str = DEFAULT,
    before: str | None = None,
    guidelines: int | None = None,
) -> dict[str, Any]:
    """The data of the judging card, after storing the decisions it sent.

    `scope` separates the outboxes of different judges and stores in the same browser; `formerly` is
    what an earlier version made of the name, under which answers may still wait. `before`
    requests the judge's answers older than that of this token ("": the last ones). `guidelines` is
    the version that the page drew, by default the newest; in the data, the one that the card names
    in its answers. Raises Refused without the permission.
    """
    card = answer_and_lease(
        cookie_holder(),
        study_id,
        events,
        before=before,
        shown=guidelines,
        reword=partial(error_text, language),
    )
    items = [
        _as_json(item, card.threads.get(item.item_id, ()), before=last)
        for last, item in zip((None, *card.items), card.items, strict=False)
    ]
    if card.qualification is not None:
        state, example = card.qualification
        items = [{**_as_json(example), "round": state.round}]
    judge = card.judge
    return {
        "language": language,
        "scope": outbox_scope(judge.id, judge.created_at),
        "formerly": outbox_scope(judge.id, judge.name, judge.created_at),
        "study": study_id,
        "items": items,
        "past": [_past_as_json(one) for one in card.past],
        "past_before": before,
        "qualification": None if card.qualification is None else asdict(card.qualification[0]),
        "feedback": card.feedback,
        "acknowledged": card.acknowledged,
        "notices": card.notices,
        "message": card.message,
        "guidelines": card.read_version,
        "unread": card.is_unread,
        "finished": not items,
        "done": card.progress.done,
        "left": card.progress.left if items or card.message else 0,
        "pace": card.progress.seconds_per_item,
        "replies": card.replies,
        "dwell_ms": DWELL_MS,
    }


def _as_json(
    item: ShownItem, thread: Sequence[Message] = (), *, before: ShownItem | None = None
) -> dict[str, Any]:
    """All that a browser receives of an item; tests/app/test_adversarial_annotator.py.

    The texts of a card are sent once: an item of the same card as the one `before` has `same`.
    """
    return {
        "token": item.token,
        **({"same": True} if _is_same_card(before, item) else _texts_as_json(item)),
        "thread": [{"mine": not one.written_by, "body": one.body} for one in thread],
        **_question_as_json(item),
    }


def _is_same_card(before: ShownItem | None, item: ShownItem) -> bool:
    return before is not None and (item.group_id, item.candidates) == (
        before.group_id,
        before.candidates,
    )


def _texts_as_json(item: ShownItem) -> dict[str, Any]:
    texts = (item.instruction, item.query, *item.candidates)
    return {
        "instruction": item.instruction,
        "query": item.query,
        "candidates": list(item.candidates),
        "langs": [lang_of(text) for text in texts],
    }


def _question_as_json(item: ShownItem) -> dict[str, Any]:
    """What an item asks; nothing for InF-IR's pick, whose words are the card's own."""
    of = item.question
    if of is PICK:
        return {}
    question = {
        "name": of.name,
        "kind": of.kind,
        "text": of.text,
        "labels": list(of.labels.items()),
    }
    return {"question": question, "about": item.about}


def _past_as_json(answer: OwnAnswer) -> dict[str, Any]:
    entry = {
        "kind": "pick",
        "position": answer.position,
        "note": answer.note,
        "flagged": answer.flagged,
        "reason": answer.reason,
    }
    return {"item": _as_json(answer.item, answer.thread), "entry": entry}
