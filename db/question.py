"""What a judge is asked about an item, what its answer is, and when the answer is right.

Four kinds. An answer is one label, stored as a text in `judgment.choice`, so that agreement, of
people and of models, is one query over labels whatever the kind:

    kind    answers                               expected            right
    pick    a candidate's label, none, several,   a candidate's label the same label
            ambiguous
    grade   a number of `labels`, ambiguous       a number or a bound the same number, or within it
    yes_no  yes, no, ambiguous                    yes or no           the same
    score   0 to 1, four decimals; ambiguous      a bound             within it

A bound is a comparison with a number: `>= 0.5`, `< 1`. It is what a threshold is: of stored answers
another bound decides again. "ambiguous" is an answer of every kind, and never right: a judge who
cannot decide has answered. An item without an expected answer has no right one.

A pick is about all of an item's candidates; the others are about one text. To grade four passages
is four items, each with its own answer, overlap and gold: `place` names them in their group, and
people get the items of a group in one study as one card
(docs/decisions/0015-a-card-is-the-items-of-one-place.md).
"""

import hashlib
import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, get_args

from db.errors import BadInput
from db.values import AMBIGUOUS, NONE, SEVERAL

Kind = Literal["pick", "grade", "yes_no", "score"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
# What is chosen on a screen: the place of a candidate, None for none of them, or another answer.
Shown = int | str | None
YES, NO = "yes", "no"
CHECK: Final = "check_"  # a run's task and drop reason: a check's name behind this
DECIMALS = 4  # of a stored score
_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_BOUND = re.compile(r"(>=|<=|>|<)\s*(\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Question:
    """A question of a recipe or of a study.

    `labels`: of a grade, its numbers in ascending order with their meanings; empty for the others.
    `prompt_sha256`: the prompt a model is asked with, "" for a question for people alone; `text`:
    what people are asked, "" for a question that none has been asked.
    """

    name: str
    kind: Kind
    labels: Mapping[str, str] = field(default_factory=dict)
    prompt_sha256: str = ""
    text: str = ""

    @cached_property
    def answers(self) -> tuple[str, ...]:
        """The answers there are, without ambiguous; empty where they are not a list.

        A pick's are its item's candidates, a score's any number.
        """
        return (YES, NO) if self.kind == "yes_no" else tuple(self.labels)

    def body(self) -> dict[str, Any]:
        """The question as JSON: what makes two questions the same one."""
        return {
            "name": self.name,
            "kind": self.kind,
            "labels": dict(self.labels),
            "prompt_sha256": self.prompt_sha256,
            **({"text": self.text} if self.text else {}),
        }

    @cached_property
    def key(self) -> str:
        """The sha256 of its body: the store keeps a question once, whichever recipes ask it."""
        body = json.dumps(self.body(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(body.encode()).hexdigest()

    @property
    def is_ordered(self) -> bool:
        """Whether its answers have an order, in which some differ more than others."""
        return self.kind in ("grade", "score")

    def place(self, about: str) -> str:
        """What its item about a text, or "" about all of them, is called in the group."""
        return f"{self.name}:{about}" if about else self.name

    def check(self, answer: str, candidates: Sequence[str] = (), of: str = "") -> None:
        """Raise BadInput unless this is an answer to the question, in its stored form.

        `candidates` are the labels of the item's passages, `of` is the item's name.
        """
        if answer == AMBIGUOUS:
            return
        if self.kind == "pick":
            known = answer in (*candidates, NONE, SEVERAL)
        elif self.kind == "score":
            known = score(answer) == answer
        else:
            known = answer in self.answers
        if not known:
            if self.kind == "pick":
                raise BadInput(
                    f"{answer!r} is not a candidate of {of}", code="choice_not_candidate"
                )
            raise BadInput(
                f"{answer!r} is no answer to the question {self.name!r} of {of}",
                f"one of {', '.join(self.answers)} or {AMBIGUOUS}"
                if self.answers
                else f"a number from 0 to 1 of at most {DECIMALS} decimals, or {AMBIGUOUS}",
                code="answer_invalid",
            )

    def chosen(self, order_shown: Sequence[str], shown: Shown) -> str:
        """The answer that was chosen on a screen with the candidates in this order.

        Raises BadInput for a place without a passage, or what is no answer. A candidate is named by
        its place alone: whoever judges does not know its label, and no error says it.
        """
        if isinstance(shown, str):
            self.check(shown)
            return shown
        if self.kind != "pick":
            raise BadInput(
                f"the question {self.name!r} is answered by a label, not by a passage",
                "choose one of its answers",
                code="answer_invalid",
            )
        if shown is None:
            return NONE
        if not 0 <= shown < len(order_shown):
            raise BadInput(
                f"there is no passage {shown + 1}: there are {len(order_shown)}",
                "choose one of them",
                code="passage_unknown",
                number=shown + 1,
                count=len(order_shown),
            )
        return str(order_shown[shown])

    def options(self, candidates: Sequence[str], given: Sequence[str] = ()) -> tuple[str, ...]:
        """The answers to choose from: of a score, which has no list, those `given` by others."""
        if self.kind == "pick":
            return (*candidates, NONE, SEVERAL, AMBIGUOUS)
        listed = self.answers or sorted({*given} - {AMBIGUOUS}, key=float)
        return (*listed, AMBIGUOUS)

    def shown(self, order_shown: Sequence[str], answer: str) -> Shown:
        """How a stored answer, or an expected one, is shown: `chosen` the other way round."""
        if self.kind != "pick" or answer in (SEVERAL, AMBIGUOUS):
            return answer
        return None if answer == NONE else [str(label) for label in order_shown].index(answer)

    def check_expected(self, expected: str, where: str, candidates: Sequence[str] = ()) -> None:
        """Raise BadInput, which begins with `where`, unless an answer could be expected so.

        `candidates`: as in `check`.
        """
        bound = _BOUND.fullmatch(expected)
        numbers = [float(one) for one in self.labels] if self.kind == "grade" else [0.0, 1.0]
        if self.kind in ("grade", "score") and bound:
            if any(is_within(number, expected) for number in numbers) and not all(
                is_within(number, expected) for number in numbers
            ):
                return
            what = f"{expected!r} holds of every answer or of none"
        elif expected in (self.answers or candidates):
            return
        else:
            listed = ", ".join(self.answers or candidates) or "a bound"
            what = f"{expected!r} cannot be expected; {listed}" + (
                ", such as '>= 0.5'" if self.kind == "score" else ""
            )
        raise BadInput(
            f"{where}: {what}",
            "expect an answer of the question, or a bound that some answers meet",
            code="question_expected_invalid",
        )

    def value(self, answer: str) -> float | None:
        """The answer as a number: of a grade or a score itself, of yes 1 and of no 0; else None."""
        if answer in (YES, NO):
            return float(answer == YES)
        return number_of(answer)


PICK: Final = Question("passage", "pick")  # of every item without another question


def question_from(body: Mapping[str, Any], where: str = "the question") -> Question:
    """The question of a stored body. Raises BadInput, which begins with `where`."""
    kind, labels = body.get("kind"), body.get("labels") or {}
    if kind not in KINDS:
        raise _bad(where, f"question = {kind!r} is none of {', '.join(KINDS)}", "kind")
    if kind != "grade" and labels:
        raise _bad(where, f"labels are of a grade, and this is {kind!r}", "labels")
    if kind == "grade":
        if not isinstance(labels, Mapping) or len(labels) < 2:
            raise _bad(where, "a grade has two labels or more, as in 0 = 'no', 1 = 'yes'", "labels")
        for label, meaning in labels.items():
            if not re.fullmatch(r"0|[1-9]\d{0,2}", label) or not isinstance(meaning, str):
                raise _bad(
                    where, f"{label!r} = {meaning!r} is not a number and its meaning", "labels"
                )
        labels = {label: labels[label] for label in sorted(labels, key=int)}
    prompt, text = (str(body.get(key) or "") for key in ("prompt_sha256", "text"))
    return Question(str(body["name"]), kind, labels, prompt, text)


def about_of(place: str) -> str:
    """The text that an item of this place asks about: "P1-" of `fits:P1-`; "" for all of them."""
    return place.partition(":")[2]


def about_shown(place: str, order_shown: Sequence[str]) -> int | str | None:
    """What an item of this place asks about, as shown: the place of a passage in the order, "query"
    or "instruction"; None for all of them."""
    about = about_of(place)
    return order_shown.index(about) if about in order_shown else about or None


def is_right(answer: str, expected: str | None) -> bool | None:
    """Whether an answer is as expected; None where nothing is expected."""
    if expected is None:
        return None
    if not _BOUND.fullmatch(expected):
        return answer == expected
    number = number_of(answer)
    return number is not None and is_within(number, expected)


def is_within(number: float, bound: str) -> bool:
    """Whether a number is within a bound such as `>= 0.5`."""
    match = _BOUND.fullmatch(bound)
    assert match is not None, bound
    return _COMPARE[match[1]](number, float(match[2]))


def number_of(answer: str) -> float | None:
    """The number that an answer is; None for a word."""
    try:
        return float(answer) if answer[:1].isdigit() else None
    except ValueError:
        return None


def score(text: str) -> str | None:
    """A score as it is stored: 0.7 of "0.70"; None for what is not a number from 0 to 1."""
    if not re.fullmatch(r"\d{1,3}(?:\.\d{1,20})?|\.\d{1,20}", text):
        return None
    number = round(float(text), DECIMALS)
    return f"{number:.{DECIMALS}f}".rstrip("0").rstrip(".") if 0 <= number <= 1 else None


def _bad(where: str, what: str, code: str) -> BadInput:
    remedy = 'question = "grade" takes labels = { 0 = "no", 1 = "yes" }; yes_no and score take none'
    return BadInput(f"{where}: {what}", remedy, code=f"question_{code}")
