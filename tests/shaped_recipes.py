"""Recipes of other shapes than InF-IR's, with prompts that the test server answers.

Each is an attack of its own: one scenario, two with names of their own, InF-IR's names without its
last scenario and in another order, four, and five of which one alters the instruction another way.
"""

import json
from pathlib import Path
from typing import Any

from curation.recipe.tasks import VALIDATION, tasks_of
from db.shape import INF_IR, GroupText, Shape, shape_from

QUERY = {"field": "query", "column": "query_positive", "from_source": True}
INSTRUCTION = {"field": "instruction", "column": "instruction_positive"}
PASSAGE = {"field": "passage", "column": "document_positive", "from_source": True}


def _shape(texts: dict[str, dict[str, Any]], scenarios: dict[str, tuple[str, str, str]]) -> Shape:
    fields = ("instruction", "query", "passage")
    return shape_from(
        {
            "texts": [{"sign": sign, **text} for sign, text in texts.items()],
            "scenarios": [
                {"role": role, **dict(zip(fields, signs, strict=True))}
                for role, signs in scenarios.items()
            ],
        }
    )


_INF_IR = {
    text.sign: {"field": text.field, "column": text.column, "from_source": text.from_source}
    for text in INF_IR.all_texts
}
_SCENARIOS = {role: scenario.signs for role, scenario in INF_IR.scenarios.items()}
_FOUR = _INF_IR | {"P3-": {"field": "passage", "column": "hard_negative_document_3"}}
_BOTH = {"both_negative": ("I-", "Q-", "P3-")}
SHAPES = {
    "one": _shape({"Q": QUERY, "I": INSTRUCTION, "P": PASSAGE}, {"plain": ("I", "Q", "P")}),
    "two": _shape(
        {
            "Q": QUERY,
            "I": INSTRUCTION,
            "P": PASSAGE | {"column": "passage"},
            "D": {"field": "instruction", "column": "defiance"},
            "N1": {"field": "passage", "column": "negative_1"},
        },
        {"plain": ("I", "Q", "P"), "defying": ("D", "Q", "N1")},
    ),
    "without_query": _shape(
        {sign: text for sign, text in _INF_IR.items() if sign not in ("Q-", "P2-")},
        {role: signs for role, signs in _SCENARIOS.items() if role != "query_negative"},
    ),
    "reordered": _shape(
        _INF_IR,
        {role: _SCENARIOS[role] for role in ("positive", "query_negative", "instruction_negative")},
    ),
    "four": _shape(_FOUR, _SCENARIOS | _BOTH),
    "five": _shape(
        _FOUR
        | {
            "I2-": {"field": "instruction", "column": "instruction_other"},
            "P4-": {"field": "passage", "column": "hard_negative_document_4"},
        },
        _SCENARIOS | _BOTH | {"other_instruction": ("I2-", "Q+", "P4-")},
    ),
}


def write_recipe(folder: Path, name: str) -> str:
    """The recipe of a shape with its prompts next to it, as a file; its path."""
    shape = SHAPES[name]
    lines: list[str] = []
    for number, (task, spec) in enumerate(tasks_of(shape).items()):
        lines += [f"[stages.{task}]", 'model = "small"', f'prompt = "{task}.md"']
        if task != VALIDATION:
            (folder / f"{task}.md").write_text(_prompt(shape, spec.texts[0], number))
    for table, entries in shape.body().items():
        key = "sign" if table == "texts" else "role"
        for entry in entries:
            lines.append(f"[{table}.{json.dumps(entry[key])}]")
            lines += [f"{field} = {json.dumps(of)}" for field, of in entry.items() if field != key]
    path = folder / f"{name}.toml"
    path.write_text("\n".join(lines))
    return str(path)


def _prompt(shape: Shape, text: GroupText, number: int) -> str:
    first, own = shape.first, shape.scenarios[text.introduced_by]
    if text.field == "passage":
        is_other_query = own.query != first.query
        lines = [
            f"Query: {{{own.query.column}}}",
            f"Instruction: {{{own.instruction.column}}}",
            f"Old {'query' if is_other_query else 'instruction'}: as it was",
            "Passage: <your passage>",
        ]
    else:
        new = "new " if text.introduced_by != first.role else ""
        of_first = f"Instruction: {{{first.instruction.column}}}" if new else ""
        lines = [
            "Document:",
            "{document}",
            f"Query: {{{first.query.column}}}",
            of_first,
            f"Variant: {number}" if text.sign == "I2-" else "",
            f"{text.field.capitalize()}: <your {new}{text.field}>",
        ]
    return "You write texts.\n---\n" + "\n\n".join(line for line in lines if line) + "\n"
