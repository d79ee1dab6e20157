"""The workbench (a Streamlit component, version 2): rows, groups and model calls as JSON."""

from collections.abc import Mapping
from typing import Any

from app.access.identity import SessionUser
from app.access.session_user import require_permission
from app.groups.group import listed_label, title_of
from app.kit.card_files import nothing
from app.kit.outbox_card import card_component, outbox_of, outbox_scope
from app.operations.groups import PAGE
from app.operations.judging.desk import CallText, Desk, GroupOnDesk, OnDesk, on_desk
from app.text.remedies import in_pages
from app.text.texts import differences, differs_throughout
from curation.recipe.drop_reasons import reason_text
from db.question import about_of
from db.review.texts import missing_texts
from db.run.group_detail import GroupDetail
from db.shape import Scenario, text_name

CARD = card_component("workbench", "groups/workbench")
DWELL_MS = 300
SAYS_OF_CHECK = {
    "holds": "answered as expected after the edit",
    "fails": "not answered as expected after the edit",
    "waiting": "not asked again since the edit",
}
ACTIONS = {"approve": "approved", "reject": "rejected", "edit": "edited"}
SAYS = {
    "holds": "the validator finds this passage after the edit",
    "fails": "the validator does not find this passage after the edit",
    "waiting": "not yet validated",
}


def draw_workbench(desk: Desk, *, key: str) -> SessionUser:
    """Store what the card sent and draw it. Returns the user of now. Raises Refused without the
    permission."""
    user = require_permission("groups")
    data = as_data(on_desk(user, desk, outbox_of(key)), desk, user.name)
    CARD(key=key, data=data, on_outbox_change=nothing)
    return user


def as_data(found: OnDesk, desk: Desk, viewer: str) -> dict[str, Any]:
    """What the card takes: the rows are those of every list of groups.

    `scope` separates the outboxes of different users and stores in the same browser; `formerly` is
    what an earlier version made of the name. `reasons`: the drop reasons of the rows in words.
    """
    here, run = found.standing, found.standing.run
    shown = [each.group.id for each in found.groups]
    reasons = {row.drop_reason for row in found.listed.data if row.drop_reason}
    return {
        "scope": outbox_scope(*found.person, run.id, run.created_at),
        "formerly": outbox_scope(viewer, run.id, run.created_at),
        "run": run.id,
        "queue": found.queue,
        "offset": found.offset,
        "page": PAGE,
        "total": found.listed.total,
        "rows": [row.as_json() for row in found.listed.data],
        "reasons": {reason: reason_text(reason) for reason in sorted(reasons)},
        "at": desk.wanted_group if desk.wanted_group in shown else None,
        "groups": [
            group_as_json(each, blind=here.blind, viewer=viewer, with_calls=here.curates)
            for each in found.groups
        ],
        "gone": found.gone,
        "calls": None if found.calls is None else calls(*found.calls),
        "acknowledged": {
            event: "" if error is None else in_pages(str(error))
            for event, error in found.answers.items()
        },
        "may_review": here.reviews,
        "may_validate": here.curates,
        "dwell_ms": DWELL_MS,
    }


def group_as_json(
    on_desk: GroupOnDesk, *, blind: bool, viewer: str = "", with_calls: bool = False
) -> dict[str, Any]:
    """The group as sent to the browser; blind, without anything that reveals the verdict.

    `with_calls`: the viewer may ask for its calls.
    """
    group, review = on_desk.group, on_desk.group.review
    known, revalidation = _known(group), {} if blind else on_desk.revalidation
    why_not = in_pages(on_desk.why_not_validated)
    return {
        "id": group.id,
        "name": group.query_id,
        "seen": review.id if review else None,
        "review": review.action if review else "",
        "mine": review is not None and review.reviewed_by == viewer,
        "labels": [
            *([group.verdict] if group.verdict and not blind else []),
            *(["offline"] if group.offline else []),
        ],
        "notes": [*_notes(group, blind, on_desk.carried_from_run), *filter(None, [why_not])],
        "missing": [text.sign for text in missing_texts(group.shape, known)],
        "calls": with_calls and bool(group.calls),
        "columns": _columns(group, known, revalidation, blind, on_desk.is_validating),
        "before": _before(group),
    }


def calls(group: GroupDetail, prompts: Mapping[int, list[CallText]]) -> dict[str, Any]:
    """The group's model calls with their prompts and raw answers."""
    return {
        "group": group.id,
        "list": [
            {
                "title": call.title,
                "parts": [
                    *(
                        [f"Prompt ({message['role']})", message["content"]]
                        for message in prompts.get(call.id, ())
                    ),
                    ["Raw answer", call.answer],
                ],
            }
            for call in group.calls
        ],
    }


def _notes(group: GroupDetail, blind: bool, carried_from_run: int | None) -> list[str]:
    review, notes = group.review, []
    if not blind and group.drop_reason:
        detail = f": {group.drop_detail}" if group.drop_detail else ""
        notes.append(f"Dropped: {reason_text(group.drop_reason)}{detail}")
    if not blind:
        for one in group.proposals:
            notes.append(f"{one.judge} proposes to {one.action} it: {one.reason}")
    if review is not None:
        reason = f": {review.reason}" if review.reason else ""
        when = f"{review.created_at:%Y-%m-%d %H:%M}"
        carried = ""
        if review.carried_from is not None:
            run = "another run" if carried_from_run is None else f"run {carried_from_run}"
            carried = f", for the same texts in {run}"
        who = f"by {review.reviewed_by}, {when}{carried}{reason}"
        notes.append(f"{ACTIONS[review.action].capitalize()} {who}")
        if not blind and group.verdict == "dropped" and review.action == "approve":
            notes.append("Rescued: a release contains this group because it is approved.")
    return notes


def _known(group: GroupDetail) -> dict[str, str]:
    """The group's texts by column, those of the pair too."""
    known = {
        group.shape.first.query.column: group.query_positive,
        group.shape.first.passage.column: group.document_positive,
    }
    for text in group.shape.all_texts:
        if text.introduced_by in group.triplets:
            known[text.column] = getattr(group.triplets[text.introduced_by], text.field)
    return known


def _columns(
    group: GroupDetail,
    known: Mapping[str, str],
    revalidation: Mapping[str, str],
    blind: bool,
    is_validating: bool,
) -> list[dict[str, Any]]:
    found, shape = [], group.shape
    for role, scenario in shape.scenarios.items():
        other = None if scenario is shape.first else shape.first
        says, state = _says(group, role, revalidation, blind)
        found.append(
            {
                "title": scenario.title,
                "scenario": scenario.label,
                "says": says,
                "state": state,
                "validating": is_validating,
                "parts": [
                    *_parts(group, known, scenario, other),
                    *_listed(group, scenario, known, revalidation, blind),
                ],
            }
        )
    return found


def _parts(
    group: GroupDetail, known: Mapping[str, str], scenario: Scenario, other: Scenario | None
) -> list[dict[str, Any]]:
    """A scenario's texts, each next to that of `other`; edited where they are introduced."""
    found = []
    for text, unlike in zip(scenario.texts, (other or scenario).texts, strict=True):
        own, compared = known.get(text.column, ""), known.get(unlike.column, "")
        is_edited_here = text in group.shape.written and text.introduced_by == scenario.role
        found.append(
            {
                "label": text.label,
                "meaning": text.meaning,
                "field": text.column if is_edited_here else None,
                "text": own,
                "other": compared if other is not None else "",
                "is_passage": text.field == "passage",
                **_compared(own, compared),
            }
        )
    return found


def _listed(
    group: GroupDetail,
    scenario: Scenario,
    known: Mapping[str, str],
    revalidation: Mapping[str, str],
    blind: bool,
) -> list[dict[str, Any]]:
    """The texts of the scenario's lists next to its passage; the group's own are edited."""
    passage, found = known.get(scenario.passage.column, ""), []
    for text in (text for text in group.shape.lists if text.introduced_by == scenario.role):
        for number, name in enumerate(text.names):
            if name not in group.listed:
                continue
            value, reason = group.listed[name]
            field = text_name(text.column, number)
            is_edited_here = reason is None and field in group.shape.fields
            notes = [
                f"{place.partition(':')[0]}: {SAYS_OF_CHECK[state]}"
                for place, state in revalidation.items()
                if about_of(place) == name
            ]
            compared = _compared(value, passage)
            found.append(
                {
                    "label": listed_label(name, None if blind else reason),
                    "meaning": text.meaning,
                    "field": field if is_edited_here else None,
                    "text": value,
                    "other": passage,
                    "is_passage": True,
                    **compared,
                    "note": "; ".join(filter(None, (compared["note"], *notes))),
                }
            )
    return found


def _compared(text: str, other: str) -> dict[str, Any]:
    """The text in pieces, those that `other` has not marked; most of it new: only a note."""
    pieces = differences(text, other)
    if differs_throughout(pieces):
        return {"pieces": [(text, False)], "note": "differs throughout"}
    return {"pieces": pieces, "note": ""}


def _says(
    group: GroupDetail, role: str, revalidation: Mapping[str, str], blind: bool
) -> tuple[str, str]:
    """The validator's result for the scenario (after the last edit, if any) and its state."""
    if blind:
        return "", ""
    if role in revalidation:
        return SAYS[revalidation[role]], revalidation[role]
    of_checks = {place.partition(":")[0]: state for place, state in revalidation.items()}
    if of_checks and role == group.shape.first.role:
        worst = max(revalidation.values(), key=("holds", "fails", "waiting").index)
        return f"{', '.join(of_checks)}: {SAYS_OF_CHECK[worst]}", worst
    for judgment in group.judgments:
        if judgment.scenario == role:
            chose = title_of(group.shape, judgment.choice)
            return f"{judgment.judge} chose {chose}", "holds" if judgment.agrees else "fails"
    return "", ""


def _before(group: GroupDetail) -> list[dict[str, str]]:
    if group.review is None or group.review.action != "edit":
        return []
    return [
        {"label": name.replace("_", " "), "text": str(text)}
        for name, text in group.review.before.items()
    ]
