"""The workbench (a Streamlit component, version 2): rows, groups and model calls as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.access.identity import SessionUser
from app.access.session_user import require_permission
from app.groups.group import listed_label, title_of
from app.kit.card_files import nothing
from app.kit.outbox_card import card_component, outbox_of, outbox_scope
from app.operations.groups import PAGE, Prompts
from app.operations.judging.desk import Desk, GroupOnDesk, OnDesk, on_desk
from app.text.remedies import in_pages
from app.text.texts import differences, differs_throughout
from curation.recipe.drop_reasons import reason_text
from curation.recipe.tasks import VALIDATION
from db.question import CHECK, about_of
from db.review.texts import missing_texts
from db.run.group_detail import GroupCall, GroupShown
from db.shape import Scenario, text_name

CARD = card_component("workbench", "groups/workbench", runs="Workbench")
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
        "groups": [group_as_json(each, viewer=viewer) for each in found.groups],
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


def group_as_json(on_desk: GroupOnDesk, *, viewer: str = "") -> dict[str, Any]:
    """The group as sent to the browser: the row of every door, and what the card draws of it."""
    group, review = on_desk.group, on_desk.group.review
    known = _known(group)
    why_not = in_pages(on_desk.why_not_validated)
    return {
        "group": group.as_json(),
        "mine": review is not None and review.reviewed_by == viewer,
        "notes": [*_notes(group, on_desk.carried_from_run), *filter(None, [why_not])],
        "missing": [text.sign for text in missing_texts(group.shape, known)],
        "columns": _columns(group, known, on_desk.revalidation, on_desk.is_validating),
    }


def calls(group: GroupShown, prompts: Prompts) -> dict[str, Any]:
    """The group's model calls with their prompts and raw answers."""
    return {
        "group": group.id,
        "list": [
            {
                "title": call.title,
                "parts": [
                    *(
                        [f"Prompt ({message['role']})", message["content"]]
                        for message in prompts[call.call_id]
                    ),
                    ["Raw answer", call.answer],
                ],
            }
            for call in group.calls
        ],
    }


def _models(calls: Sequence[GroupCall]) -> str:
    """Which models wrote the group's texts and judged them, and where they answered."""
    by: dict[str, dict[str, dict[str, None]]] = {}
    for each in calls:
        done = "judged" if each.task.startswith((VALIDATION, CHECK)) else "written"
        by.setdefault(each.where, {}).setdefault(each.named, {})[done] = None
    places = [
        ", ".join(f"{' and '.join(done)} by the model {name}" for name, done in names.items())
        + f" {where}"
        for where, names in by.items()
    ]
    text = "; ".join(places)
    return text[:1].upper() + text[1:]


def _notes(group: GroupShown, carried_from_run: int | None) -> list[str]:
    review, notes = group.review, list[str]()
    if group.state in ("waiting", "leased"):  # to a blind reviewer it is ""
        notes.append("Not finished: it can be reviewed when the run has finished it.")
    if group.calls:
        notes.append(_models(group.calls))
    if group.drop_reason:
        detail = f": {group.drop_detail}" if group.drop_detail else ""
        notes.append(f"Dropped: {reason_text(group.drop_reason)}{detail}")
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
        if group.verdict == "dropped" and review.action == "approve":
            notes.append("Rescued: a release contains this group because it is approved.")
    return notes


def _known(group: GroupShown) -> dict[str, str]:
    """The group's texts by column, those of the pair too."""
    known = {
        group.shape.first.query.column: group.query,
        group.shape.first.passage.column: group.passage,
    }
    for text in group.shape.all_texts:
        if text.introduced_by in group.triplets:
            known[text.column] = getattr(group.triplets[text.introduced_by], text.field)
    return known


def _columns(
    group: GroupShown,
    known: Mapping[str, str],
    revalidation: Mapping[str, str],
    is_validating: bool,
) -> list[dict[str, Any]]:
    found, shape = [], group.shape
    for role, scenario in shape.scenarios.items():
        other = None if scenario is shape.first else shape.first
        says, state = _says(group, role, revalidation)
        found.append(
            {
                "title": scenario.title,
                "scenario": scenario.label,
                "says": says,
                "state": state,
                "validating": is_validating,
                "parts": [
                    *_parts(group, known, scenario, other),
                    *_listed(group, scenario, known, revalidation),
                ],
            }
        )
    return found


def _parts(
    group: GroupShown, known: Mapping[str, str], scenario: Scenario, other: Scenario | None
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
    group: GroupShown,
    scenario: Scenario,
    known: Mapping[str, str],
    revalidation: Mapping[str, str],
) -> list[dict[str, Any]]:
    """The texts of the scenario's lists next to its passage; the group's own are edited and taken
    out, and where there is room one is added."""
    passage, found = known.get(scenario.passage.column, ""), []
    listed = {each.name: each for each in group.lists}
    for text in (text for text in group.shape.lists if text.introduced_by == scenario.role):
        for number, name in enumerate(text.names):
            if (one := listed.get(name)) is None:
                continue
            field = text_name(text.column, number)
            is_edited_here = name in group.texts and field in group.shape.fields
            notes = [
                f"{place.partition(':')[0]}: {SAYS_OF_CHECK[state]}"
                for place, state in revalidation.items()
                if about_of(place) == name
            ]
            compared = _compared(one.text, passage)
            found.append(
                {
                    "label": listed_label(one),
                    "meaning": text.meaning,
                    "field": field if is_edited_here else None,
                    "text": one.text,
                    "other": passage,
                    "is_passage": True,
                    "leaves": True,
                    "is_fixed": text.from_source,
                    **compared,
                    "note": "; ".join(filter(None, (compared["note"], *notes))),
                }
            )
        free = [number for number, name in enumerate(text.names) if name not in group.texts]
        free.sort(key=lambda number: text.names[number] in listed)
        if free and not text.from_source and not text.stands_in_for:
            found.append(
                {
                    "label": f"Add a passage {text.sign}",
                    "meaning": text.meaning,
                    "field": text_name(text.column, free[0]),
                    "text": "",
                    "other": passage,
                    "is_passage": True,
                    "is_new": True,
                    "pieces": [],
                    "note": "",
                }
            )
    return found


def _compared(text: str, other: str) -> dict[str, Any]:
    """The text in pieces, those that `other` has not marked; most of it new: only a note."""
    pieces = differences(text, other)
    if differs_throughout(pieces):
        return {"pieces": [(text, False)], "note": "differs throughout"}
    return {"pieces": pieces, "note": ""}


def _says(group: GroupShown, role: str, revalidation: Mapping[str, str]) -> tuple[str, str]:
    """The validator's result for the scenario (after the last edit, if any) and its state."""
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
