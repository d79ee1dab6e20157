"""Deciding a finished run again by changed rules, from stored answers: nothing is requested.

What a judge answered about the texts as the run wrote them is put together by the new rules, and
texts are filtered again where the filters changed. A group that was dropped before it was judged
has no answers: it stays dropped, for its reason. So the verdicts are those of a new run with the
same rules, which would find every answer stored; only the reason of such a group may be another
one there. So it is of the texts of lists, of which each is decided by itself.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from sqlalchemy import String, cast, func, or_, select
from sqlalchemy.orm import Session

from curation.recipe.checks import Check
from curation.recipe.recipe import ANYTHING, DECIDING, Recipe, needs_answers
from curation.recipe.settings import YES_OR_NO, Filters, Validation
from curation.recipe.tasks import tasks_of
from curation.rules.filters import Drop, check_text
from curation.rules.verdict import settle, states_of, tally_again
from db.corpus.texts import passage_texts
from db.errors import BadInput, Refused
from db.question import Question, about_of
from db.requests import Request, option
from db.review.texts import group_texts
from db.run.versions import DecidedGroup, Place, as_written, first_texts
from db.shape import SPARE, STANDS_IN, Field, Shape, text_name
from db.tables import Group, Item, Judgment, Pair, Passage, Review, SlotText

BATCH = 500
LENGTHS: Final[dict[str, Field]] = {
    "max_instruction_words": "instruction",
    "max_query_words": "query",
    "max_passage_words": "passage",
}
AT_ONCE = 10_000  # answers read
DROPPED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "quoted_words": ("quotes_instruction",),
    "in_pair_language": ("language_changed",),
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
        check.place(name): check.expected.get(text.sign)
        for check in after.checks
        for text in check.over
        if check.expected.get(text.sign) != old[check.name].expected.get(text.sign)
        for name in text.names
    }


def decide_again(
    session: Session, run_id: int, before: Recipe, after: Recipe
) -> Iterator[DecidedGroup]:
    """How each judged group of a run ends by the recipe's rules `after`, in the order of groups.

    Raises Refused where a filter lets texts through that were dropped: what follows them was never
    written; and where the run has no answers.
    """
    listed = first_texts(session, run_id)
    _require_written(session, run_id, before, after, listed)
    checks = {
        check.place(name): (check, check.expected.get(text.sign))
        for check in after.checks
        for text in check.over
        for name in text.names
    }
    places = [*after.shape.roles, *checks]
    drops = _filtered(session, run_id, after) if before.filters != after.filters else {}
    found = False
    for group_id, rows in groupby(_answers(session, run_id), key=itemgetter(0)):
        found = True
        items = [_answer(row, checks.get(row[1]), after) for row in rows]
        items.sort(key=lambda item: places.index(item.scenario))
        written = {text_name(*place): reason for place, reason in listed[group_id].items()}
        filtered = drops.get(group_id, {})
        unjudged = _unjudged(written, items) | {
            name: drop for name, drop in filtered.items() if name in written
        }
        settled = settle(after.shape, written, unjudged, items)
        first = next((drop for name, drop in filtered.items() if name not in unjudged), None)
        drop = first or settled.drop
        yield DecidedGroup(
            group_id,
            None if drop is None else drop.reason,
            None if drop is None else drop.detail,
            states_of(after.shape, written, settled),
        )
    if not found:
        raise Refused(
            f"run {run_id} has no stored answers of its judges to decide by",
            "decide a run again that was made here",
            code="run_without_answers",
        )


def _unjudged(written: Mapping[str, str | None], items: Sequence[_Answer]) -> dict[str, Drop]:
    """The lists' texts that were dropped before they were judged: no answer can bring them back."""
    judged = {about_of(item.scenario) for item in items}
    return {
        name: Drop(reason, f"{name} was dropped before it was judged: {reason}")
        for name, reason in written.items()
        if reason not in (None, SPARE, STANDS_IN) and name not in judged
    }


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


def _answer(row: Sequence[Any], of: tuple[Check, str | None] | None, rules: Recipe) -> _Answer:
    """The answer of a row by the rules; `of`: its check and what that expects, None for a pick."""
    _, scenario, choice, expected, text = row
    check, expected = of or (None, expected)
    detail: Mapping[str, Any] = {} if text == "{}" else json.loads(text)
    decides: Validation | Check = rules.validation if check is None else check
    if "votes" in detail:
        choice, detail = tally_again(detail, decides.votes, decides.decide)
    return _Answer(scenario, choice, expected, detail, None if check is None else check.question)


def _require_written(
    session: Session,
    run_id: int,
    before: Recipe,
    after: Recipe,
    listed: Mapping[int, Mapping[Place, str | None]],
) -> None:
    """Raise Refused where the filters let a text through that a group was dropped for, or `listed`
    has as dropped; and where they change which texts a prompt was given."""
    slots = {text.sign for text in before.shape.lists}
    if before.filters != after.filters:
        for step in before.shape.steps:
            if given := slots.intersection(step.inputs):
                raise needs_answers(
                    f"the step {step.name!r} was given the texts of {min(given)!r} that passed "
                    "[filters]; another filter"
                )
    alone = Counter(reason for texts in listed.values() for reason in texts.values())
    for each in fields(Filters):
        old, new = (getattr(recipe.filters, each.name) for recipe in (before, after))
        if new == old or (new < old) != (each.name in YES_OR_NO):
            continue
        dropped = select(func.count()).where(Group.run_id == run_id, Group.verdict == "dropped")
        kind = LENGTHS.get(each.name)
        reasons = DROPPED_BY.get(each.name, ("too_long",) if kind == "passage" else ())
        if texts := sum(alone[reason] for reason in reasons):
            raise needs_answers(
                f"filters.{each.name} = {new} lets {texts:,} texts through that were dropped, and"
            )
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


def _filtered(session: Session, run_id: int, rules: Recipe) -> dict[int, dict[str, Drop]]:
    """The texts of the judged groups of a run that the filters drop, by name in the order they were
    written."""
    shape, found = rules.shape, dict[int, dict[str, Drop]]()
    order = [text for spec in tasks_of(shape).values() for text in spec.texts]
    for batch in _judged_texts(session, run_id, shape):
        for group_id, (texts, language) in batch.items():
            drops = {
                name: check_text(shape, text, texts[name], rules.filters, texts, language=language)
                for text in order
                for name in text.names
                if name in texts
            }
            found[group_id] = {name: drop for name, drop in drops.items() if drop is not None}
    return found


def _judged_texts(
    session: Session, run_id: int, shape: Shape
) -> Iterator[dict[int, tuple[dict[str, str], str]]]:
    """The texts by name, as the run wrote them, and the language of the pair of its groups that
    reached their judges, a batch at a time."""
    replaced = [shape.texts[text.stands_in_for] for text in shape.lists if text.stands_in_for]
    slots = [text.sign for text in shape.lists]
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
        for text in (text for text in replaced if not text.from_source):
            own = as_written(session, shape, text.sign, part)
            passages = passage_texts(session, own.values())
            for group_id, passage_id in own.items():
                found[group_id][0][text.sign] = passages[passage_id]
        listed = select(SlotText.group_id, SlotText.slot, SlotText.ordinal, Passage.text).join(
            Passage, Passage.id == SlotText.passage_id
        )
        for group_id, slot, number, passage in session.execute(
            listed.where(SlotText.group_id.in_(part), SlotText.slot.in_(slots))
        ):
            field = text_name(shape.slots[slot].column, number)
            found[group_id][0][text_name(slot, number)] = written[group_id].get(field, passage)
        yield found
