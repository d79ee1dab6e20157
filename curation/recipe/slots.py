"""The shape of a recipe's file: [texts], [scenarios] or [claims], [rules], [steps] and [vary].

    [texts]
    "Q"  = { field = "query",       column = "query", from_source = true }
    "P+" = { field = "passage",     column = "passage", from_source = true }
    "I"  = { field = "instruction", column = "instruction" }
    "B"  = { field = "passage",     column = "backup" }
    "N"  = { field = "passage",     column = "negative", count = 3 }
    [vary]                                     # drawn for each pair from the run's seed
    style = { negation = 1, persona = 1 }
    [steps.instruct]                           # with model, prompt, temperature … as of a stage
    gives = ["I"]
    inputs = ["Q", "P+", "style"]
    [steps.passages]                           # one call, several texts
    gives = ["B", "N"]
    inputs = ["Q", "P+", "I"]
    [rules]                                    # what becomes of a text that fails its checks
    "P+" = "else B"                            # B takes its place; else the group is dropped
    "N" = "drop text"                          # without a rule: the group is dropped
    [claims]
    "(I, Q)" = { 2 = "P+", 1 = "N" }

A prompt names its inputs by their columns. What is right under a query alone follows from the
claims. An error names the line of the file where it is.
"""

import random
import re
from collections.abc import Mapping
from math import inf
from typing import Any, Final

from curation.recipe.settings import (
    PARAMETERS,
    REQUIRED,
    TRANSPORT,
    require_known,
    require_table,
    require_text,
)
from curation.recipe.tasks import VALIDATION
from db.errors import BadInput
from db.question import CHECK
from db.shape import FIELDS, INF_IR, TAKEN_COLUMNS, Shape, check_text, shape_from

Vary = Mapping[str, Mapping[str, float]]
Rules = Mapping[str, str]  # by sign: DROP_TEXT, DROP_GROUP, or the sign of the text in its place
TABLES: Final = ("texts", "scenarios", "claims", "rules", "steps", "vary")
OF_TEXT: Final = ("field", "column", "meaning", "from_source", "count", "at_least")
OF_SCENARIO: Final = ("title", *FIELDS)
OF_STEP: Final = ("gives", "inputs")  # beside what every stage has
MAX_WEIGHT: Final = 1e300  # so many times a weight stays finite
DROP_TEXT, DROP_GROUP = "drop text", "drop group"
_CLAIM = re.compile(r"\(\s*([^,()]*?)\s*,\s*([^,()]*?)\s*\)")
_NAME = re.compile(r"[a-z][a-z_]*")


def drawn(vary: Vary, seed: int, query_id: str) -> dict[str, str]:
    """What is drawn for a pair: of each table one name, by their weights.

    The run's seed, the pair and the name of the table decide it, not what else is drawn. Names are
    put in order first: PostgreSQL gives the keys of a stored recipe in an order of its own.
    """
    return {
        name: random.Random(f"vary {seed} {name} {query_id}").choices(*_in_order(weights))[0]
        for name, weights in vary.items()
    }


def _in_order(weights: Mapping[str, float]) -> tuple[list[str], list[float]]:
    names = sorted(weights)
    return names, [weights[name] for name in names]


def read_shape(tables: dict[str, Any], where: str) -> tuple[Shape, Vary, Rules]:
    """The shape of a file, what it varies and its rules, their tables taken out; InF-IR's without
    them.

    What a step has beside its texts becomes a stage. Raises BadInput.
    """
    given = {name: tables.pop(name) for name in TABLES if name in tables}
    if not given:
        return INF_IR, {}, {}
    if "texts" not in given or ("scenarios" in given) == ("claims" in given):
        missing = "[texts]" if "texts" not in given else "[scenarios] or [claims]"
        both = given.keys() >= _EITHER
        raise BadInput(
            f"{where}, [{next(iter(given))}]: there "
            f"{'are both [scenarios] and [claims]' if both else f'is no {missing}'}",
            "a shape has [texts], and either [scenarios] or [claims]; leave out all for InF-IR's",
            code="recipe_shape_missing",
        )
    texts = given["texts"]
    for sign, values in texts.items():
        place = f"{where}, [texts.{sign!r}]"
        require_known(values, OF_TEXT, place)
        check_text(place, {"sign": sign, **values})
        require_text(values.get("meaning", ""), "meaning", place)
    if "claims" in given:
        scenarios, grades = _claims(given["claims"], texts, where)
    else:
        scenarios, grades = _scenarios(given["scenarios"], where), {}
    rules = _rules(given.get("rules", {}), texts, where)
    vary = _vary(given.get("vary", {}), texts, where)
    steps = _steps(given.get("steps", {}), tables, texts, vary, where)
    in_scenarios = {str(entry.get(field)) for entry in scenarios for field in FIELDS}
    stand_ins = {of: sign for sign, of in rules.items() if of in texts}
    for sign, of in stand_ins.items():
        what, remedy = "", "name another text"
        if not any(entry.get("passage") == of for entry in scenarios):
            what = f"{of!r} is the right passage of no claim, and only such a one has a stand-in"
            remedy = "write “drop text” or “drop group”"
        elif sign in grades or sign in in_scenarios:
            what = f"{sign!r} cannot take its place, as a claim says something else of it"
        elif texts[sign].get("from_source"):
            what = f"{sign!r} comes with the pair, as a negative of it"
        elif texts[sign].get("count", 1) != 1:
            what = f"{sign!r} has a count, and one text takes a place"
            remedy = f"take out the count of {sign!r}"
        elif "at_least" in texts[sign]:
            what = f"{sign!r} has at_least, and is looked at only to take the place of {of!r}"
            remedy = f"take out the at_least of {sign!r}"
        elif rules.get(sign) == DROP_GROUP:
            what = f"{sign!r} has a rule, too, and is looked at only to take the place of {of!r}"
            remedy = f"leave out the rule of {sign!r}"
        if what:
            raise _bad(f"{where}, [rules.{of!r}]", what, remedy, "rule")
    lists = []
    for sign, values in texts.items():
        is_list = sign in grades or sign in stand_ins or {"count", "at_least"} & values.keys()
        is_unused = sign not in in_scenarios and sign not in grades and sign not in stand_ins
        if is_unused and (is_list or "claims" in given):
            raise _bad(
                f"{where}, [texts.{sign!r}]",
                "no claim names it, and no rule has it take a text's place",
                f"name {sign!r} in one, or leave it out",
                "unused",
            )
        if not is_list:
            if rules.get(sign) == DROP_TEXT:
                raise _bad(
                    f"{where}, [rules.{sign!r}]",
                    f"a group needs its {sign!r}, of which there is one",
                    "write “drop group”, or “else” with a text that may take its place",
                    "rule",
                )
            continue
        if sign in in_scenarios:
            is_passage = values["field"] == "passage"
            raise _bad(
                f"{where}, [texts.{sign!r}]",
                f"it is the {'right ' * is_passage}{values['field']} of a claim, of which a group "
                "has one",
                f"take out count and at_least{', or claim another grade' * is_passage}",
                "list",
            )
        role, grade = grades.get(sign, (_role_of(stand_ins.get(sign), scenarios), None))
        lists.append(
            {
                "sign": sign,
                "field": values.get("field"),
                "column": values.get("column"),
                "introduced_by": role,
                "meaning": values.get("meaning") or f"{sign}, {values.get('field')}",
                "from_source": values.get("from_source", False),
                "count": values.get("count", 1),
                "at_least": values.get("at_least", 0),
                "grade": grade,
                "stands_in_for": stand_ins.get(sign, ""),
                "drops_group": sign not in stand_ins and rules.get(sign) != DROP_TEXT,
            }
        )
    listed = {entry["sign"] for entry in lists}
    body = {
        "texts": [{"sign": sign, **of} for sign, of in texts.items() if sign not in listed],
        "scenarios": scenarios,
        "lists": lists,
        "steps": steps,
    }
    return shape_from(body, where), vary, rules


_EITHER: Final = {"scenarios", "claims"}


def _scenarios(tables: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    for role, values in tables.items():
        require_known(values, OF_SCENARIO, f"{where}, [scenarios.{role!r}]")
    return [{"role": role, **values} for role, values in tables.items()]


def _claims(
    tables: Mapping[str, Any], texts: Mapping[str, Any], where: str
) -> tuple[list[dict[str, Any]], dict[str, tuple[str, int]]]:
    """The scenarios of the claims of grade 2; of the other texts the scenario and the grade."""
    if not tables:
        remedy = 'write one, as in "(I, Q)" = { 2 = "P+" }'
        raise _bad(f"{where}, [claims]", "there is no claim", remedy, "claim")
    scenarios: list[dict[str, Any]] = []
    grades: dict[str, tuple[str, int]] = {}
    for key, table in tables.items():
        place = f"{where}, [claims.{key!r}]"
        found = _CLAIM.fullmatch(key)
        if found is None:
            what = "a claim is of an instruction and a query"
            raise _bad(place, what, 'write it as in "(I, Q)" = { 2 = "P+" }', "claim")
        instruction, query = found.groups()
        if any((one["instruction"], one["query"]) == found.groups() for one in scenarios):
            what = f"there are two claims of {instruction} and {query}"
            raise _bad(place, what, "write both as one", "claim")
        if not instruction:
            raise _bad(
                place,
                "what holds without an instruction follows from the claims with one",
                "leave it out",
                "claim",
            )
        for sign, field in ((instruction, "instruction"), (query, "query")):
            _require_slot(sign, field, texts, place)
        require_known(table, ("2", "1", "0"), place)
        by_grade = {grade: _signs(table, grade, place) for grade in table}
        for sign in (sign for signs in by_grade.values() for sign in signs):
            _require_slot(sign, "passage", texts, place)
        right = by_grade.pop("2", [])
        if len(right) != 1:
            what = (
                "it claims of no passage that it satisfies them"
                if not right
                else f"{' and '.join(right)} satisfy them, of which a group has one passage each"
            )
            raise _bad(place, what, 'name one passage under 2, as in 2 = "P+"', "claim")
        columns = (texts[sign].get("column", "") for sign in (instruction, query))
        role = "for_" + "_".join(map(str, columns)) if scenarios else "positive"
        values = zip(FIELDS, (instruction, query, right[0]), strict=True)
        scenarios.append({"role": role} | dict(values))
        for grade, signs in by_grade.items():
            for sign in signs:
                if sign in grades or sign in right:
                    raise _bad(place, f"{sign!r} is claimed twice", "leave one of them", "claim")
                grades[sign] = role, int(grade)
    return scenarios, grades


def _rules(tables: Mapping[str, Any], texts: Mapping[str, Any], where: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for sign, effect in tables.items():
        place = f"{where}, [rules.{sign!r}]"
        field = _require_slot(sign, "", texts, place)
        if effect in (DROP_TEXT, DROP_GROUP):
            found[sign] = effect
            continue
        word, _, other = str(effect).partition(" ")
        if word != "else" or not other:
            raise _bad(
                place,
                f"{effect!r} is no rule",
                "write “drop text”, “drop group”, or “else” and a text, as in “else B”",
                "rule",
            )
        _require_slot(other, field, texts, place)
        if other == sign or other in found.values():
            raise _bad(place, f"{other!r} cannot take its place", "name another text", "rule")
        found[sign] = other
    return found


def _vary(tables: Mapping[str, Any], texts: Mapping[str, Any], where: str) -> Vary:
    columns = {str(values.get("column")) for values in texts.values()}
    for name, weights in tables.items():
        place = f"{where}, [vary.{name!r}]"
        if not _NAME.fullmatch(name) or name in {*texts, *columns, *TAKEN_COLUMNS}:
            what = "a name is of small letters and _, and not that of a text or of our own"
            raise _bad(place, what, "rename it", "vary")
        require_table(weights, place)
        for each, weight in weights.items():
            if (
                isinstance(weight, bool)
                or not isinstance(weight, int | float)
                or not 0 < weight < inf
            ):
                what = f"{each} = {weight!r} is no weight, which is a number above 0"
                raise _bad(place, what, f"raise it, or leave {each} out", "weight")
        if not weights:
            raise _bad(place, "there is nothing to draw", "write names and weights", "vary")
        if max(weights.values()) > MAX_WEIGHT:
            raise _bad(place, "its weights are too large to add up", "write 1, 2, 3", "weight")
    return {name: dict(weights) for name, weights in tables.items()}


def _steps(
    tables: Mapping[str, Any],
    others: dict[str, Any],
    texts: Mapping[str, Any],
    vary: Vary,
    where: str,
) -> list[dict[str, Any]]:
    """The steps of a shape; their models, prompts and sampling are put among the stages."""
    steps = []
    for name, table in tables.items():
        place = f"{where}, [steps.{name}]"
        if not _NAME.fullmatch(name) or name == VALIDATION or name.startswith(CHECK):
            what = "a step's name is of small letters and _, and not that of a judging stage"
            raise _bad(place, what, "rename the table", "step")
        require_known(table, (*OF_STEP, *REQUIRED, *PARAMETERS, *TRANSPORT), place)
        gives, inputs = (_signs(table, key, place) for key in OF_STEP)
        if not gives:
            raise _bad(place, "it gives no text", 'write gives = ["I"]', "step")
        for key, signs, known in (
            ("gives", gives, [*texts]),
            ("inputs", inputs, [*texts, *vary]),
        ):
            for sign in signs:
                if sign not in known:
                    what = f"{key} names {sign!r}; there are {', '.join(known)}"
                    raise _bad(place, what, "name some of these", "slot_unknown")
        steps.append({"name": name, "gives": gives, "inputs": inputs})
        stage = {key: value for key, value in table.items() if key not in OF_STEP}
        if len(gives) > 1 or "count" in texts[gives[0]]:
            stage.setdefault("output", "json")  # several texts are one object
        add_stage(others, name, stage, f"steps.{name}", where)
    idle = [name for name in vary if not any(name in step["inputs"] for step in steps)]
    if idle:
        what = "it is drawn, and no step has it among its inputs"
        remedy = f'add it to a step, as in inputs = ["Q", "{idle[0]}"]'
        raise _bad(f"{where}, [vary.{idle[0]!r}]", what, remedy, "vary")
    return steps


def add_stage(
    tables: dict[str, Any], task: str, stage: dict[str, Any], own: str, where: str
) -> None:
    """Put what a step or a check has as a stage among the stages. Raises BadInput for a second."""
    stages = tables.setdefault("stages", {})
    if task in stages:
        what = f"[{own}] sets it"
        raise _bad(f"{where}, [stages.{task}]", what, "leave it out", "stage")
    stages[task] = stage


def _role_of(sign: str | None, scenarios: list[dict[str, Any]]) -> str:
    """The scenario of the passage in whose place a stand-in may be."""
    return next((str(one["role"]) for one in scenarios if one.get("passage") == sign), "")


def _signs(table: Mapping[str, Any], key: str, place: str) -> list[str]:
    value = table.get(key, [])
    signs = [value] if isinstance(value, str) else value
    if not isinstance(signs, list) or not all(isinstance(sign, str) for sign in signs):
        what = f"{key} = {value!r} is not a list of texts"
        raise _bad(place, what, f'write {key} = ["P+"]', "signs")
    return signs


def _require_slot(sign: str, field: str, texts: Mapping[str, Any], place: str) -> str:
    """The field of a text; it has to be this one, where one is given."""
    known = [one for one, of in texts.items() if not field or of.get("field") == field]
    if sign not in known:
        what = (
            f"{sign!r} is no {field or 'text'} of [texts]; there are {', '.join(known) or 'none'}"
        )
        raise _bad(place, what, "name one of these", "slot_unknown")
    return str(texts[sign].get("field"))


def _bad(place: str, what: str, remedy: str, code: str) -> BadInput:
    return BadInput(f"{place}: {what}", remedy, code=f"shape_{code}")


# ---- where in the file


_PLACE = re.compile(
    r", \[?(?P<table>[a-z]+)(?:\.(?P<quote>['\"]?)(?P<entry>.+?)(?P=quote))?\]?(?=[:, ]|$)"
)


def with_line(error: BadInput, where: str, text: str) -> BadInput:
    """The error with the line of the file that it is about: the table that it names, there the
    entry that the message names first. An error about all of the file is at its first line, one of
    a table that is not in it (a setting's) at none."""
    rest = error.message.removeprefix(where)
    if rest == error.message:
        return error
    found = _PLACE.match(rest)
    place = "" if found is None else ".".join(part for part in found.group(1, 3) if part)
    number = _line(text.split("\n"), place, rest[found.end() if found else 0 :])
    if not number:
        return error
    message = f"{where}, line {number}{',' if rest.startswith(' ') else ''}{rest}"
    values = {"file": where.removeprefix("the recipe "), "line": number} | error.values
    return BadInput(message, error.remedy, code=error.code, **values)


def _line(lines: list[str], place: str, rest: str) -> int:
    """The number of a line, from 1; 0 without one of the place."""
    place, head = re.sub(r"['\"\s]", "", place), ""
    own, named = 0, list[tuple[int, int]]()
    for number, line in enumerate(lines, 1):
        path = re.sub(r"['\"\s]", "", line.partition("#")[0])
        if path.startswith("["):
            path = head = path.strip("[]")
        elif "=" in path:
            path = ".".join(part for part in (head, path.partition("=")[0]) if part)
        else:
            continue
        inside = f"{path}.".removeprefix(f"{place}." if place else "")
        if place and inside == f"{path}.":
            continue
        own, name = own or number, inside.partition(".")[0]
        if name and (at := re.search(rf"(?<![\w+-]){re.escape(name)}(?![\w+-])", rest)):
            named.append((at.start(), number))
    return min(named)[1] if named else own if place else 1
