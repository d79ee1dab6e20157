"""The rows of a release, configuration by configuration. Pure.

`default` is the columns of the groups' shape (InF-IR's seven, under their published names) and a
few more; `provenance` has the origin of each group; `triplets` is the same groups flattened;
`judgments` who chose what. Three more are views for other trainers, made on request:
`sentence-transformers` and `tevatron`, with instruction and query in one text (the paper's
Interaction I), and `promptriever`, with the columns that Promptriever publishes. Where groups have
lists, the default configuration has these columns, too: a row for each query, with its instruction
and without.
A text column without a value holds "": every column has one type in every format.
"""

import json
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from curation.rules.language import language_of
from db.question import is_right
from db.release.rows import GroupJudgment, ReleaseRow
from db.shape import FIELDS, RELEASE_COLUMNS, GroupText, ListText, Shape


@dataclass(frozen=True)
class Column:
    """A column of the default configuration: its type in every format, its line in the card."""

    type: str
    meaning: str


# To add a column, add its name in `db.shape`, a row here and its value in `release_row`.
_MEANINGS = (
    "the group in the store it was made in",
    "the pair's id in its source",
    "the id of {passage} in its source",
    "where query and passage come from",
    "the licence of query and passage",
    "kept or dropped by the filter and the validation",
    "why a dropped group was dropped",
    "the current review: approve, edit, reject or nothing",
    "whether rules instead of a language model wrote the group",
)
_NOT_STRINGS = {"group_id": "int64", "offline": "bool"}
# Of every shape alike; `default` and `sentence-transformers` have columns by shape.
_SHARED: dict[str, dict[str, str]] = {
    "provenance": {
        "group_id": "int64",
        "query_id": "string",
        "passage_id": "string",
        "dataset": "string",
        "source": "string",
        "licence": "string",
        "run_id": "int64",
        "recipe": "string",
        "recipe_sha256": "string",
        "provider": "string",
        "models": "string",
        "offline": "bool",
        "verdict": "string",
        "drop_reason": "string",
        "review": "string",
        "judgments": "int64",
        "judgments_as_meant": "int64",
        "confidence": "float64",
    },
    "triplets": {
        "group_id": "int64",
        "role": "string",
        "passage_role": "string",
        "label": "int64",
        "instruction": "string",
        "query": "string",
        "passage": "string",
        "offline": "bool",
    },
    "judgments": {
        "group_id": "int64",
        "item_id": "int64",
        "scenario": "string",
        "revision": "int64",
        "judge": "string",
        "kind": "string",
        "simulated": "bool",
        "offline": "bool",
        "choice": "string",
        "position": "int64",
    },
    "tevatron": {
        "query_id": "string",
        "query": "string",
        "positive_passages": "passages",
        "negative_passages": "passages",
    },
    "promptriever": {
        "query_id": "string",
        "query": "string",
        "only_query": "string",
        "only_instruction": "string",
        "has_instruction": "bool",
        "positive_passages": "explained",
        "negative_passages": "explained",
    },
}
# What a row has besides in the default configuration of a shape with lists.
_OF_GROUP = tuple(name for name in RELEASE_COLUMNS if name != "query_id")
_OF_QUERY = {
    "query_id": "the row: its group, instruction and query",
    "query": "query and instruction in one text",
    "only_query": "the query",
    "only_instruction": "the instruction, empty in a row without one",
    "has_instruction": "whether the row has an instruction",
    "positive_passages": "the passages that answer the query and satisfy the instruction",
    "negative_passages": "the others, with what they are (`explanation`): `instruction_negative` "
    "answers the query but violates the instruction",
}
# Of a script only where one language is by far the most likely.
SCRIPT_LANGUAGES = {"HANGUL": "ko", "THAI": "th", "GREEK": "el", "HEBREW": "he"}
VIEWS = ("sentence-transformers", "tevatron", "promptriever")
STANDARD = ("default", "provenance", "triplets", "judgments")
PASSAGE = ("docid", "title", "text")
# Types whose values are lists: the names that an entry has.
LISTS = {"passages": PASSAGE, "explained": (*PASSAGE, "explanation")}
# What Promptriever's passages are by the grade of their claim; no positive has an explanation.
EXPLANATIONS = {2: "", 1: "instruction_negative", 0: "query_negative"}
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@lru_cache(maxsize=64)
def default_columns(shape: Shape) -> dict[str, Column]:
    """The columns of the default configuration: the shape's texts, then what is of every shape."""
    passage = shape.first.passage.sign
    if shape.lists:
        meanings = dict(zip(RELEASE_COLUMNS, _MEANINGS, strict=True))
        return {
            name: Column(_SHARED["promptriever"][name], of) for name, of in _OF_QUERY.items()
        } | {
            name: Column(_NOT_STRINGS.get(name, "string"), meanings[name].format(passage=passage))
            for name in _OF_GROUP
        }
    return {text.column: Column("string", text.meaning) for text in shape.all_texts} | {
        name: Column(_NOT_STRINGS.get(name, "string"), meaning.format(passage=passage))
        for name, meaning in zip(RELEASE_COLUMNS, _MEANINGS, strict=True)
    }


@lru_cache(maxsize=64)
def configs_of(shape: Shape) -> dict[str, dict[str, str]]:
    """The columns of every configuration with their types, by its name."""
    negatives = range(1, len(shape.roles))
    anchored = ("anchor", "positive", *(f"negative_{number}" for number in negatives))
    return {
        "default": {name: column.type for name, column in default_columns(shape).items()},
        **{name: columns for name, columns in _SHARED.items() if name not in VIEWS},
        "sentence-transformers": dict.fromkeys(anchored, "string"),
        "tevatron": _SHARED["tevatron"],
        "promptriever": _SHARED["promptriever"],
    }


@lru_cache(maxsize=64)
def kinds_of(shape: Shape) -> dict[str, tuple[str, ...]]:
    """The columns of instructions, queries and passages, for the counts of the paper's Table 1."""
    return {
        field[0].upper(): tuple(text.column for text in shape.slots.values() if text.field == field)
        for field in FIELDS
    }


def release_row(
    found: ReleaseRow, shape: Shape, *, source: str, licence: str, offline: bool
) -> dict[str, Any]:
    """A group as a row; a `source` or `licence` of the pair overrides the dataset's."""
    row: dict[str, Any] = dict(zip(shape.columns, found.texts, strict=True))
    row |= {text.column: found.listed.get(text.sign, []) for text in shape.lists}
    return row | {
        "group_id": found.group_id,
        "query_id": found.query_id,
        "passage_id": found.passage_id,
        "source": _first_of(found.meta, ("source",)) or source,
        "licence": _first_of(found.meta, ("licence", "license")) or licence,
        "verdict": found.verdict,
        "drop_reason": found.drop_reason or "",
        "review": found.review or "",
        "offline": offline,
    }


def default_rows(row: dict[str, Any], shape: Shape) -> list[dict[str, Any]]:
    """A group in the default configuration: itself, or with lists a row for each query."""
    if not shape.lists:
        return [row]
    facts = {name: row[name] for name in _OF_GROUP}
    return [made | facts for made in _promptriever_rows(row, shape)]


def is_rescued(found: ReleaseRow) -> bool:
    """Whether the filter dropped the group and a person approved it."""
    return found.verdict == "dropped" and found.review == "approve"


def language_of_row(row: dict[str, Any], shape: Shape) -> str:
    """The language of a group's texts as the Hub's code (ISO 639-1), "" where it is unclear."""
    found = language_of(" ".join(str(row[column]) for column in shape.columns)) or ""
    return SCRIPT_LANGUAGES.get(found, found if len(found) == 2 else "")


def provenance_row(
    row: dict[str, Any], run: dict[str, Any], judged: list[GroupJudgment]
) -> dict[str, Any]:
    """The origin of a group. `run` holds the values shared by all groups of the run.

    `judgments_as_meant` counts those that gave the answer expected of the item;
    `confidence` is the validator's least share of votes, or margin of scores, over the scenarios.
    """
    sure = [one.confidence for one in judged if one.confidence is not None]
    return {
        **{name: row[name] for name in _SHARED["provenance"] if name in row},
        **run,
        "judgments": len(judged),
        "judgments_as_meant": sum(bool(is_right(one.choice, one.expected)) for one in judged),
        "confidence": min(sure, default=None),
    }


def triplet_rows(row: dict[str, Any], shape: Shape) -> list[dict[str, Any]]:
    """The triplets of a group, with label 1 if the passage fits: of each scenario its own passage,
    and that of the first, for which it was altered.

    InF-IR's are five: P+ fits (I+, Q+) and neither (I-, Q+) nor (I+, Q-), for which P1- and P2-
    were written.
    """
    own = [
        (role, passage_role, shape.scenarios[passage_role].passage)
        for role in shape.roles
        for passage_role in dict.fromkeys((role, shape.first.role))
    ]
    listed = [(text.introduced_by, text.column, text) for text in shape.lists]
    return [
        {
            "group_id": row["group_id"],
            "role": role,
            "passage_role": passage_role,
            "label": int(role == passage_role),
            "instruction": row[shape.scenarios[role].instruction.column],
            "query": row[shape.scenarios[role].query.column],
            "passage": passage,
            "offline": row["offline"],
        }
        for role, passage_role, text in (*own, *listed)
        for _, passage in _passages(row, text)
    ]


def _passages(row: dict[str, Any], text: GroupText) -> list[tuple[str, str]]:
    """(id, text) of each of a group's passages of a slot; that of the pair has its own id."""
    if isinstance(text, ListText):
        return [(f"{row['group_id']}-{name}", passage) for name, passage in row[text.column]]
    own = row["passage_id"] if text.from_source else f"{row['group_id']}-{text.sign}"
    return [(own, row[text.column])]


def trainer_rows(view: str, row: dict[str, Any], shape: Shape) -> list[dict[str, Any]]:
    """A group in the format of another trainer: a query per scenario, with the passage that fits.

    The group's other passages are its negatives. `sentence-transformers`: the columns of a
    loss such as MultipleNegativesRankingLoss. `tevatron`: the rows of its training files.
    `promptriever`: by the shape's claims, also a row for each query without an instruction; what
    answers the query but violates the instruction is explained as `instruction_negative`.
    """
    if view == "promptriever":
        return _promptriever_rows(row, shape)
    own = {role: _passages(row, scenario.passage) for role, scenario in shape.scenarios.items()}
    make = _anchor_row if view == "sentence-transformers" else _tevatron_row
    return [
        make(
            f"{row['group_id']}-{role}",
            f"{row[scenario.instruction.column]} {row[scenario.query.column]}",
            own[role][0],
            [
                passage
                for passages in (
                    *(own[other] for other in own if other != role),
                    *(_passages(row, text) for text in shape.lists if text.introduced_by == role),
                )
                for passage in passages
            ],
        )
        for role, scenario in shape.scenarios.items()
    ]


def _promptriever_rows(row: dict[str, Any], shape: Shape) -> list[dict[str, Any]]:
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for claim in shape.claims:
        sign, instruction, query = "", "", row[claim.query.column]
        if claim.instruction:
            sign, instruction = claim.instruction.sign, row[claim.instruction.column]
        named = "-".join(filter(None, (str(row["group_id"]), sign, claim.query.sign)))
        made = rows.setdefault(
            (sign, claim.query.sign),
            {
                "query_id": named,
                "query": f"{query} {instruction}".strip(),
                "only_query": query,
                "only_instruction": instruction,
                "has_instruction": bool(sign),
                "positive_passages": [],
                "negative_passages": [],
            },
        )
        made["positive_passages" if claim.grade == 2 else "negative_passages"] += [
            {"docid": name, "title": "", "text": text, "explanation": EXPLANATIONS[claim.grade]}
            for name, text in _passages(row, claim.passage)
        ]
    return list(rows.values())


Text = tuple[str, str]


def _anchor_row(_: str, query: str, positive: Text, negatives: list[Text]) -> dict[str, Any]:
    others = {f"negative_{number}": text for number, (_, text) in enumerate(negatives, start=1)}
    return {"anchor": query, "positive": positive[1], **others}


def _tevatron_row(
    query_id: str, query: str, positive: Text, negatives: list[Text]
) -> dict[str, Any]:
    def entries(passages: list[Text]) -> list[dict[str, str]]:
        return [{"docid": name, "title": "", "text": text} for name, text in passages]

    return {
        "query_id": query_id,
        "query": query,
        "positive_passages": entries([positive]),
        "negative_passages": entries(negatives),
    }


def judgment_row(judged: GroupJudgment) -> dict[str, Any]:
    """A judgment in a release; `position` 0 if no candidate was chosen."""
    row: dict[str, Any] = {name: getattr(judged, name) for name in _SHARED["judgments"]}
    return row | {"position": judged.position or 0}


def canonical_line(row: dict[str, Any]) -> bytes:
    """The row as a line of JSONL: the input of the content hash, whatever the format."""
    return (_encode(row) + "\n").encode()


def split_name(dataset: str) -> str:
    """The dataset's name as the name of a split: letters, digits and _ only.

    `all` has a special meaning in `datasets` and becomes `all_groups`.
    """
    plain = unicodedata.normalize("NFKD", dataset).encode("ascii", "ignore").decode()
    name = re.sub(r"\W+", "_", plain).strip("_").lower()
    if name == "all":
        return "all_groups"
    return name or "groups"


def _first_of(meta: dict[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        if isinstance(meta.get(name), str) and meta[name].strip():
            return str(meta[name])
    return ""
