"""The review card (a Streamlit component, version 2): a group as JSON."""

from typing import Any

from app.groups.actions import Desk, card_data
from app.groups.group import labels
from app.kit.card_files import nothing
from app.kit.outbox_card import card_component, outbox_of
from app.text.texts import differences
from db.review.texts import FIELDS
from db.run.group_detail import GroupDetail, Texts
from db.scenarios import ROLES, SCENARIOS, Role

CARD = card_component("review", "groups/review_card")
FIELD_OF = {places[0]: name for name, places in FIELDS.items()}
ACTIONS = {"approve": "approved", "reject": "rejected", "edit": "edited"}


def draw_card(desk: Desk, *, key: str) -> None:
    """Store what the card sent and draw it. Raises Refused without the permission to review."""
    data = card_data(desk, outbox_of(key), as_json=group_as_json)
    CARD(key=key, data=data, on_outbox_change=nothing)


def group_as_json(group: GroupDetail, revalidation: dict[str, str], *, blind: bool) -> Any:
    """The group as sent to the browser; blind, without anything that reveals the verdict."""
    review = group.review
    tags = [group.verdict] if group.verdict and not blind else []
    notes = []
    if not blind and group.drop_reason:
        notes.append(f"Dropped: {group.drop_reason.replace('_', ' ')}. {group.drop_detail or ''}")
    if review is not None:
        tags.append(ACTIONS[review.action])
        reason = f": {review.reason}" if review.reason else ""
        when = f"{review.created_at:%Y-%m-%d %H:%M}"
        notes.append(f"{ACTIONS[review.action]} by {review.reviewed_by}, {when}{reason}")
    if not group.triplets:
        notes.append(
            "The pair was dropped before any text was generated.\n"
            f"{group.query_positive}\n{group.document_positive}"
        )
    return {
        "id": group.id,
        "name": group.query_id,
        "seen": review.id if review else None,
        "labels": [*tags, *(["offline"] if group.offline else [])],
        "notes": notes,
        "link": "" if blind else f"groups?run={group.run_id}&group={group.id}",
        "columns": _columns(group, {} if blind else revalidation, blind),
        "before": _before(group),
    }


def _columns(group: GroupDetail, revalidation: dict[str, str], blind: bool) -> list[Any]:
    positive = group.triplets.get("positive")
    found = []
    for role in ROLES:
        texts = group.triplets.get(role)
        if texts is None:
            continue
        says, state = _says(group, role, revalidation, blind)
        found.append(
            {
                "title": SCENARIOS[role].title,
                "scenario": SCENARIOS[role].label,
                "says": says,
                "state": state,
                "parts": _parts(role, texts, None if role == "positive" else positive),
            }
        )
    return found


def _parts(role: Role, texts: Texts, other: Texts | None) -> list[Any]:
    return [
        {
            "label": label,
            "field": FIELD_OF.get((role, column)),
            "text": text,
            "pieces": [[text, False]] if other is None else differences(text, unlike),
        }
        for label, column, text, unlike in zip(
            labels(role), texts._fields, texts, other or texts, strict=True
        )
    ]


def _says(
    group: GroupDetail, role: Role, revalidation: dict[str, str], blind: bool
) -> tuple[str, str]:
    """The validator's result for the scenario (after the last edit, if any) and its state."""
    if blind:
        return "", ""
    if role in revalidation:
        state = revalidation[role]
        texts = {
            "holds": "the validator finds this passage after the edit",
            "fails": "the validator does not find this passage after the edit",
            "waiting": "edited, not yet validated again",
        }
        return texts[state], state
    for judgment in group.judgments:
        if judgment.scenario == role:
            chose = judgment.choice.replace("_", " ")
            state = "holds" if judgment.agrees else "fails"
            return f"{judgment.judge} chose {chose}", state
    return "", ""


def _before(group: GroupDetail) -> list[dict[str, str]]:
    if group.review is None or group.review.action != "edit":
        return []
    return [
        {"label": name.replace("_", " "), "text": str(text)}
        for name, text in group.review.before.items()
    ]
