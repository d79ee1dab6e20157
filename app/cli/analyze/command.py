"""`inf analyze`: agreement, diversity and coverage, overlaps, leakage and validators."""

from collections.abc import Callable
from typing import Any

import click

from analysis.agreement.validators import TITLES, kept_rows, validator_row
from analysis.found.texts import ContaminationFound, CoverageFound, DiversityFound, DuplicatesFound
from analysis.request import (
    ContaminationStart,
    CorporaChosen,
    CoverageStart,
    DiversityStart,
    DuplicatesStart,
)
from analysis.text.diversity_tables import compared_rows, number_rows, share_rows
from analysis.text.sharing import cluster_rows, overlap_rows, repeated_rows, what_is_found
from app.cli.analyze.agreement import add_to
from app.cli.kit.doors import Noun
from app.cli.kit.report import Result, counts
from app.cli.kit.table import sheet
from app.operations import analyses, runs
from app.operations.judging import agreement as of_judges
from curation.run.closing import RunChecked
from curation.run.leakage import leakage_rows, leaking_sentence
from curation.run.shared_parts import shared_sentence

SHOWN = 10  # clusters and pairs: all are stored


analyze = Noun("analyze")
add_to(analyze)


def _of_texts(
    name: str, model: type[CorporaChosen], human: Callable[[Any], str], about: str
) -> None:
    """Add the command of an analysis of texts."""
    analyze.door(analyses.start, name=name, title=name, text=human, request=model, about=about)


def _shown_diversity(result: DiversityFound) -> str:
    corpora = [each.corpus for each in result.corpora if each.offline]
    rows = number_rows(result.corpora)
    lines = [sheet([{k: v for k, v in row.items() if k != "reasons"} for row in rows])]
    lines += [f"made offline: {', '.join(corpora)}"] if corpora else []
    lines += [
        f"{each.corpus}, dropped by its run: {counts(each.dropped)}"
        for each in result.corpora
        if each.dropped
    ]
    return "\n".join([*lines, *dict.fromkeys(reason for row in rows for reason in row["reasons"])])


_of_texts(
    "diversity",
    DiversityStart,
    _shown_diversity,
    "APS, INGF, counts and mean lengths of instructions, queries and passages.\n\nSeveral corpora "
    "are also compared on samples of equal size, because INGF grows with size.",
)


def _shown_coverage(result: CoverageFound) -> str:
    lines = [
        f"{corpus.corpus}: {corpus.points:,} points" + " (offline)" * corpus.offline
        for corpus in result.corpora
    ]
    lines.append(sheet(share_rows(result.fields)))
    lines += [sheet(compared_rows(result.covered))] if result.covered else []
    lines += [result.circular] if result.circular else []
    known = "was already stored" if result.known else "is stored"
    return "\n".join([*lines, f"the map {known} as analysis {result.analysis_id}"])


_of_texts(
    "coverage",
    CoverageStart,
    _shown_coverage,
    "Compute a UMAP of instructions, queries and passages; the Coverage page shows it.",
)


def _shown_duplicates(result: DuplicatesFound) -> str:
    largest = cluster_rows(result.clusters[:SHOWN])
    lines = [sheet(repeated_rows(result.fields)), *([sheet(largest)] if largest else [])]
    return "\n".join([*lines, f"all are stored as analysis {result.analysis_id}"])


_of_texts(
    "near-duplicates",
    DuplicatesStart,
    _shown_duplicates,
    "Find near-duplicate texts within and between corpora.",
)


def _shown_contamination(result: ContaminationFound) -> str:
    sets = ", ".join(corpus.corpus for corpus in result.against)
    known = what_is_found(result.paraphrases)
    if not result.overlapping:
        return f"no text overlaps with {sets}\n{known}"
    lines = [
        f"{result.texts:,} texts overlap with {sets} ({counts(result.how)}); "
        f"{len(result.groups):,} groups contain them"
    ]
    lines.append(sheet(overlap_rows(result.pairs[:SHOWN])))
    return "\n".join([*lines, f"all are stored as analysis {result.analysis_id}", known])


_of_texts(
    "contamination",
    ContaminationStart,
    _shown_contamination,
    "Find texts that a dataset or a release shares with evaluation sets.\n\nExact matches, matches "
    "after normalization (case, accents, look-alike letters), near-duplicates (Jaccard 0.7), light "
    "edits, shared runs of eight words, and paraphrases by embedding.",
)


def _shown_leakage(result: RunChecked) -> str:
    sentences = [leaking_sentence(result.leakage), shared_sentence(result.shared_parts)]
    return "\n".join([sheet(leakage_rows(result.leakage)), *filter(None, sentences)])


analyze.door(
    runs.check,
    click.option("--run", "run_id", type=int, required=True, help="The run to check."),
    name="leakage",
    title="leakage",
    text=_shown_leakage,
)


def _shown_validators(result: Result) -> str:
    lines = [f"run {result['run_id']} kept {result['kept']:,} of {result['groups']:,} groups"]
    if not result.get("scope", {}).get("of_run", True):
        lines.append(f"no kappa with people is shown: {result['scope']['sentence']}")
    found = result["validators"]
    kept = kept_rows([*found, *result["policies"]])
    lines += [
        sheet([*map(validator_row, found)], empty="no model has judged a whole group"),
        *(
            f"{row['judge']}: cost unknown: {row['price_reason']}"
            for row in found
            if row["usd_per_1000_items"] is None
        ),
        sheet([{label: row[key] for key, label in TITLES.items()} for row in kept]),
    ]
    if result["flag_note"]:
        lines.append(f"kappa with people: {result['flag_note']}")
    if result["not_asked"]:
        prices = ", ".join(
            f"{row['model']} {row['usd_per_1000_items']:.4f}" for row in result["not_asked"]
        )
        lines.append(f"not run, estimated USD per 1,000 items: {prices}")
    return "\n".join(lines)


analyze.door(of_judges.validators, text=_shown_validators)
