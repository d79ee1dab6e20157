"""The natural probe: items written for it in plain language, scored by every training.

Each item has one query, two opposed instructions, a passage that is right under each, and two
distractors (`natural.jsonl`, CC0; in no training or demo set). Held-out groups share the wording of
their training groups; this set does not, so it shows what transfers.

    natural-flip    s(a, p_a) > s(a, p_b) and s(b, p_b) > s(b, p_a); chance 1/4, and 0 for a model
                    that ignores instructions
    natural-first   under each instruction its passage ranks above the other three; chance 1/16

Equal scores count against the model. Both are means over items. Controls: the instruction alone,
and BM25; the query alone has 0 in both, by construction.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from db.errors import BadInput
from trainer.evaluate.following import INSTRUCTION_ALONE
from trainer.evaluate.scoring import encode_unique
from trainer.model.backbone import question_encoder
from trainer.settings.template import Template

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from trainer.evaluate.vector_cache import Caches

FILE = Path(__file__).with_name("natural.jsonl")
FLIP, FIRST = "natural-flip", "natural-first"
MEASURES = {
    FLIP: "Share of natural probe items in which the instruction decides between two passages; "
    "chance 0.25, and 0 for a model that ignores instructions.",
    FIRST: "Share of natural probe items in which each instruction ranks its passage first of "
    "four; chance 0.0625.",
}


@dataclass(frozen=True)
class ProbeItem:
    """One query under two opposed instructions, each with its passage, and two distractors."""

    id: str
    query: str
    instruction_a: str
    instruction_b: str
    passage_a: str
    passage_b: str
    distractor_1: str
    distractor_2: str
    style: str

    @property
    def passages(self) -> tuple[str, str, str, str]:
        """p_a, p_b and the distractors."""
        return self.passage_a, self.passage_b, self.distractor_1, self.distractor_2


@dataclass(frozen=True)
class ProbeScores:
    """Means over all items, the flip of each style, and the measures of every item by its id."""

    items: int
    metrics: dict[str, float]
    flip_by_style: dict[str, float]
    per_item: dict[str, dict[str, float]] = field(default_factory=dict)


@lru_cache(maxsize=2)
def read_natural_probe(file: Path = FILE) -> tuple[ProbeItem, ...]:
    """The items of the file. Raises BadInput with line and reason."""
    names = [each.name for each in fields(ProbeItem)]
    items: dict[str, ProbeItem] = {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadInput(
            f"the natural probe {file} cannot be read: {error}",
            "correct the path or its rights",
            code="natural_probe_unreadable",
        ) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row: Any = json.loads(line)
        except ValueError as error:
            raise BadInput(
                f"{file}, line {number} is not JSON: {error}",
                "correct that line",
                code="json_invalid",
            ) from error
        values: dict[str, Any] = {
            name: row.get(name) if isinstance(row, dict) else None for name in names
        }
        if missing := [n for n, v in values.items() if not isinstance(v, str) or not v.strip()]:
            raise BadInput(
                f"{file}, line {number} has no `{missing[0]}`", "add it", code="field_missing"
            )
        item = ProbeItem(**values)
        if item.id in items:
            raise BadInput(
                f"{file}, line {number}: item {item.id!r} is there twice",
                "keep one of them",
                code="item_duplicate",
            )
        items[item.id] = item
    if not items:
        raise BadInput(
            f"the natural probe {file} has no items",
            "write an item on each line",
            code="natural_probe_empty",
        )
    return tuple(items.values())


def score_natural_probe(
    model: "SentenceTransformer",
    template: Template,
    items: Sequence[ProbeItem],
    *,
    check: Callable[[], None] | None = None,
    caches: "Caches | None" = None,
    controls: bool = True,
) -> ProbeScores:
    """The model on the items; queries by the template, as in training. caches: as `score_model`.

    controls: also with the instruction alone; with the query alone both measures are 0.
    """

    def count(_: int) -> None:
        if check:
            check()

    texts = _questions(items, template)
    if controls:
        texts += _questions(items, template, without_query=True)
    passages = [passage for item in items for passage in item.passages]
    of_queries, of_passages = caches or (None, None)
    queries = encode_unique(question_encoder(model, ()), texts, count, of_queries)
    documents = encode_unique(model.encode_document, passages, count, of_passages)
    queries = queries.reshape(-1, 2, queries.shape[1])
    documents = documents.reshape(len(items), 4, -1)
    scores = [own @ theirs.T for own, theirs in zip(queries[: len(items)], documents, strict=True)]
    found = _measured(items, scores)
    if controls:
        alone = zip(queries[len(items) :], documents, strict=True)
        of = _measured(items, [own @ theirs.T for own, theirs in alone])
        found.metrics.update({f"{INSTRUCTION_ALONE}:{n}": v for n, v in of.metrics.items()})
    return found


def bm25_natural_probe(items: Sequence[ProbeItem], template: Template) -> dict[str, float]:
    """The measures of BM25 over all passages of the probe, instruction and query as one text."""
    from analysis.text.bm25 import Bm25

    index = Bm25([passage for item in items for passage in item.passages])
    found: dict[str, float] = {}
    for prefix, without_query in (("", False), (f"{INSTRUCTION_ALONE}:", True)):
        every = [index.scores(text) for text in _questions(items, template, without_query)]
        rows = np.stack(every).reshape(len(items), 2, len(items), 4)
        own = [of[:, place] for place, of in enumerate(rows)]
        found |= {prefix + name: of for name, of in _measured(items, own).metrics.items()}
    return found


def _questions(
    items: Sequence[ProbeItem], template: Template, without_query: bool = False
) -> list[str]:
    """Two texts of each item."""
    return [
        template.apply("", instruction)
        if without_query
        else template.apply(instruction, item.query)
        for item in items
        for instruction in (item.instruction_a, item.instruction_b)
    ]


def _measured(items: Sequence[ProbeItem], scores: Sequence[np.ndarray]) -> ProbeScores:
    """scores: of each item (2 instructions, 4 passages)."""
    flips: dict[str, list[float]] = {}
    firsts: list[float] = []
    per_item: dict[str, dict[str, float]] = {}
    for item, of in zip(items, scores, strict=True):
        flip = of[0, 0] > of[0, 1] and of[1, 1] > of[1, 0]
        others = (of[0, 1:].max(), of[1, [0, 2, 3]].max())
        flips.setdefault(item.style, []).append(float(flip))
        firsts.append(float(of[0, 0] > others[0] and of[1, 1] > others[1]))
        per_item[item.id] = {FLIP: float(flip), FIRST: firsts[-1]}
    every = [value for values in flips.values() for value in values]
    return ProbeScores(
        len(items),
        {FLIP: fmean(every), FIRST: fmean(firsts)},
        {style: fmean(values) for style, values in sorted(flips.items())},
        per_item,
    )
