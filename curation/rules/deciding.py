"""Deciding a finished run again by changed rules, from stored answers: nothing is requested.

What a judge answered about the texts as the run wrote them is put together by the new rules, and
texts are filtered again where the filters changed. A group that was dropped before it was judged
has no answers: it stays dropped, for its reason. So the verdicts are those of a new run with the
same rules, which would find every answer stored; only the reason of such a group may be another
one there.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from sqlalchemy import String, cast, func, or_, select
from sqlalchemy.orm import Session

from curation.recipe.checks import Check
from curation.recipe.recipe import ANYTHING, DECIDING, Recipe, needs_answers
from curation.recipe.settings import Filters, Validation
from curation.recipe.tasks import tasks_of
from curation.rules.filters import Drop, check_text
from curation.rules.verdict import tally_again, verdict_of
from db.errors import BadInput, Refused
from db.question import Question
from db.requests import Request, option
from db.review.texts import group_texts
from db.run.versions import DecidedGroup
from db.shape import Field, Shape
from db.tables import Group, Item, Judgment, Pair, Passage, Review

BATCH = 500
LENGTHS: Final[dict[str, Field]] = {
    "max_instruction_words": "instruction",
    "max_query_words": "query",
    "max_passage_words": "passage",
}
AT_ONCE = 10_000  # answers read
DROPPED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "quoted_words": ("quotes_instruction",),
    "same_language": ("no_language", "language_not_named"),
}


class RunDecide(Request):
    """A finished run decided again by other rules over its stored answers, as a new version."""

    run_id: int = option(..., "The run.", names=(), metavar="RUN")
    settings: tuple[str, ...] = option(
        (),
        "A rule in place of the recipe's: validation.agree, validation.votes, filters.NAME, "
        "checks.NAME.expected.SIGN or checks.NAME.votes.",
        names=("--set",),
        metavar="PLACE=VALUE",
    )
    preview: bool = option(False, "Only count what would change.")


class _Answer(NamedTuple):
    """An item with its answer by the rules (`curation.rules.verdict.Answered`)."""

    scenario: str
    choice: str
    expected: str | None
    detail: Mapping[str, Any]
    question: Question | None


def changed_rules(before: Recipe, after: Recipe) -> list[str]:
    """What differs between the rules of two recipes of the same checks, as settings. Raises
    BadInput for nothing."""
    rules = [_rules(recipe) for recipe in (before, after)]
    found = [
        f"{place}={rules[1][place]}" for place in rules[1] if rules[1][place] != rules[0][place]
    ]
    if not found:
        raise BadInput(
            "no rule differs from the recipe's, by which version 1 was decided",
            "give one, as in `set=validation.agree=3`",
            code="rules_unchanged",
        )
    return found


def _rules(recipe: Recipe) -> dict[str, str]:
    """Every rule by its place, as a setting has it."""
    found = {f"validation.{name}": str(getattr(recipe.validation, name)) for name in DECIDING}
    for each in fields(Filters):
        found[f"filters.{each.name}"] = str(getattr(recipe.filters, each.name)).lower()
    for check in recipe.checks:
        found[f"checks.{check.name}.votes"] = str(check.votes)
        for text in check.over:
            place = f"checks.{check.name}.expected.{text.sign}"
            found[place] = check.expected.get(text.sign, ANYTHING)
    return found


def changed_expectations(before: Recipe, after: Recipe) -> dict[str, str | None]:
    """The right answers that the rules change, by the item's place in its group."""
    old = {one.name: one for one in before.checks}
    return {
        check.place(text.sign): check.expected.get(text.sign)
        for check in after.checks
        for text in check.over
        if check.expected.get(text.sign) != old[check.name].expected.get(text.sign)
    }


def decide_again(
    session: Session, run_id: int, before: Recipe, after: Recipe
) -> Iterator[DecidedGroup]:
    """How each judged group of a run ends by the recipe's rules `after`, in the order of groups.

    Raises Refused where a filter lets texts through that were dropped: what follows them was never
    written; and where the run has no answers.
    """
    _require_written(session, run_id, before, after)
    checks = {check.place(text.sign): check for check in after.checks for text in check.over}
    places = [*after.shape.roles, *checks]
    drops = _filtered(session, run_id, after) if before.filters != after.filters else {}
    found = False
    for group_id, rows in groupby(_answers(session, run_id), key=itemgetter(0)):
        found = True
        items = [_answer(row, checks.get(row[1]), after) for row in rows]
        items.sort(key=lambda item: places.index(item.scenario))
        drop = drops.get(group_id) or verdict_of(items)
        yield (group_id, None, None) if drop is None else (group_id, drop.reason, drop.detail)
    if not found:
        raise Refused(
            f"run {run_id} has no stored answers of its judges to decide by",
            "decide a run again that was made here",
            code="run_without_answers",
        )


def _answers(session: Session, run_id: int) -> Iterator[Sequence[Any]]:
    """(group, place, choice, right answer, detail as JSON) of what the run's judges answered, by
    group. Of edited groups, about the texts before the edit."""
    query = (
        select(
            Item.group_id,
            Item.scenario,
            Judgment.choice,
            Item.expected,
            cast(Judgment.detail, String),  # most are `{}`: of 300,000 a driver would decode each
        )
        .join(Judgment, Judgment.item_id == Item.id)
        .join(Group, Group.id == Item.group_id)
        .where(
            Group.run_id == run_id,
            Item.revision == 1,
            # not those of a second judge, or about an edit (`db.run.group_queue`)
            Judgment.event_id.startswith(f"run-{run_id}-group-"),
        )
        .order_by(Item.group_id)
    )
    yield from session.execute(query, execution_options={"yield_per": AT_ONCE})


def _answer(row: Sequence[Any], check: Check | None, rules: Recipe) -> _Answer:
    _, scenario, choice, expected, text = row
    detail: Mapping[str, Any] = {} if text == "{}" else json.loads(text)
    decides: Validation | Check = rules.validation if check is None else check
    if check is not None:
        expected = check.expected.get(scenario.removeprefix(f"{check.name}:"))
    if "votes" in detail:
        choice, detail = tally_again(detail, decides.votes, decides.decide)
    return _Answer(scenario, choice, expected, detail, None if check is None else check.question)


def _require_written(session: Session, run_id: int, before: Recipe, after: Recipe) -> None:
    """Raise Refused where the filters let a text through that a group was dropped for."""
    for each in fields(Filters):
        old, new = (getattr(recipe.filters, each.name) for recipe in (before, after))
        if new == old or (new < old) != (each.name == "same_language"):
            continue
        dropped = select(func.count()).where(Group.run_id == run_id, Group.verdict == "dropped")
        kind = LENGTHS.get(each.name)
        if kind is None:
            dropped = dropped.where(Group.drop_reason.in_(DROPPED_BY[each.name]))
        else:
            names = [
                text.sign if kind == "passage" else text.column
                for text in before.shape.written
                if text.field == kind
            ]
            of_kind = (
                Group.drop_detail.startswith(f"{name} has", autoescape=True) for name in names
            )
            dropped = dropped.where(Group.drop_reason == "too_long", or_(*of_kind))
        if groups := session.scalar(dropped):
            raise needs_answers(
                f"filters.{each.name} = {new} lets texts through that {groups:,} groups were "
                "dropped for, and"
            )


def _filtered(session: Session, run_id: int, rules: Recipe) -> dict[int, Drop]:
    """The judged groups of a run that the filters drop, each with its first drop."""
    shape, found = rules.shape, dict[int, Drop]()
    order = [text for spec in tasks_of(shape).values() for text in spec.texts]
    for batch in _judged_texts(session, run_id, shape):
        for group_id, (texts, language) in batch.items():
            checked = (
                check_text(shape, text, texts[text.sign], rules.filters, texts, language=language)
                for text in order
            )
            if drop := next(filter(None, checked), None):
                found[group_id] = drop
    return found


def _judged_texts(
    session: Session, run_id: int, shape: Shape
) -> Iterator[dict[int, tuple[dict[str, str], str]]]:
    """The texts by sign, as the run wrote them, and the language of the pair of its groups that
    reached their judges, a batch at a time."""
    judged = select(Item.id).where(Item.group_id == Group.id, Item.revision == 1)
    ids = session.scalars(
        select(Group.id).where(Group.run_id == run_id, judged.exists()).order_by(Group.id)
    ).all()
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        written = group_texts(session, part)
        edits = select(Review.group_id, Review.before).where(
            Review.group_id.in_(part), Review.action == "edit"
        )
        for group_id, before in session.execute(edits.order_by(Review.id.desc())):
            written[group_id] |= before  # the first edit's last: the texts as the run wrote them
        rows = session.execute(
            select(Group.id, Pair.query, Passage.text, Pair.meta)
            .join(Pair, Pair.id == Group.pair_id)
            .join(Passage, Passage.id == Pair.passage_id)
            .where(Group.id.in_(part))
        )
        found = {}
        for group_id, query, passage, meta in rows:
            source = {"query": query, "passage": passage}
            texts = {
                sign: source[text.field] if text.from_source else written[group_id][text.column]
                for sign, text in shape.texts.items()
            }
            found[group_id] = texts, str(meta.get("language") or "")
        yield found
