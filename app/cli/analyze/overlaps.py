"""`inf analyze near-duplicates` and `contamination`: texts that stand in several places."""

import click

from analysis.request import ContaminationStart, DuplicatesStart
from analysis.text.sharing import what_is_found
from app.cli.analyze.corpora import corpora_options, started
from app.cli.kit.report import Result, counts, detach_option, reporting


def _start(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 70 else line[:69] + "…"


def _shown_duplicates(result: Result) -> str:
    lines = [
        f"{field}: {numbers['clusters']:,} clusters of near-duplicates, "
        f"{numbers['repeated']:,} texts repeat another, {numbers['between']:,} clusters span "
        "several corpora"
        for field, numbers in result["fields"].items()
    ]
    for cluster in result["clusters"][:10]:
        lines.append(f"{cluster['field']}, {len(cluster['texts'])} times:")
        lines += [f"  {row['corpus']}: {_start(row['text'])}" for row in cluster["texts"][:3]]
    return "\n".join([*lines, f"all are stored as analysis {result['analysis_id']}"])


@click.command("near-duplicates")
@corpora_options(DuplicatesStart)
@detach_option
@reporting(_shown_duplicates)
def near_duplicates(request: DuplicatesStart, detach: bool) -> Result:
    """Find near-duplicate texts within and between corpora."""
    return started(request, detach=detach, title="near-duplicates")


def _shown_contamination(result: Result) -> str:
    sets = ", ".join(corpus["corpus"] for corpus in result["against"])
    known = what_is_found(result["paraphrases"])
    if not result["overlapping"]:
        return f"no text overlaps with {sets}\n{known}"
    lines = [
        f"{result['texts']:,} texts overlap with {sets} ({counts(result['how'])}); "
        f"{len(result['groups']):,} groups contain them"
    ]
    for pair in result["pairs"][:10]:
        there = pair["against"]
        lines.append(f"{pair['how']} ({pair['share']:.2f}) {pair['field']}: {_start(pair['text'])}")
        lines.append(f"    {there['corpus']} {there['field']}: {_start(there['text'])}")
    return "\n".join([*lines, f"all are stored as analysis {result['analysis_id']}", known])


@click.command()
@corpora_options(ContaminationStart)
@detach_option
@reporting(_shown_contamination)
def contamination(request: ContaminationStart, detach: bool) -> Result:
    """Find texts that a dataset or a release shares with evaluation sets.

    Exact matches, matches after normalization (case, accents, look-alike letters), near-duplicates
    (Jaccard 0.7), light edits, shared runs of eight words, and paraphrases by embedding.
    """
    return started(request, detach=detach, title="contamination")
