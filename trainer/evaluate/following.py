"""Measures of instruction following on held-out groups, and their controls.

A group has three scenarios and three passages: (I+,Q+) → P+, (I-,Q+) → P1-, (I+,Q-) → P2-. With
s[i, j] the score of scenario i for passage j, each measure is 1 or 0 per group, equal scores count
against the model, and the figure is the mean over groups:

    strict            s[i, i] > s[i, j] for every i and j ≠ i
    instruction-flip  s[0, 0] > s[0, 1] and s[1, 1] > s[1, 0]: one query, the instruction changes
    query-flip        s[0, 0] > s[0, 2] and s[2, 2] > s[2, 0]: one instruction, the query changes

Chance is 1/4 for a flip. Without instructions the instruction flip is exactly 0, without queries
the query flip. Controls score the same groups with the query alone and with the instruction alone:
an instruction flip that the instruction alone reaches too says nothing about joint reading. Source:
shared notes on instruction metrics; p-MRR over groups has no such floor and ceiling.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from analysis.files.rows import read_rows
from db.errors import BadInput
from db.shape import Shape
from trainer.evaluate.measures.among_all import (
    AMONG_ALL,
    Rank,
    plain_ndcg_by_group,
    right_first_by_group,
)
from trainer.evaluate.measures.compliance import compliance
from trainer.settings.template import Template

if TYPE_CHECKING:
    from analysis.text.bm25 import Bm25
    from trainer.evaluate.benchmarks import Benchmark

STRICT, INSTRUCTION_FLIP, QUERY_FLIP = "strict", "instruction-flip", "query-flip"
FOLLOWING = {
    STRICT: "Share of groups whose three scenarios each rank their own passage above the group's "
    "other two.",
    INSTRUCTION_FLIP: "Share of groups in which changing only the instruction changes which of two "
    "passages ranks first; chance 0.25, and 0 for a model that ignores instructions.",
    QUERY_FLIP: "Share of groups in which changing only the query changes which of two passages "
    "ranks first; chance 0.25, and 0 for a model that ignores queries.",
}
ON_GROUPS = {**FOLLOWING, **AMONG_ALL}  # every measure of held-out groups
QUERY_ALONE, INSTRUCTION_ALONE = "query-alone", "instruction-alone"
CONTROLS = (QUERY_ALONE, INSTRUCTION_ALONE)
INSTRUCTION_CONTROL = f"{INSTRUCTION_ALONE}:{INSTRUCTION_FLIP}"
QUERY_CONTROL = f"{QUERY_ALONE}:{QUERY_FLIP}"
STABILITY = "paraphrase-stability"
STABILITY_HELP = (
    "Share of groups whose ranking of the three passages stays the same when the instructions are "
    "paraphrased; groups without a paraphrase are not counted."
)
MAX_BASE_FLIP = 0.9  # above it a held-out set is too easy to show an improvement
ScoreTexts = Callable[[Sequence[str], Sequence[Sequence[str]]], Sequence[Sequence[float]]]
"""(texts, for each the ids of documents) → for each the scores of its documents."""


@dataclass(frozen=True)
class GroupPlaces:
    """Where a held-out group stands in a benchmark: ids of its questions and documents, in the
    order of `db.shape`.

    By the claims of the group, answering: the documents that answer the first query alone; lower:
    for each question those of lists that it must rank below its own; ungraded: for each question
    those of which no claim is made, and which take no part.
    """

    questions: tuple[str, ...]
    documents: tuple[str, ...]
    answering: tuple[str, ...]
    lower: tuple[tuple[str, ...], ...]
    ungraded: tuple[tuple[str, ...], ...]


def follows(scores: Sequence[Sequence[float]], shape: Shape) -> dict[str, float]:
    """Every measure of one group, 0.0 or 1.0.

    scores: of each of its S scenarios those of the S passages, then of what lists have that it must
    rank below its own. A shape without a second instruction for its query, or a second query for
    its instruction, has no flip by it; one of a single scenario has no measure.
    """
    if len(shape.roles) == 1:
        return {}
    is_strict = all(
        of[own] > other for own, of in enumerate(scores) for k, other in enumerate(of) if k != own
    )
    found = {STRICT: float(is_strict)}
    for name, other in (
        (INSTRUCTION_FLIP, shape.other_instruction),
        (QUERY_FLIP, shape.other_query),
    ):
        if other is not None:
            found[name] = _flips(scores, other)
    return found


def _flips(scores: Sequence[Sequence[float]], other: int) -> float:
    """Whether scenario 0 and the other one each prefer their own of the two passages."""
    return float(scores[0][0] > scores[0][other] and scores[other][other] > scores[other][0])


def texts_of(benchmark: "Benchmark", template: Template, control: str = "") -> list[str]:
    """The texts of every group's scenarios: by the template, or one half alone as a control."""
    texts = []
    for group in benchmark.groups.values():
        for name in group.questions:
            question = benchmark.questions[name]
            if control == QUERY_ALONE:
                texts.append(template.apply("", question.query))
            elif control == INSTRUCTION_ALONE:
                texts.append(template.apply("", question.instruction))
            else:
                texts.append(template.apply(question.instruction, question.query))
    return texts


def group_scores(
    benchmark: "Benchmark", template: Template, score: ScoreTexts
) -> dict[str, np.ndarray]:
    """{group: scores (S, S) of its S scenarios for their passages}; empty without groups."""
    texts = texts_of(benchmark, template)
    wanted = [group.documents for group in benchmark.groups.values() for _ in group.questions]
    scores = np.asarray(score(texts, wanted), dtype=np.float64).reshape(
        -1, len(benchmark.shape.roles), len(benchmark.shape.roles)
    )
    return dict(zip(benchmark.groups, scores, strict=True))


def follow_by_group(
    benchmark: "Benchmark", template: Template, score: ScoreTexts, control: str = ""
) -> dict[str, dict[str, float]]:
    """{group: {measure: 0.0 or 1.0}}; empty for a benchmark without groups."""
    groups = benchmark.groups
    wanted = [(*group.documents, *lower) for group in groups.values() for lower in group.lower]
    rows = iter(score(texts_of(benchmark, template, control), wanted))
    return {
        name: follows([next(rows) for _ in group.questions], benchmark.shape)
        for name, group in groups.items()
    }


def comply_by_group(
    benchmark: "Benchmark", template: Template, score: ScoreTexts
) -> dict[str, dict[str, float]]:
    """{group: {sicr, wise}} of P+: Q+ alone, (I+,Q+), and (I-,Q+) as the reversal.

    Ranked over the list that p-MRR is ranked over. Of InF-IR two documents answer Q+ alone: P+ and
    P1-. Empty for a shape without a second instruction.
    """
    place_of_other = benchmark.shape.other_instruction
    if place_of_other is None:
        return {}
    texts: list[str] = []
    wanted: list[list[str]] = []
    for key, group in benchmark.groups.items():
        one = benchmark.questions[group.questions[0]]
        other = benchmark.questions[group.questions[place_of_other]]
        texts += [
            template.apply("", one.query),
            template.apply(one.instruction, one.query),
            template.apply(other.instruction, other.query),
        ]
        wanted += [benchmark.changed_candidates[key]] * 3
    scores = score(texts, wanted)
    found = {}
    for place, (key, group) in enumerate(benchmark.groups.items()):
        original, instructed, reverse = (
            dict(zip(wanted[3 * place + mode], scores[3 * place + mode], strict=True))
            for mode in range(3)
        )
        applies = len(group.answering)
        found[key] = compliance([group.documents[0]], original, instructed, reverse, applies)
    return found


def stability_by_group(
    benchmark: "Benchmark",
    template: Template,
    score: ScoreTexts,
    paraphrases: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, float]]:
    """{group: {paraphrase-stability: 0.0 or 1.0}} of the groups that have a paraphrase.

    1 where under every paraphrase of every scenario's instruction the group's three passages keep
    their order; equal scores count against the model. paraphrases: {instruction: its paraphrases}.
    """
    texts: list[str] = []
    wanted: list[tuple[str, ...]] = []
    of: list[tuple[str, bool]] = []  # (group, whether a new scenario begins)
    for key, group in benchmark.groups.items():
        for name in group.questions:
            question = benchmark.questions[name]
            others = paraphrases.get(question.instruction, ())
            for number, instruction in enumerate((question.instruction, *others)):
                if others:
                    texts.append(template.apply(instruction, question.query))
                    wanted.append(group.documents)
                    of.append((key, number == 0))
    found: dict[str, dict[str, float]] = {}
    first: list[int] | None = None
    for (key, is_first), values in zip(of, score(texts, wanted) if texts else (), strict=True):
        order = _strict_order(values)
        if is_first:
            first = order
        stays = order is not None and order == first
        before = found.get(key, {STABILITY: 1.0})[STABILITY]
        found[key] = {STABILITY: float(before == 1.0 and stays)}
    return found


def _strict_order(scores: Sequence[float]) -> list[int] | None:
    """Places by score, best first; None where two scores are equal."""
    if len(set(scores)) < len(scores):
        return None
    return sorted(range(len(scores)), key=lambda place: -scores[place])


def read_paraphrases(file: Path) -> dict[str, list[str]]:
    """{instruction: its paraphrases} of a JSON-lines file {instruction, paraphrase}.

    Raises BadInput with file and line.
    """
    found: dict[str, list[str]] = {}
    for row in read_rows(file):
        instruction, paraphrase = (row.values.get(key) for key in ("instruction", "paraphrase"))
        usable = isinstance(instruction, str) and isinstance(paraphrase, str)
        if row.reason is not None or not usable:
            reason = row.reason or "it needs `instruction` and `paraphrase`, both texts"
            raise BadInput(
                f"{file}, line {row.line}: {reason}", "correct that line", code="row_invalid"
            )
        found.setdefault(str(instruction), []).append(str(paraphrase))
    if not found:
        raise BadInput(
            f"{file} holds no paraphrase",
            "write a paraphrase on each line",
            code="paraphrases_empty",
        )
    return found


def mean_following(by_group: Mapping[str, Mapping[str, float]]) -> dict[str, float | None]:
    """The mean over groups of every measure that they have; None without a group."""
    if not by_group:
        return dict.fromkeys(FOLLOWING)
    names = next(iter(by_group.values()))
    return {name: fmean(values[name] for values in by_group.values()) for name in names}


def mean_by_control(
    by_control: Mapping[str, Mapping[str, Mapping[str, float]]],
) -> dict[str, float | None]:
    """The means of what `following_of` gives; controls are named `query-alone:strict`, …"""
    return {
        f"{control}:{name}" if control else name: value
        for control, by_group in by_control.items()
        for name, value in mean_following(by_group).items()
    }


def bm25_following(benchmark: "Benchmark", template: Template) -> dict[str, float | None]:
    """The measures of BM25 on the same groups, and of BM25 with each half alone."""
    from analysis.text.bm25 import Bm25

    index = Bm25(list(benchmark.corpus.values()), benchmark.language)
    return mean_by_control(
        following_of(
            benchmark, template, bm25_scores(benchmark, index), rank=bm25_rank(benchmark, index)
        )
    )


def following_of(
    benchmark: "Benchmark",
    template: Template,
    score: ScoreTexts,
    controls: bool = True,
    rank: Rank | None = None,
) -> dict[str, dict[str, dict[str, float]]]:
    """{control: {group: {measure: value}}}, "" for the whole text; empty without groups.

    rank: searches all held-out passages; without it what is measured among all of them is missing.
    """
    if not benchmark.groups:
        return {}
    found = {}
    documents = {key: group.documents for key, group in benchmark.groups.items()}
    for control in ("", *CONTROLS) if controls else ("",):
        found[control] = follow_by_group(benchmark, template, score, control)
        if rank:
            texts = texts_of(benchmark, template, control)
            ungraded = {key: group.ungraded for key, group in benchmark.groups.items()}
            for key, values in right_first_by_group(documents, texts, rank, ungraded).items():
                found[control][key] |= values
    if rank and controls:
        queries = texts_of(benchmark, template, QUERY_ALONE)[:: len(benchmark.shape.roles)]
        answering = {key: group.answering for key, group in benchmark.groups.items()}
        for key, values in plain_ndcg_by_group(answering, queries, rank).items():
            found[""][key] |= values
    return found


def bm25_scores(benchmark: "Benchmark", index: "Bm25") -> ScoreTexts:
    """BM25 over the benchmark's corpus, which `index` is of; a text is one bag of words."""
    places = {name: place for place, name in enumerate(benchmark.corpus)}

    def score(texts: Sequence[str], wanted: Sequence[Sequence[str]]) -> list[list[float]]:
        found = []
        for text, documents in zip(texts, wanted, strict=True):
            scores = index.scores(text)
            found.append([float(scores[places[name]]) for name in documents])
        return found

    return score


def bm25_rank(benchmark: "Benchmark", index: "Bm25") -> Rank:
    """The best documents of the benchmark's corpus by BM25."""
    ids = list(benchmark.corpus)

    def rank(texts: Sequence[str], depth: int) -> list[dict[str, float]]:
        places, scores = index.top(list(texts), depth)
        return [
            {ids[place]: float(score) for place, score in zip(*best, strict=True)}
            for best in zip(places, scores, strict=True)
        ]

    return rank
