"""The shape of a group: its texts, and its scenarios, which say which passage is right for what.

A group of InF-IR has seven texts, each with a sign (I+, P1-, …) and a column of releases. A
scenario is an instruction and a query of the group with the passage that is right for them; it is
judged as an item whose right answer has the scenario's role as its label.

Beside them a shape may have *lists*: slots of which a group has any number of texts, each kept or
dropped by itself (negatives), and stand-ins, which may take the place of a text that fails. `steps`
say which call writes which slots; without them each text is a call of its own.

A shape belongs to a run's recipe: `Recipe.shape`, and `shape_of(session, run_id)` for who has the
run alone; a release's manifest has that of its runs. Where none is named (`shape_in`) it is
InF-IR's. Runs of different shapes lie side by side in a store.

Order matters: of texts, for the columns of a release; of scenarios, for items, samples and pages.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from db.errors import BadInput
from db.values import AMBIGUOUS, NONE, SEVERAL

Role = str
Field = Literal["instruction", "query", "passage"]
FIELDS: Final[tuple[Field, ...]] = ("instruction", "query", "passage")
# Answers of InF-IR's runs are kept under the sample number place + 3 * vote: every shape numbers
# its first three scenarios so, and those after them from the next LANE on.
PLACES_IN_LANE, LANE = 3, 1_000_000
# What else a release's row, a prompt or a judge's answer has by name beside texts and scenarios.
RELEASE_COLUMNS: Final = (
    *("group_id", "query_id", "passage_id", "source", "licence"),
    *("verdict", "drop_reason", "review", "offline"),
)
TAKEN_COLUMNS: Final = (*RELEASE_COLUMNS, "document", "language", "text_language", "validation")
TAKEN_ROLES: Final = (NONE, AMBIGUOUS, SEVERAL)
MAX_COUNT = 32  # texts of a slot; their checks' votes are numbered apart up to there
# Why a list's text is not one of its group's, where no rule dropped it; a person took it out.
SPARE, STANDS_IN, TOO_FEW, TAKEN_OUT = "spare", "stands_in", "too_few_texts", "taken_out"
INSTEAD: Final = "instead_of"  # of a passage that a person added: what its place had before
_COLUMN = re.compile(r"[a-z][a-z0-9_]*")  # of a passage; others are names in prompts
_ROLE = re.compile(r"[a-z][a-z_]*")


@dataclass(frozen=True)
class GroupText:
    """One text of a group.

    `introduced_by`: the role of the scenario under which it is counted; others may use it again.
    `from_source`: it comes with the pair and is never edited. `meaning` is the card's wording.
    """

    sign: str
    field: Field
    column: str
    introduced_by: Role
    meaning: str
    from_source: bool = False

    @property
    def label(self) -> str:
        """As pages name it: "Instruction I-"."""
        return f"{self.field.capitalize()} {self.sign}"

    @property
    def role(self) -> str:
        """Under which analyses count it, within its field: its scenario's; a list's is its own."""
        return self.introduced_by

    @property
    def names(self) -> tuple[str, ...]:
        """What its texts in a group are called: one is called by its sign."""
        return (self.sign,)

    @property
    def is_passage(self) -> bool:
        return self.field == "passage"

    @property
    def task(self) -> str:
        """The task of a run that writes it: its column, or `passage_ROLE`."""
        return f"passage_{self.introduced_by}" if self.is_passage else self.column


@dataclass(frozen=True)
class ListText(GroupText):
    """A slot of which a group has up to `count` texts, each kept or dropped by itself.

    With `from_source` they are negatives that were given with the pair.

    `grade` is their claim under the instruction and query of the scenario that introduces them. A
    stand-in claims nothing (None): it takes the place of the text `stands_in_for` where that fails.
    A group needs `at_least` so many; with `drops_group` it is dropped with its first.
    """

    count: int = 1
    at_least: int = 0
    grade: Literal[0, 1] | None = None
    stands_in_for: str = ""
    drops_group: bool = False

    @property
    def role(self) -> str:
        return self.sign

    @property
    def names(self) -> tuple[str, ...]:
        """What its texts are called: `N`, `N[1]`, `N[2]`."""
        return tuple(text_name(self.sign, number) for number in range(self.count))


@dataclass(frozen=True)
class Step:
    """A call that writes the texts of some slots, by sign.

    `inputs` is what its prompt may name: signs, and names of what is drawn for each pair.
    """

    name: str
    gives: tuple[str, ...]
    inputs: tuple[str, ...]


def text_name(sign: str, ordinal: int) -> str:
    """What a text of a slot is called in its group."""
    return f"{sign}[{ordinal}]" if ordinal else sign


@dataclass(frozen=True)
class Scenario:
    """An instruction and a query, and the passage that is right for them."""

    role: Role
    title: str
    instruction: GroupText
    query: GroupText
    passage: GroupText

    @property
    def label(self) -> str:
        """(I-, Q+) → P1-"""
        return f"({self.instruction.sign}, {self.query.sign}) → {self.passage.sign}"

    @property
    def texts(self) -> tuple[GroupText, GroupText, GroupText]:
        """Instruction, query and passage."""
        return self.instruction, self.query, self.passage

    @property
    def signs(self) -> tuple[str, str, str]:
        """The signs of instruction, query and passage."""
        return self.instruction.sign, self.query.sign, self.passage.sign

    @property
    def columns(self) -> tuple[str, str, str]:
        """The release's columns of instruction, query and passage."""
        return self.instruction.column, self.query.column, self.passage.column


class Mark(NamedTuple):
    """How a text is drawn among others: its sign, its place among the texts of its field (its
    shade; -1 of an unknown one) and the signs of the instruction, query and passage it is of."""

    sign: str
    shade: int = -1
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """How far a passage serves a query under an instruction, or without one.

    `grade`: 2 answers and satisfies, 1 answers but violates the instruction, 0 does not answer.
    """

    instruction: GroupText | None
    query: GroupText
    passage: GroupText
    grade: Literal[0, 1, 2]


@dataclass(frozen=True)
class Shape:
    """The texts and scenarios of a recipe's groups. `texts` are by sign, `scenarios` by role.

    A complete group has each of `all_texts` once, and of `lists` as many as passed.
    """

    all_texts: tuple[GroupText, ...]
    all_scenarios: tuple[Scenario, ...]
    lists: tuple[ListText, ...] = ()
    steps: tuple[Step, ...] = ()

    @cached_property
    def texts(self) -> dict[str, GroupText]:
        return {text.sign: text for text in self.all_texts}

    @cached_property
    def slots(self) -> dict[str, GroupText]:
        """Every slot by sign: texts, then lists."""
        return self.texts | {text.sign: text for text in self.lists}

    @property
    def given_list(self) -> ListText | None:
        """The list that has the negatives given with the pair."""
        return next((text for text in self.lists if text.from_source), None)

    @property
    def given_negatives(self) -> int:
        """How many negatives given with a pair its groups have a place for."""
        return 0 if self.given_list is None else self.given_list.count

    @cached_property
    def scenarios(self) -> dict[Role, Scenario]:
        return {scenario.role: scenario for scenario in self.all_scenarios}

    @cached_property
    def roles(self) -> tuple[Role, ...]:
        return tuple(self.scenarios)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(text.column for text in self.all_texts)

    @cached_property
    def labels(self) -> dict[Role, str]:
        return {role: scenario.label for role, scenario in self.scenarios.items()}

    @cached_property
    def bits(self) -> dict[Role, int]:
        """A power of two for each role: sets of scenarios are kept as numbers."""
        return {role: 1 << place for place, role in enumerate(self.roles)}

    @cached_property
    def marks(self) -> dict[tuple[str, str], Mark]:
        """How each text is drawn, by its field and role; `text` is a text of no group."""
        found = {("text", "text"): Mark("text", 0)}
        for text in (*self.all_texts, *(each for each in self.lists if not each.stands_in_for)):
            of = self.scenarios[text.introduced_by]
            own = of.signs if text.sign in self.texts else (*of.signs[:2], text.sign)
            shade = sum(field == text.field for field, _ in found)
            found[text.field, text.role] = Mark(text.sign, shade, own)
        return found

    def mark(self, field: str, role: str) -> Mark:
        """How a text is drawn; one that is none of the shape is named by field and role."""
        return self.marks.get((field, role)) or Mark(f"{field} {role}")

    @property
    def all_bits(self) -> int:
        """The set of all scenarios."""
        return (1 << len(self.roles)) - 1

    @property
    def first(self) -> Scenario:
        """The scenario of the pair's own texts, of which the others are variants."""
        return self.all_scenarios[0]

    @property
    def last(self) -> Scenario:
        """The scenario that is complete last: a group that has it has them all."""
        return self.all_scenarios[-1]

    @property
    def completed_by(self) -> str:
        """The sign of a text that a group has only if it has them all."""
        last = self.last
        return (last.instruction if last.passage.from_source else last.passage).sign

    @cached_property
    def other_instruction(self) -> int | None:
        """The place of the next scenario with the query of scenario 0, another instruction."""
        return self._other("query", "instruction")

    @cached_property
    def other_query(self) -> int | None:
        """The place of the first scenario that has the instruction of scenario 0, another query."""
        return self._other("instruction", "query")

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the scenarios say of every passage, under each instruction and query, then under
        each query alone.

        A scenario's passage satisfies it. Another's with the same query answers that query, and
        without an instruction nothing is violated; one of another query does not answer.
        """
        pairs: list[tuple[GroupText | None, GroupText]] = [
            (scenario.instruction, scenario.query) for scenario in self.all_scenarios
        ]
        pairs += [(None, query) for _, query in pairs]
        return tuple(
            Claim(instruction, query, of.passage, _grade(instruction, query, of))
            for instruction, query in dict.fromkeys(pairs)
            for of in self.all_scenarios
        ) + tuple(claim for text in self.lists for claim in self._claims_of(text))

    def _claims_of(self, text: ListText) -> Iterable[Claim]:
        """A list's claims: under its scenario's instruction and query, and under the query."""
        if text.grade is not None:
            of = self.scenarios[text.introduced_by]
            yield Claim(of.instruction, of.query, text, text.grade)
            yield Claim(None, of.query, text, 2 if text.grade else 0)

    @cached_property
    def places_of_signs(self) -> dict[str, int]:
        """Where each sign's text is among the texts of a group."""
        return {sign: place for place, sign in enumerate(self.texts)}

    @cached_property
    def places_of_triplets(self) -> tuple[tuple[int, int, int], ...]:
        """Where each scenario's instruction, query and passage are among the texts of a group."""
        place = self.places_of_signs
        return tuple(
            (place[i], place[q], place[p])
            for i, q, p in (scenario.signs for scenario in self.all_scenarios)
        )

    @cached_property
    def places_of_split(self) -> tuple[int, ...]:
        """Where the queries, then the passages are: what no two sides of a split share."""
        place = self.places_of_signs
        fields = ("query", "passage")
        return tuple(place[t.sign] for field in fields for t in self.all_texts if t.field == field)

    def _other(self, same: str, unlike: str) -> int | None:
        for place, scenario in enumerate(self.all_scenarios):
            is_same = getattr(scenario, same) == getattr(self.first, same)
            if is_same and getattr(scenario, unlike) != getattr(self.first, unlike):
                return place
        return None

    @cached_property
    def written(self) -> tuple[GroupText, ...]:
        """The texts that a run writes, and that a person may edit: all but the pair's own."""
        return tuple(text for text in self.all_texts if not text.from_source)

    @cached_property
    def fields(self) -> dict[str, tuple[GroupText, int]]:
        """What a person may edit, by field: a written text by its column, those of a list with
        their number (`instruction_negatives[1]`), but stand-ins, which are no texts of the group.
        Texts of a list are added and taken out, too; negatives of the pair only taken out."""
        fields: dict[str, tuple[GroupText, int]] = {one.column: (one, 0) for one in self.written}
        for text in self.lists:
            if not text.stands_in_for:
                for number in range(text.count):
                    fields[text_name(text.column, number)] = text, number
        return fields

    @property
    def editable(self) -> tuple[str, ...]:
        """The fields that a person may edit."""
        return tuple(self.fields)

    @property
    def is_inf_ir(self) -> bool:
        """Whether it is InF-IR's: what is named after that, and what its columns alone allow."""
        return self == INF_IR

    @property
    def entry(self) -> dict[str, Any]:
        """The shape as `shape` of a recipe's body or a manifest: nothing for InF-IR's, so that
        hashes and files are those of before there were others."""
        return {} if self.is_inf_ir else {"shape": self.body()}

    def task_of(self, text: GroupText) -> str:
        """The task that writes a text: the step that gives it, or its own."""
        steps = (step.name for step in self.steps if text.sign in step.gives)
        return next(steps, text.task)

    @cached_property
    def levels(self) -> tuple[tuple[Step, ...], ...]:
        """The steps in the order of a run: those of a level need only what earlier ones give."""
        return _leveled(self.steps, "the shape")

    def introduced(self, role: Role) -> tuple[GroupText, ...]:
        """The texts that come into a group with this scenario: instruction, query, passage."""
        return tuple(text for text in self.scenarios[role].texts if text.introduced_by == role)

    def complete(self, texts: Mapping[str, str]) -> tuple[Scenario, ...]:
        """The scenarios of which all texts are there; `texts` by sign."""
        return tuple(each for each in self.all_scenarios if texts.keys() >= set(each.signs))

    def counterpart(self, text: GroupText) -> GroupText | None:
        """The first scenario's text of a field, from which another must differ (I+ of I-).

        None for itself.
        """
        first = self.first.texts[FIELDS.index(text.field)]
        return None if first == text else first

    def sample(self, role: Role, vote: int) -> int:
        """The number of a judge's vote, which is part of its call's key.

        It depends on the scenario's place alone, not on how many others there are: a scenario
        added at the end of a shape leaves the answers of those before it as they are.
        """
        return vote_number(self.roles.index(role), vote)

    def body(self) -> dict[str, Any]:
        """The shape as JSON, part of a recipe's body. Lists keep the order, which is meant."""
        return {
            "texts": [
                {name: value for name, value in asdict(text).items() if name != "introduced_by"}
                for text in self.all_texts
            ],
            "scenarios": [
                {
                    "role": scenario.role,
                    "title": scenario.title,
                    **dict(zip(FIELDS, scenario.signs, strict=True)),
                }
                for scenario in self.all_scenarios
            ],
            # left out where there are none: hashes of such recipes stay as they are
            **({"lists": [asdict(text) for text in self.lists]} if self.lists else {}),
            **({"steps": [_step_body(step) for step in self.steps]} if self.steps else {}),
        }


def _step_body(step: Step) -> dict[str, Any]:
    return {"name": step.name, "gives": list(step.gives), "inputs": list(step.inputs)}


def _grade(instruction: GroupText | None, query: GroupText, of: Scenario) -> Literal[0, 1, 2]:
    if of.query != query:
        return 0
    return 2 if instruction in (None, of.instruction) else 1


def vote_number(place: int, vote: int) -> int:
    """The sample number of a vote on the item at this place, whatever other places there are."""
    lane, within = divmod(place, PLACES_IN_LANE)
    return LANE * lane + within + PLACES_IN_LANE * vote


def shape_in(holder: Mapping[str, Any], where: str = "the shape") -> Shape:
    """The shape that a recipe's body or a release's manifest names; InF-IR's without one.

    Raises BadInput for one that cannot be read: a manifest may come from anywhere.
    """
    if "shape" not in holder:
        return INF_IR
    try:
        return shape_from(holder["shape"], where)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise _bad(where, "it is not the shape of groups", "unreadable") from error


def shape_from(body: Mapping[str, Any], where: str = "the shape") -> Shape:
    """The shape of a stored body. Raises BadInput, which names the place after `where`."""
    texts, scenarios = list(body["texts"]), list(body["scenarios"])
    for place, entry in _places(where, texts, "texts", "sign"):
        check_text(place, entry)
    lists = [dict(entry) for entry in body.get("lists", ())]
    for place, entry in _places(where, lists, "texts", "sign"):
        check_text(place, entry)
        _check_list(place, entry)
    for name in ("sign", "column"):
        _check_once(where, "texts", name, [entry[name] for entry in (*texts, *lists)])
    field_of = {entry["sign"]: entry["field"] for entry in texts}
    introduced: dict[str, Role] = {}
    for place, entry in _places(where, scenarios, "scenarios", "role"):
        if not _ROLE.fullmatch(str(entry.get("role"))):
            raise _bad(place, "a role is of small letters and _", "role")
        if entry["role"] in TAKEN_ROLES:
            raise _bad(place, "a judge's answer has this name", "role_taken")
        for field in FIELDS:
            sign = entry.get(field)
            if field_of.get(str(sign)) != field:
                known = ", ".join(one for one, of in field_of.items() if of == field) or "none"
                raise _bad(place, f"{field} = {sign!r}; the texts of this field: {known}", field)
            introduced.setdefault(str(sign), entry["role"])
    if not scenarios:
        raise _bad(where, "there is no scenario", "scenarios")
    unused = [sign for sign in field_of if sign not in introduced]
    if unused:
        raise _bad(f"{where}, texts.{unused[0]!r}", "no scenario uses it", "unused")
    right = [entry["passage"] for entry in scenarios]
    _check_once(where, "scenarios", "passage", right)
    made = tuple(
        GroupText(
            entry["sign"],
            entry["field"],
            entry["column"],
            introduced[entry["sign"]],
            entry.get("meaning") or f"{entry['sign']}, {entry['field']}",
            bool(entry.get("from_source", False)),
        )
        for entry in texts
    )
    by_sign = {text.sign: text for text in made}
    roles = [entry["role"] for entry in scenarios]
    for place, entry in _places(where, lists, "texts", "sign"):
        if entry["introduced_by"] not in roles:
            raise _bad(place, f"{entry['introduced_by']!r} is no scenario", "list_role")
    shape = Shape(
        made,
        tuple(
            Scenario(
                entry["role"],
                entry.get("title") or str(entry["role"]).replace("_", " ").capitalize(),
                *(by_sign[entry[field]] for field in FIELDS),
            )
            for entry in scenarios
        ),
        tuple(ListText(**entry) for entry in lists),
        tuple(
            Step(entry["name"], tuple(entry["gives"]), tuple(entry["inputs"]))
            for entry in body.get("steps", ())
        ),
    )
    _check_source(where, shape)
    if shape.steps or shape.lists:
        _check_steps(where, shape)
    else:
        _check_once(where, "texts", "task", [text.task for text in shape.written])
    return shape


def _check_list(place: str, entry: Mapping[str, Any]) -> None:
    count, at_least = entry.get("count", 1), entry.get("at_least", 0)
    if entry["field"] != "passage":
        raise _bad(place, f"a slot with several texts is of passages, not {entry['field']}", "list")
    for name, value, least in (("count", count, 1), ("at_least", at_least, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_COUNT:
            what = f"{name} = {value!r} is not a whole number from {least} to {MAX_COUNT}"
            raise _bad(place, what, "count")
    if at_least > count:
        raise _bad(place, f"at_least = {at_least} of count = {count}", "count", "lower at_least")


def _check_steps(where: str, shape: Shape) -> None:
    """Every text that is not the pair's own comes from one step, and no step waits for itself."""
    gives = [sign for step in shape.steps for sign in step.gives]
    wanted = [text.sign for text in (*shape.written, *shape.lists) if not text.from_source]
    for step in shape.steps:
        for sign in step.gives:
            if gives.count(sign) > 1:
                itself = step.gives.count(sign) > 1
                remedy = "name it once" if itself else "leave it to one of them"
                again = " twice" if itself else ", which another step gives, too"
                what = f"gives names {sign!r}{again}"
                raise _bad(f"{where}, steps.{step.name!r}", what, "step_twice", remedy)
    for sign in gives:
        if sign not in wanted:
            name = next(each.name for each in shape.steps if sign in each.gives)
            raise _bad(
                f"{where}, steps.{name!r}",
                f"gives names {sign!r}; the texts to write are {', '.join(wanted) or 'none'}",
                "step_text",
                "name some of these",
            )
    for sign in wanted:
        if sign not in gives:
            what = "no step gives it, nor does it come with the pair"
            raise _bad(f"{where}, texts.{sign!r}", what, "step_missing", "add it to a step's gives")
    _leveled(shape.steps, where)


def _leveled(steps: Sequence[Step], where: str) -> tuple[tuple[Step, ...], ...]:
    waiting, found = list(steps), list[tuple[Step, ...]]()
    while waiting:
        open_ = {sign for step in waiting for sign in step.gives}
        ready = tuple(step for step in waiting if open_.isdisjoint(step.inputs))
        if not ready:
            way = waiting[:1]
            while way[-1] not in way[:-1]:  # to a step that is waited for, till one comes again
                way.append(next(s for s in waiting if not set(s.gives).isdisjoint(way[-1].inputs)))
            circle = way[way.index(way[-1]) : -1]
            names = " and ".join(step.name for step in circle)
            what = f"{names} are a cycle: each waits for a text of another"
            if len(circle) == 1:
                what = f"{names} waits for a text of its own"
            remedy = "take one of these texts out of inputs"
            raise _bad(f"{where}, steps.{circle[0].name!r}", what, "cycle", remedy)
        waiting = [step for step in waiting if step not in ready]
        found.append(ready)
    return tuple(found)


def _places(
    where: str, entries: Sequence[Mapping[str, Any]], table: str, name: str
) -> Iterable[tuple[str, Mapping[str, Any]]]:
    return ((f"{where}, {table}.{entry.get(name)!r}", entry) for entry in entries)


def check_text(place: str, entry: Mapping[str, Any]) -> None:
    """Raise BadInput for a text whose sign, field, column or source cannot be one."""
    sign = str(entry.get("sign", ""))
    if not sign.isprintable() or set(sign) & set("[]:") or sign.strip() != sign or not sign:
        what = "a sign is of letters, digits and signs such as + and -, without [, ] and :"
        raise _bad(place, what, "sign")
    if entry.get("field") not in FIELDS:
        raise _bad(place, f"field = {entry.get('field')!r} is none of {', '.join(FIELDS)}", "field")
    pattern = _COLUMN if entry["field"] == "passage" else _ROLE
    if not pattern.fullmatch(str(entry.get("column"))):
        wanted = "is not a name of small letters and _ (a passage's may have digits)"
        raise _bad(place, f"column = {entry.get('column')!r} {wanted}", "column")
    if entry["column"] in TAKEN_COLUMNS:
        raise _bad(place, f"column = {entry['column']!r} is a name of our own", "column_taken")
    if not isinstance(entry.get("from_source", False), bool):
        raise _bad(place, f"from_source = {entry['from_source']!r} is not true or false", "source")


def _check_once(where: str, table: str, name: str, values: Sequence[str]) -> None:
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise _bad(f"{where}, {table}", f"{name} {twice!r} stands there twice", f"{name}_twice")


def _check_source(where: str, shape: Shape) -> None:
    """The pair gives one query and one passage: those of the first scenario."""
    given = {text.sign for text in shape.all_texts if text.from_source}
    wanted = {shape.first.query.sign, shape.first.passage.sign}
    if given != wanted:
        raise _bad(
            f"{where}, texts",
            f"from_source texts are {', '.join(sorted(given)) or 'none'}; a pair gives the query "
            f"and the passage of the first scenario: {' and '.join(sorted(wanted))}",
            "source",
        )
    lists = [text.sign for text in shape.lists if text.from_source]
    if len(lists) > 1:
        what = f"{' and '.join(lists)} have from_source, and a pair gives one list of negatives"
        raise _bad(f"{where}, texts", what, "source", "leave it to one of them")


_REMEDIES: Final = {
    **dict.fromkeys(("field", *FIELDS), "take one of them"),
    "count": "write such a number",
    "list": "take out count and at_least",
    "scenarios": "write one",
    "source": "write from_source = true for the pair's query and passage, and for no other",
    "unreadable": "export it again",
    "unused": "name it in a scenario, or leave it out",
}


def _bad(place: str, what: str, code: str, remedy: str = "") -> BadInput:
    remedy = remedy or _REMEDIES.get(code, "rename it")
    return BadInput(f"{place}: {what}", remedy, code=f"shape_{code}")


INF_IR: Final = shape_from(
    {
        "texts": [
            {
                "sign": sign,
                "field": field,
                "column": column,
                "meaning": f"{sign}, {meaning}",
                "from_source": meaning.startswith("the real"),
            }
            for sign, field, column, meaning in (
                ("Q+", "query", "query_positive", "the real query"),
                ("I+", "instruction", "instruction_positive", "the instruction"),
                (
                    "P+",
                    "passage",
                    "document_positive",
                    "the real passage that answers (I+, Q+)",
                ),
                ("Q-", "query", "query_negative", "the poisoned query"),
                ("I-", "instruction", "instruction_negative", "the poisoned instruction"),
                ("P1-", "passage", "hard_negative_document_1", "written for (I-, Q+)"),
                ("P2-", "passage", "hard_negative_document_2", "written for (I+, Q-)"),
            )
        ],
        "scenarios": [
            {"role": role, "title": title, "instruction": i, "query": q, "passage": p}
            for role, title, i, q, p in (
                ("positive", "Positive", "I+", "Q+", "P+"),
                ("instruction_negative", "Instruction negative", "I-", "Q+", "P1-"),
                ("query_negative", "Query negative", "I+", "Q-", "P2-"),
            )
        ],
    },
    "InF-IR",
)
