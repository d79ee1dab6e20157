"""Checks: questions that a recipe has a model asked about single texts of each group.

    [checks.fits]
    question = "yes_no"          # or grade, with a table of labels, or score
    prompt = "fits.md"           # and model, temperature …, as of a stage
    model = "gpt-4o-mini"
    over = ["P+", "P1-"]         # one item for each of these texts
    with = ["I+", "Q+"]          # shown with it
    votes = 3                    # more than half must agree; of scores the median counts
    expected = {"P+" = "yes", "P1-" = "no"}

A group is dropped where an answer is not the expected one; texts without one are asked about, and
decide nothing. The prompt names its texts by their kind: {instruction}, {query}, {passage}.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Final

from curation.recipe.slots import DROP_GROUP, DROP_TEXT, Rules
from curation.recipe.tasks import ANSWERED_WITH, TEXT_LANGUAGE, VALIDATION, Task, TaskSpec
from db.errors import BadInput
from db.question import CHECK, Question, is_right, number_of, question_from, score
from db.shape import GroupText, ListText, Shape
from db.values import AMBIGUOUS

OUTCOMES: Final = {DROP_TEXT: "nothing drops it", DROP_GROUP: "nothing drops its group"}
KEYS: Final = ("question", "labels", "over", "with", "votes", "expected")


@dataclass(frozen=True)
class Check:
    """A question asked about each text of `over`, with the texts of `given` next to it, by sign."""

    question: Question
    over: tuple[GroupText, ...]
    given: tuple[GroupText, ...]
    expected: Mapping[str, str] = field(default_factory=dict)
    votes: int = 1

    @property
    def name(self) -> str:
        return self.question.name

    @property
    def task(self) -> Task:
        return CHECK + self.name

    @property
    def spec(self) -> TaskSpec:
        """The task of its calls. The text asked about has to be in the prompt."""
        fields = tuple(text.field for text in (*self.given, self.over[0]))
        return TaskSpec(
            (*fields, TEXT_LANGUAGE),
            ANSWERED_WITH[self.question.kind],
            VALIDATION,
            needed=(self.over[0].field,),
        )

    @property
    def answers(self) -> int:
        """How many answers it takes at most about a group."""
        return sum(len(text.names) for text in self.over) * self.votes

    def place(self, name: str) -> str:
        """What its item about a text is called in the group: "fits:P1-", "fits:N[1]"."""
        return self.question.place(name)

    def with_prompt(self, prompt_sha256: str) -> "Check":
        """The check with its prompt, which is part of its question's identity."""
        return replace(self, question=replace(self.question, prompt_sha256=prompt_sha256))

    def decide(self, choices: Sequence[str]) -> str:
        """One answer of several votes: that of more than half, of scores the median of them."""
        numbers = [one for one in map(number_of, choices) if one is not None]
        if self.question.kind == "score" and 2 * len(numbers) > len(choices):
            return score(f"{median(numbers):.4f}") or AMBIGUOUS
        most = max(choices, key=choices.count)
        return most if 2 * choices.count(most) > len(choices) else AMBIGUOUS

    def body(self) -> dict[str, Any]:
        """The check as JSON; its prompt, model and sampling are those of its stage."""
        return {
            "name": self.name,
            "question": self.question.kind,
            "over": [text.sign for text in self.over],
            "with": [text.sign for text in self.given],
            "votes": self.votes,
            "expected": dict(self.expected),
            **({"labels": dict(self.question.labels)} if self.question.labels else {}),
        }


def check_from(body: Mapping[str, Any], shape: Shape, where: str) -> Check:
    """The check of a recipe's table or a stored body, without its prompt. Raises BadInput."""
    question = question_from(
        {"name": body["name"], "kind": body.get("question"), "labels": body.get("labels")}, where
    )
    if question.kind == "pick":
        what = "question = 'pick' is that of [validation]; a check asks about one text"
        raise BadInput(
            f"{where}: {what}",
            "take yes_no, grade or score",
            code="check_question_invalid",
        )
    over, given = (_texts(body, key, shape, where) for key in ("over", "with"))
    if not over or len({text.field for text in over}) > 1:
        what = "over names the texts it is asked about, one or more of one field"
        one = next((sign for sign in body.get("expected", ()) if sign in shape.slots), None)
        raise BadInput(
            f"{where}: {what}",
            f'write over = ["{one or _one_of(shape)}"]',
            code="check_over_invalid",
        )
    several = next((text for text in given if isinstance(text, ListText)), None)
    if several is not None:
        raise BadInput(
            f"{where}: with names {several.sign!r}, of which a group may have none or several",
            "take it into over, or name another text",
            code="check_texts_invalid",
        )
    fields = [text.field for text in (*given, over[0])]
    if len(set(fields)) < len(fields):
        twice = next(one for one in fields if fields.count(one) > 1)
        raise BadInput(
            f"{where}: over and with name several of {twice}, of which a prompt shows one",
            "name one of them, and write a second check for the other",
            code="check_field_twice",
        )
    votes = body.get("votes", 1)
    if isinstance(votes, bool) or not isinstance(votes, int) or votes < 1:
        raise BadInput(
            f"{where}: votes = {votes!r} is not a whole number from 1 up",
            "write how often it is asked, as votes = 3",
            code="votes_invalid",
        )
    expected = body.get("expected", {})
    if not isinstance(expected, Mapping):
        raise BadInput(
            f"{where}: expected is a table of signs and answers",
            f'write expected = {{ "{over[0].sign}" = "no" }}',
            code="check_expected_invalid",
        )
    judged = {text.sign for text in over}
    for sign, answer in expected.items():
        if sign not in judged:
            raise BadInput(
                f"{where}: expected names {sign!r}, which over does not",
                f"add {sign!r} to over, or take it out of expected",
                code="check_expected_invalid",
            )
        question.check_expected(str(answer), f"{where}, expected.{sign!r}")
    return Check(
        question, over, given, {sign: str(answer) for sign, answer in expected.items()}, votes
    )


def require_judged(
    rules: Rules, checks: Sequence[Check], picked: Collection[str], where: str
) -> None:
    """Raise BadInput for a rule that no answer brings about, or by which a text that none is
    about takes a place.

    picked: the passages that a judge picks from; one that it misses drops its group, too.
    """
    for sign, effect in rules.items():
        judging = [check for check in checks if sign in check.expected]
        if not judging and not (effect == DROP_GROUP and sign in picked):
            is_over = any(sign in (text.sign for text in check.over) for check in checks)
            what = f"no check {'expects an answer about' if is_over else 'is over'} {sign!r}, so "
            what += OUTCOMES.get(effect, "nothing takes its place")
            where_to = "expected" if is_over else "over and expected"
            remedy = f"add {sign!r} to the {where_to} of a check, or leave the rule out"
        elif effect in OUTCOMES:
            continue
        elif not (both := [check for check in judging if effect in check.expected]):
            what = f"no check that judges {sign!r} expects an answer about {effect!r}, which takes "
            what += "its place"
            remedy = f"add {effect!r} to the over and expected of one"
        elif unlike := next((check for check in both if not _agree(check, sign, effect)), None):
            one, other = unlike.expected[sign], unlike.expected[effect]
            what = (
                f"the check {unlike.name!r} expects {one} of {sign!r} and {other} of {effect!r}, "
            )
            what += "which takes its place"
            remedy = "expect the same of both"
        else:
            continue
        raise BadInput(f"{where}, [rules.{sign!r}]: {what}", remedy, code="shape_rule")


def _agree(check: Check, one: str, other: str) -> bool:
    """Whether an answer is as expected of both texts; a question of numbers has none to try."""
    answers, expected = check.question.answers, check.expected
    return not answers or any(
        is_right(answer, expected[one]) and is_right(answer, expected[other]) for answer in answers
    )


def _one_of(shape: Shape) -> str:
    """A text of the shape for the example of a remedy: the first passage that is written."""
    written = (text.sign for text in shape.slots.values() if not text.from_source)
    return next(
        (sign for sign in written if shape.slots[sign].is_passage), shape.first.passage.sign
    )


def _texts(body: Mapping[str, Any], key: str, shape: Shape, where: str) -> tuple[GroupText, ...]:
    signs = body.get(key, [])
    if not isinstance(signs, list) or len({str(sign) for sign in signs}) < len(signs):
        raise BadInput(
            f"{where}: {key} is a list of signs, each once",
            f'write {key} = ["{_one_of(shape)}"]',
            code="check_texts_invalid",
        )
    unknown = next((sign for sign in map(str, signs) if sign not in shape.slots), None)
    if unknown is not None:
        raise BadInput(
            f"{where}: {key} names {unknown!r}; the texts are {', '.join(shape.slots)}",
            "take some of these",
            code="check_text_unknown",
        )
    return tuple(shape.slots[sign] for sign in signs)
