"""`inf analyze`: agreement, diversity and coverage, overlaps, leakage and validators."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from analysis.figures.figures import sign
from analysis.files.corpora import read_texts
from analysis.request import (
    ContaminationStart,
    CorporaChosen,
    CoverageStart,
    DiversityStart,
    DuplicatesStart,
)
from analysis.text.sharing import what_is_found
from app.cli.analyze.agreement import agreement
from app.cli.kit.options import request_options
from app.cli.kit.report import Launching, Result, command_actor, counts, launched, reporting
from app.cli.kit.table import one_line
from app.operations import analyses, runs
from app.operations.judging import agreement as of_judges
from app.text.numbers import score
from curation.run.leakage import auc_text, leaking_sentence
from curation.run.shared_parts import shared_sentence
from curation.run.starting import RunWork

FILE = click.Path(dir_okay=False, exists=True, resolve_path=True)
PLACE = click.Path(exists=True, resolve_path=True)
FILES = {"texts": FILE, "published": PLACE, "against": PLACE}
FIELD_SIGNS = {"instruction": "I", "query": "Q", "passage": "P", "text": "text"}


@click.group()
def analyze() -> None:
    """Agreement of judges, diversity and coverage of texts."""


analyze.add_command(agreement)


def _of_texts(
    name: str, model: type[CorporaChosen], human: Callable[[Result], str], about: str
) -> None:
    """Add the command of an analysis of texts."""

    @analyze.command(name, help=about)
    @request_options(model, types=FILES)
    @launched
    @reporting(human)
    def command(request: CorporaChosen, launch: Launching) -> Result:
        for path in request.texts:  # unusable lines are reported before the job begins
            read_texts(Path(path))
        actor = command_actor()
        done = analyses.start(actor, request, launch(name))
        circular = model is CoverageStart and "corpora" in done and analyses.about_map(actor, done)
        return done | ({"circular": circular} if circular else {})


def _shown_diversity(result: Result) -> str:
    lines = []
    for corpus in result["corpora"]:
        label = " (offline)" if corpus["offline"] else ""
        lines.append(f"{corpus['corpus']}{label}")
        if corpus["dropped"]:
            lines.append(f"     dropped by its run: {counts(corpus['dropped'])}")
        lines.append("       texts  different  words      APS   INGF-2   INGF-3")
        for field, numbers in corpus["fields"].items():
            lines.append(_diversity_line(FIELD_SIGNS[field], numbers))
            if len(numbers["by_role"]) > 1:
                lines += [
                    _diversity_line(f" {sign(field, role)}", of_role)
                    for role, of_role in numbers["by_role"].items()
                ]
            if sampled := numbers.get("sampled"):
                lines.append(_sampled_line(sampled, numbers.get("halves")))
        for field, numbers in corpus["fields"].items():
            for metric, reason in numbers.get("reason", {}).items():
                lines.append(f"{FIELD_SIGNS[field]}: {metric} is undefined: {reason}")
    return "\n".join(lines)


def _diversity_line(name: str, numbers: dict[str, Any]) -> str:
    def cell(value: float | None, digits: int) -> str:
        return "–" if value is None else f"{value:.{digits}f}"

    return (
        f"{name:<4} {numbers['texts']:>7,} {numbers['different']:>10,}"
        f" {cell(numbers['mean_words'], 1):>6} {cell(numbers['aps'], 4):>8}"
        f" {cell(numbers['ingf_2'], 1):>8} {cell(numbers['ingf_3'], 1):>8}"
    )


def _sampled_line(sampled: dict[str, Any], halves: dict[str, Any] | None = None) -> str:
    parts = []
    for metric, name in (("aps", "APS"), ("ingf_2", "INGF-2"), ("ingf_3", "INGF-3")):
        if sampled[metric] is None:
            parts.append(f"{name} undefined ({sampled['reason'][metric]})")
        else:
            sd = sampled[metric]["sd"]
            spread = " (one draw)" if sd is None else f" ± {sd:.4g}"
            own = (halves or {}).get(metric)
            apart = "" if own is None else f" (its own halves differ by {own:.4g})"
            parts.append(f"{name} {sampled[metric]['mean']:.6g}{spread}{apart}")
    why = f"; no halves: {halves['reason']}" if halves and "reason" in halves else ""
    return f"     {sampled['repeats']} samples of {sampled['size']:,}: " + ", ".join(parts) + why


_of_texts(
    "diversity",
    DiversityStart,
    _shown_diversity,
    "APS, INGF, counts and mean lengths of instructions, queries and passages.\n\nSeveral corpora "
    "are also compared on samples of equal size, because INGF grows with size.",
)


def _share(value: float | None) -> str:
    """A share with three digits."""
    return "undefined" if value is None else f"{value:.3f}"


def _shown_coverage(result: Result) -> str:
    lines = [
        f"{corpus['corpus']}: {corpus['points']:,} points" + (" (offline)" * corpus["offline"])
        for corpus in result["corpora"]
    ]
    for field, numbers in result["fields"].items():
        for name, found in numbers.items():
            hull = found["hull_share"]
            hull_text = (
                f"hull {hull:.3f}" if hull is not None else f"hull undefined ({found['reason']})"
            )
            lines.append(f"{field}, {name}: {found['occupied_share']:.3f} of the map, {hull_text}")
    for row in result["covered"]:
        shares = [
            f"{label} undefined ({row['reason']})"
            if row[name] is None
            else f"{label} {row[name]:.3f} (its own halves {_share(row[name + '_halves'])})"
            for name, label in (("share", "covered"), ("map", "map"), ("hull", "hull"))
        ]
        lines.append(
            f"{row['field']}: {row['corpus']} with {row['by']}, {row['size']:,} texts of each: "
            + ", ".join(shares)
        )
    if result.get("circular"):
        lines.append(result["circular"])
    known = "was already stored" if result["known"] else "is stored"
    return "\n".join([*lines, f"the map {known} as analysis {result['analysis_id']}"])


_of_texts(
    "coverage",
    CoverageStart,
    _shown_coverage,
    "Compute a UMAP of instructions, queries and passages; the Coverage page shows it.",
)


def _shown_duplicates(result: Result) -> str:
    lines = [
        f"{field}: {numbers['clusters']:,} clusters of near-duplicates, "
        f"{numbers['repeated']:,} texts repeat another, {numbers['between']:,} clusters span "
        "several corpora"
        for field, numbers in result["fields"].items()
    ]
    for cluster in result["clusters"][:10]:
        lines.append(f"{cluster['field']}, {len(cluster['texts'])} times:")
        lines += [f"  {row['corpus']}: {one_line(row['text'])}" for row in cluster["texts"][:3]]
    return "\n".join([*lines, f"all are stored as analysis {result['analysis_id']}"])


_of_texts(
    "near-duplicates",
    DuplicatesStart,
    _shown_duplicates,
    "Find near-duplicate texts within and between corpora.",
)


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
        lines.append(
            f"{pair['how']} ({pair['share']:.2f}) {pair['field']}: {one_line(pair['text'])}"
        )
        lines.append(f"    {there['corpus']} {there['field']}: {one_line(there['text'])}")
    return "\n".join([*lines, f"all are stored as analysis {result['analysis_id']}", known])


_of_texts(
    "contamination",
    ContaminationStart,
    _shown_contamination,
    "Find texts that a dataset or a release shares with evaluation sets.\n\nExact matches, matches "
    "after normalization (case, accents, look-alike letters), near-duplicates (Jaccard 0.7), light "
    "edits, shared runs of eight words, and paraphrases by embedding.",
)


def _shown_leakage(result: Result) -> str:
    report = result["leakage"]
    rows = [
        f"{name}: AUC {auc_text(found)}, {found['pairs']:,} pairs"
        + (f"; by length alone {found['length_auc']:.3f}" if found["auc"] is not None else "")
        for name, found in report["comparisons"].items()
    ]
    sentences = [leaking_sentence(report), shared_sentence(result.get("shared_parts"))]
    return "\n".join([*rows, *filter(None, sentences)])


@analyze.command()
@click.option("--run", "run_id", type=int, required=True, help="The run to check.")
@launched
@reporting(_shown_leakage)
def leakage(run_id: int, launch: Launching) -> Result:
    """Check a run, also an earlier one, for style that gives negatives away, and shared parts."""
    wanted = RunWork(run_id=run_id, only="leakage")
    return runs.work_on(command_actor(), wanted, launch("leakage"))


def _shown_validators(result: Result) -> str:
    lines = [f"run {result['run_id']} kept {result['kept']:,} of {result['groups']:,} groups"]
    if not result.get("scope", {}).get("of_run", True):
        lines.append(f"no kappa with people is shown: {result['scope']['sentence']}")
    for row in result["validators"]:
        passed = "–" if row["items_passed"] is None else f"{row['items_passed']:.3f}"
        cost = row["usd_per_1000_items"]
        estimated = " (estimated)" * (row["price_from"] == "estimate")
        price = (
            f"cost unknown: {row['price_reason']}"
            if cost is None
            else f"{cost:.4f} USD per 1,000 items{estimated}"
        )
        missing = "not requested" if result.get("scope", {}).get("of_run", True) else "not shown"
        kappa = score(row["human_kappa"]["value"]) if "human_kappa" in row else missing
        lines.append(
            f"{row['judge']}: passes {passed} of {row['items']:,} items, {price}, "
            f"kappa with people {kappa}"
        )
        lines.append(_beside_line(row))
    if result["flag_note"]:
        lines.append(f"kappa with people: {result['flag_note']}")
    for row in result["policies"]:
        lines.append(f"{row['policy']} of {', '.join(row['judges'])}:")
        lines.append(_beside_line(row))
    if result["not_asked"]:
        prices = ", ".join(
            f"{row['model']} {row['usd_per_1000_items']:.4f}" for row in result["not_asked"]
        )
        lines.append(f"not run, estimated USD per 1,000 items: {prices}")
    return "\n".join(lines)


def _beside_line(row: dict[str, Any]) -> str:
    whole = (
        f"    of {row['groups']:,} fully judged groups it keeps {row['kept']:,}: "
        f"{row['kept_by_both']:,} also kept by the run, {row['only_here']:,} more, "
        f"{row['only_by_the_run']:,} fewer"
    )
    if not row["kept_groups_in_part"]:
        return whole
    return (
        f"{whole}; of {row['kept_groups_in_part']:,} partly judged kept groups it drops at least "
        f"{row['surely_dropped_of_them']:,}"
    )


@analyze.command()
@click.option("--dataset", required=True, help="The dataset.")
@click.option("--run", type=int, help="A run of the dataset (default: the latest).")
@click.option("--study", type=int, help="A study; adds each model's kappa with its people.")
@click.option(
    "--judge",
    multiple=True,
    help="A voting judge; repeatable (default: all model judges with a fully judged group).",
)
@reporting(_shown_validators)
def validators(dataset: str, run: int | None, study: int | None, judge: tuple[str, ...]) -> Result:
    """Compare how model judges, and votes among them, would filter a run, before paying for it."""
    return of_judges.validators(command_actor(), dataset, run, study, judge)
