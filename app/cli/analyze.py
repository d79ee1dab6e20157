"""`inf analyze`: agreement, diversity and coverage."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from analysis.agreement.agreement import agreement_report, interval_caption
from analysis.agreement.intervals import DRAWS
from analysis.agreement.judge_profile import judge_profiles
from analysis.agreement.judgment_file import read_judgments
from analysis.agreement.judgment_filter import JudgmentFilter, chosen_rows, decisions_of
from analysis.agreement.over_time import agreement_over_time
from analysis.agreement.validators import Answer, choosing_report
from analysis.figures.figures import sign
from analysis.files.corpora import read_texts
from app.cli.data.import_ import bad_rows_in_json
from app.cli.kit.report import Result, counts, detach_option, ready_store, reporting, work
from app.text.numbers import score
from curation.judging.scope import study_scope
from curation.recipe.prices import load_prices
from curation.run.estimate import judging_prices
from db.corpus.datasets import get_dataset
from db.run.position_bias import study_choices
from db.run.runs import choose_run
from db.run.validations import judge_models, judging_cost, run_answers, run_verdicts
from db.scenarios import SCENARIOS
from db.study.items import study_item_places
from db.study.judgments import judgment_frame
from db.study.quality import judge_quality
from db.study.studies import get_study


@click.group()
def analyze() -> None:
    """Agreement of judges, diversity and coverage of texts."""


def _interval(numbers: dict[str, Any]) -> str:
    if not numbers.get("interval"):
        return ""
    low, high = numbers["interval"]
    return f" [{low:.4f}, {high:.4f}]"


def _mean_line(name: str, mean: dict[str, Any]) -> str:
    if mean["kappa"] is None:
        return f"{name}: undefined ({mean['reason']})"
    left_out = mean["undefined_pairs"]
    pairs = "pair" if mean["pairs"] == 1 else "pairs"
    note = f", {left_out} undefined" if left_out else ""
    value = f"{score(mean['kappa'])}{_interval(mean)}"
    return f"{name}: mean kappa {value} over {mean['pairs']} {pairs}{note}"


COEFFICIENTS = {
    "agreement": "raw agreement",
    "fleiss_kappa": "Fleiss' kappa",
    "krippendorff_alpha": "Krippendorff's alpha",
    "gwet_ac1": "Gwet's AC1",
}


def _shown_agreement(report: Result) -> str:
    lines = [f"{report['judgments']:,} judgments of {report['items']:,} items"]
    if "scope" in report:
        lines.append(report["scope"]["sentence"])
    if report["simulated"]:
        lines.append("the people are simulated judges: demo data, not evidence")
    for pair in report["pairs"]:
        reason = f" ({pair['reason']})" if "reason" in pair else ""
        lines.append(
            f"{pair['judge_a']} – {pair['judge_b']}: kappa {score(pair['kappa'])}"
            f"{_interval(pair)}{reason}, agreement {score(pair['agreement'])}, "
            f"{pair['items']:,} items"
        )
    lines.append(_mean_line("human–human", report["human_human"]))
    lines += [_mean_line(f"human–{model}", mean) for model, mean in report["human_model"].items()]
    for row in report["differences"]:
        difference = f"{row['model_a']} minus {row['model_b']}: {score(row['difference'])}"
        reason = f" ({row['reason']})" if "reason" in row else ""
        lines.append(f"{difference}{_interval(row)}{reason}")
    for name, label in COEFFICIENTS.items():
        found = report["people"][name]
        reason = f" ({found['reason']})" if "reason" in found else ""
        lines.append(f"people, {label}: {score(found['value'])}{_interval(found)}{reason}")
    for window in report.get("over_time", ()):
        mean = window["human_human"]
        lines.append(
            f"window {window['window']} to {window['to'][:16]}: {window['items']:,} items, "
            f"people's kappa {score(mean['kappa'])}"
            + (f" ({mean['reason']})" if "reason" in mean else "")
        )
    for each in report.get("by_judge", ()):
        pace, gold = each["median_seconds"], each["gold_accuracy"]
        p, bias = each["position_bias"]["p"], each["position_bias"].get("reason", "")
        lines.append(
            f"{each['judge']}: {each['judged']:,} judged, "
            + ("pace unknown" if pace is None else f"{pace:.1f} s each")
            + f", kappa with people {score(each['with_people']['kappa'])}"
            + (", no gold items" if gold is None else f", gold {gold:.3f} of {each['gold_seen']}")
            + (f", position bias undefined ({bias})" if p is None else f", position bias p {p:.4f}")
        )
    if caption := interval_caption(report):
        lines.append(f"in brackets: {caption}")
    return "\n".join(lines)


DAY = click.DateTime(["%Y-%m-%d"])


@analyze.command()
@click.option("--study", type=int, help="Id of the study.")
@click.option(
    "--judgments",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="CSV or JSONL with item, judge, label and, if there are models, kind (person or model).",
)
@click.option(
    "--resamples",
    default=DRAWS,
    show_default=True,
    type=click.IntRange(min=0),
    help="Bootstrap resamples; 0 omits the intervals.",
)
@click.option(
    "--role",
    multiple=True,
    type=click.Choice(list(SCENARIOS)),
    help="Only items of this scenario; repeatable, like the other filters.",
)
@click.option("--source", multiple=True, help="Only items of pairs of this source.")
@click.option("--recipe", multiple=True, help="Only items generated with this recipe.")
@click.option("--judge", multiple=True, help="Only this judge.")
@click.option("--since", type=DAY, help="Only judgments from this day (UTC) on.")
@click.option("--until", type=DAY, help="Only judgments up to this day (UTC).")
@click.option(
    "--over-time",
    is_flag=True,
    help="Also report by windows of items over time.",
)
@click.option(
    "--by-judge",
    is_flag=True,
    help="Also report pace, gold and position bias.",
)
@reporting(_shown_agreement)
def agreement(
    study: int | None,
    judgments: Path | None,
    resamples: int,
    role: tuple[str, ...],
    source: tuple[str, ...],
    recipe: tuple[str, ...],
    judge: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    over_time: bool,
    by_judge: bool,
) -> Result:
    """Kappa of every pair of judges, human–human and human–model means, with intervals."""
    if (study is None) == (judgments is None):
        raise click.UsageError("give either --study ID or --judgments FILE")
    if since and until and since > until:
        raise click.UsageError(f"--since {since:%Y-%m-%d} is after --until {until:%Y-%m-%d}")
    chosen = JudgmentFilter(
        role, source, recipe, judge, since and since.date(), until and until.date()
    )
    if judgments is not None:
        if over_time or by_judge or chosen != JudgmentFilter():
            raise click.UsageError("filters, --over-time and --by-judge require --study ID")
        with bad_rows_in_json():
            decisions = read_judgments(judgments)
        report = agreement_report(decisions, resamples=resamples)
        return {"judgments_file": str(judgments), **report}
    store = ready_store()
    with store.read() as session:
        get_study(session, study)
        rows = judgment_frame(session, study)
        places = study_item_places(session, study)
        scope = asdict(study_scope(session, study))
        quality = judge_quality(session, study) if by_judge else []
        choices = study_choices(session, study) if by_judge else {}
    rows = chosen_rows(rows, places, chosen)
    report = agreement_report(decisions_of(rows), resamples=resamples)
    windows = {"over_time": agreement_over_time(rows)} if over_time else {}
    profiles = {"by_judge": judge_profiles(report, quality, choices)} if by_judge else {}
    return {"study_id": study, "scope": scope, **report, **windows, **profiles}


FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
PLACE = click.Path(path_type=Path, exists=True)
FIELD_SIGNS = {"instruction": "I", "query": "Q", "passage": "P", "text": "text"}


def corpora_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select texts: `--dataset`, `--corpus`, `--texts`, `--run`, …"""
    for option in (
        click.option(
            "--model",
            default=None,
            help="SentenceTransformer by name or path, or openai:MODEL for a model behind an "
            "OpenAI-compatible server (OPENAI_BASE_URL).",
        ),
        click.option(
            "--groups",
            type=click.Choice(["kept", "all", "both"]),
            default="kept",
            show_default=True,
            help="Kept groups, all groups, or both as two corpora (filtered and unfiltered).",
        ),
        click.option("--run", type=int, help="A run of the dataset (default: the latest)."),
        click.option("--texts", multiple=True, type=FILE, help="JSONL with a `text` column."),
        click.option(
            "--corpus",
            multiple=True,
            type=PLACE,
            help="A release's folder, or FollowIR, Promptriever, InstructIR, InF-IR, MAIR, BRIGHT "
            "as published: a file or a folder.",
        ),
        click.option(
            "--source",
            multiple=True,
            help="Only pairs of this source, a corpus each; repeatable.",
        ),
        click.option("--dataset", multiple=True, help="A dataset; repeatable."),
    ):
        function = option(function)
    return function


def _config(
    dataset: tuple[str, ...],
    source: tuple[str, ...],
    corpus: tuple[Path, ...],
    texts: tuple[Path, ...],
    run: int | None,
    groups: str,
    model: str | None,
) -> dict[str, Any]:
    if not dataset and not texts and not corpus:
        raise click.UsageError("give --dataset NAME, --corpus PATH or --texts FILE")
    if run is not None and len(dataset) != 1:
        raise click.UsageError("--run needs exactly one --dataset")
    if source and not dataset:
        raise click.UsageError("--source needs --dataset NAME")
    with bad_rows_in_json():
        for path in texts:
            read_texts(path)  # the job reads them again; here bad lines are reported at once
    return {
        "datasets": list(dataset),
        "sources": list(source),
        "published": [str(path.resolve()) for path in corpus],
        "texts": [str(path.resolve()) for path in texts],
        "run": run,
        "groups": groups,
        "model": model,
    }


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
                lines.append(_sampled_line(sampled))
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


def _sampled_line(sampled: dict[str, Any]) -> str:
    parts = []
    for metric, name in (("aps", "APS"), ("ingf_2", "INGF-2"), ("ingf_3", "INGF-3")):
        if sampled[metric] is None:
            parts.append(f"{name} undefined ({sampled['reason'][metric]})")
        else:
            spread = "" if sampled[metric]["sd"] is None else f" ± {sampled[metric]['sd']:.4g}"
            parts.append(f"{name} {sampled[metric]['mean']:.6g}{spread}")
    return f"     {sampled['repeats']} samples of {sampled['size']:,}: " + ", ".join(parts)


@analyze.command()
@corpora_options
@click.option(
    "--sample",
    type=click.IntRange(min=2),
    help="Texts per field in a sample (default: the size of the smallest corpus).",
)
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--seed", default=0, show_default=True, help="Seed of the samples.")
@detach_option
@reporting(_shown_diversity)
def diversity(detach: bool, sample: int | None, repeats: int, seed: int, **corpora: Any) -> Result:
    """APS, INGF, counts and mean lengths of instructions, queries and passages.

    Several corpora are also compared on samples of equal size, because INGF grows with size.
    """
    samples = {"sample": sample, "repeats": repeats, "seed": seed}
    config = {**_config(**corpora), **samples}
    return work(ready_store(), "embed", config, detach=detach, title="diversity")


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
        share = (
            f"{row['share']:.3f}" if row["share"] is not None else f"undefined ({row['reason']})"
        )
        lines.append(
            f"{row['field']}: share of {row['corpus']} covered by {row['by']}: {share} "
            f"({row['size']:,} texts of each)"
        )
    known = "was already stored" if result["known"] else "is stored"
    return "\n".join([*lines, f"the map {known} as analysis {result['analysis_id']}"])


@analyze.command()
@corpora_options
@click.option("--seed", default=0, show_default=True, help="Seed of the map.")
@click.option("--onto", type=int, help="Place the corpora on this stored map (an analysis).")
@click.option(
    "--fit",
    type=click.IntRange(min=10),
    help="Fit at most N texts and place the others.",
)
@detach_option
@reporting(_shown_coverage)
def coverage(detach: bool, seed: int, onto: int | None, fit: int | None, **corpora: Any) -> Result:
    """Compute a UMAP of instructions, queries and passages; the Coverage page shows it."""
    if onto is not None and fit is not None:
        raise click.UsageError("--fit cannot be combined with --onto, which fits nothing")
    config = {**_config(**corpora), "seed": seed, "onto": onto, "fit": fit}
    return work(ready_store(), "project", config, detach=detach, title="coverage")


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


@analyze.command("near-duplicates")
@corpora_options
@detach_option
@reporting(_shown_duplicates)
def near_duplicates(detach: bool, **corpora: Any) -> Result:
    """Find near-duplicate texts within and between corpora."""
    config = {**_config(**corpora), "what": "near_duplicates"}
    return work(ready_store(), "embed", config, detach=detach, title="near-duplicates")


def _shown_contamination(result: Result) -> str:
    sets = ", ".join(corpus["corpus"] for corpus in result["against"])
    if not result["overlapping"]:
        return f"no text overlaps with {sets}"
    lines = [
        f"{result['texts']:,} texts overlap with {sets} ({counts(result['how'])}); "
        f"{len(result['groups']):,} groups contain them"
    ]
    for pair in result["pairs"][:10]:
        there = pair["against"]
        lines.append(f"{pair['how']} ({pair['share']:.2f}) {pair['field']}: {_start(pair['text'])}")
        lines.append(f"    {there['corpus']} {there['field']}: {_start(there['text'])}")
    return "\n".join([*lines, f"all are stored as analysis {result['analysis_id']}"])


@analyze.command()
@corpora_options
@click.option(
    "--against",
    multiple=True,
    type=PLACE,
    help="An evaluation set as published, or any texts: a file or a folder; repeatable.",
)
@click.option("--against-dataset", multiple=True, help="A dataset used for evaluation; repeatable.")
@detach_option
@reporting(_shown_contamination)
def contamination(
    detach: bool, against: tuple[Path, ...], against_dataset: tuple[str, ...], **corpora: Any
) -> Result:
    """Find texts that a dataset or a release shares with evaluation sets.

    Exact matches, matches after normalization, near-duplicates (Jaccard 0.7), or shared runs of
    eight words.
    """
    if not against and not against_dataset:
        raise click.UsageError("give --against PATH or --against-dataset NAME")
    config = {
        **_config(**corpora),
        "what": "contamination",
        "against": [str(path.resolve()) for path in against],
        "against_datasets": list(against_dataset),
    }
    return work(ready_store(), "embed", config, detach=detach, title="contamination")


def _shown_validators(result: Result) -> str:
    lines = [f"run {result['run_id']} kept {result['kept']:,} of {result['groups']:,} groups"]
    for row in result["validators"]:
        passed = "–" if row["items_passed"] is None else f"{row['items_passed']:.3f}"
        cost = row["usd_per_1000_items"]
        estimated = " (estimated)" * (row["price_from"] == "estimate")
        price = (
            f"cost unknown: {row['price_reason']}"
            if cost is None
            else f"{cost:.4f} USD per 1,000 items{estimated}"
        )
        kappa = score(row["human_kappa"]["kappa"]) if "human_kappa" in row else "not requested"
        lines.append(
            f"{row['judge']}: passes {passed} of {row['items']:,} items, {price}, "
            f"kappa with people {kappa}"
        )
        lines.append(_beside_line(row))
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
    store = ready_store()
    with store.read() as session:
        run_id = choose_run(session, get_dataset(session, dataset).id, run).id
        answers = [Answer(*row) for row in run_answers(session, run_id)]
        kept, models = run_verdicts(session, run_id), judge_models(session)
        costs = judging_cost(session, ("validation",))
        known = {model for model, _ in models.values()} | set(load_prices())
        estimates = judging_prices(session, run_id, known)
        rows = [] if study is None else judgment_frame(session, study)
    people = agreement_report(decisions_of(rows))["human_model"]
    report = choosing_report(answers, kept, models, costs, people, judge, estimates)
    return {"run_id": run_id, "study_id": study, **report}
