"""`inf evaluations`: score models, list, show and compare stored scores, freeze a benchmark."""

from pathlib import Path

import click

from app.access.identity import owner
from app.cli.kit.doors import Noun
from app.cli.kit.formerly import formerly
from app.cli.kit.options import request_options
from app.cli.kit.report import Launching, Result, command_actor, launched, lines, me, reporting
from app.cli.kit.table import sheet
from app.operations import evaluations as operations
from app.text.numbers import counted, score
from app.text.remedies import in_commands
from db.rows import as_text
from trainer.evaluate.following import CONTROLS, ON_GROUPS, STABILITY
from trainer.evaluate.intervals import ranked_over
from trainer.evaluate.measures.compliance import COMPLIANCE
from trainer.evaluate.request import EvaluationStart
from trainer.records.rows import BenchmarkScored, Evaluated
from trainer.report.compared.differences import LABELS, METHOD
from trainer.report.compared.ordinary import NOT_MEASURED
from trainer.suites.registry import DOWNLOAD_NAMES, LAYOUTS

MAX_NAMED = 10
SHOWN = ("ndcg@5", "ndcg@10", "map", "mrr", "recall@10", "judged@10", "p-mrr")
DIFFERENCE = {"difference": "difference", "from": "low", "to": "high", "p (Holm)": "p_holm"}
DIFFERENCE |= {"verdict": "verdict", "interval by": "method", "clusters": "clusters"}
MEAN = {"mean": "value", "from": "low", "to": "high", "values": "queries", "clusters": "clusters"}
MEAN |= {"interval by": "method", "no interval": "reason"}
FORMER_DIFFERENCES = {label.removeprefix("95 % "): key for key, label in LABELS.items()}


evaluations = Noun("evaluations")


def _made(result: Evaluated) -> str:
    """A summary, or with --details every interval and control."""
    text = scored_text(result, with_details=click.get_current_context().params["details"])
    ids = [str(model.evaluation_id) for model in result.models]
    if len(ids) > 1:
        return f"{text}\nnext: inf evaluations compare {' '.join(ids)}"
    return f"{text}\nnext: inf evaluations {f'show {ids[0]}' if ids else 'list'}"


def scored_text(result: BenchmarkScored, *, with_details: bool) -> str:
    """The scores of the models, their differences and notes; with details every interval."""
    split, models = result.held_out, result.models
    about = f"{result.benchmark} ({result.kind}): {result.queries} queries, "
    about += f"{result.documents} documents"
    about += f", content {result.sha256[:12]}" if result.sha256 else ""
    if left_out := result.queries_left_out:
        named = ", ".join(result.without_relevant[:MAX_NAMED])
        more = ", …" if left_out > MAX_NAMED else ""
        about += f", {left_out} queries without a relevant document, in no mean ({named}{more})"
    if split:
        about += f", {split.groups} groups (held_out={split.fraction} seed={split.seed})"
    also = ("robustness@10", "followir score", *COMPLIANCE, STABILITY)
    rows = [
        {"model": model.model[-60:]}
        | {name: model.metrics.get(name) for name in (*ON_GROUPS, *SHOWN, *also)}
        for model in models
    ]
    differences = [
        {
            "model": compared.second[-40:],
            "against": compared.first[-40:],
            "measure": name,
            **{label: getattr(found, key) for label, key in DIFFERENCE.items()},
        }
        for compared in result.comparisons
        for name, found in compared.measures.items()
        if found and name in (*ON_GROUPS, *COMPLIANCE, STABILITY, "ndcg@10", "p-mrr")
    ]
    said = [about, sheet(rows, empty="no models"), *([sheet(differences)] if differences else [])]
    said += [
        f"{compared.second[-40:]} is not compared with {compared.first[-40:]}: "
        + ", ".join(compared.refused)
        for compared in result.comparisons
        if compared.refused
    ]
    details, conventions = _details(result)
    if with_details:
        said += [*([sheet(details)] if details else []), *conventions]
    elif details:
        said.append(f"{counted(len(details), 'line')} of intervals and controls: --details")
    said += [f"note: {note}" for note in result.notes]
    has_instructions = any(model.record.instructions for model in models)
    parts, ordinary = (result.parts, result.ordinary) if isinstance(result, Evaluated) else ((), ())
    if isinstance(result, Evaluated) and not ordinary and has_instructions:
        said.append(f"note: {in_commands(NOT_MEASURED)}")
    for part in parts:
        said.append(f"\n{scored_text(part, with_details=with_details)}")
    for part in ordinary:
        said.append(f"\nordinary retrieval: {scored_text(part, with_details=with_details)}")
    return "\n".join(said)


def _details(result: BenchmarkScored) -> tuple[list[Result], list[str]]:
    """The interval of every mean, what the controls score, and which BM25 it is."""
    rows = [
        {
            "model": model.model[-40:],
            "measure": name,
            **{label: getattr(of, key) for label, key in MEAN.items()},
            "ranked over": ranked_over(name, model.metrics, model.record.as_json()),
        }
        for model in result.models
        for name, of in model.intervals.items()
    ]
    controls = [
        (model.model[-40:], name, value)
        for model in result.models
        for name, value in model.metrics.items()
        if name.partition(":")[0] in CONTROLS
    ]
    controls += [("bm25", name, value) for name, value in (result.bm25 or {}).items()]
    rows += [dict(zip(("model", "measure", "mean"), each, strict=True)) for each in controls]
    conventions = {model.record.bm25 for model in result.models if model.record.bm25}
    conventions |= {result.bm25_convention} if result.bm25 else set()
    return rows, [f"bm25 is {convention}" for convention in sorted(conventions)]


@evaluations.command(
    epilog=f"Benchmark folders: {LAYOUTS}. Downloaded from the Hub: {DOWNLOAD_NAMES}, and "
    "owner/name."
)
@request_options(EvaluationStart)
@click.option(
    "--per-query",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the values of every query to this file (JSON lines).",
)
@click.option("--details", is_flag=True, help="Print the intervals of all means, and controls.")
@launched
@reporting(_made)
def create(
    request: EvaluationStart, per_query: Path | None, details: bool, launch: Launching
) -> Result:
    """Score models side by side: nDCG, MAP, MRR, recall and p-MRR.

    Differences from the first model come with a 95 % interval, over clusters of queries that belong
    together. A single checkpoint is compared with its base model. Held-out groups are those of the
    checkpoint's training. Of a suite, or a folder of benchmark folders, every set is scored, and
    the mean over the sets.
    """
    if per_query and launch.is_detached:
        raise click.UsageError("--per-query cannot be combined with --detach")
    if per_query and per_query.exists():
        raise click.UsageError(f"{per_query} exists: choose another file")
    actor = command_actor()
    result = operations.create(actor, request, launch("evaluate"))
    if per_query:
        parts = result.get("parts", [result])
        ids = [model["evaluation_id"] for part in parts for model in part["models"]]
        with per_query.open("x", encoding="utf-8") as out:
            for row in (row for each in ids for row in operations.values(actor, each)):
                out.write(as_text(row.as_json()) + "\n")
    return result


evaluations.listed(
    operations.list_some,
    click.option("--benchmark", help="Only those of this benchmark, by its stored name."),
    about="List stored evaluations, newest first, with the ids that `compare` takes.",
    columns=(
        *("id", "name", "benchmark"),
        ("nDCG@10", lambda row: score(row["metrics"].get("ndcg@10"))),
        ("created", lambda row: row["created_at"][:16]),
        ("note", lambda row: "" if row["has_record"] else "no record: not comparable"),
    ),
    empty="no evaluations yet",
    former=("evaluations", {"evaluation_id": "id"}),
)


def _shown(result: Result) -> str:
    facts = [(name, result[name]) for name in ("id", "model", "benchmark", "queries", "created_at")]
    metrics = result["metrics"]
    first = [name for name in (*ON_GROUPS, *SHOWN) if name in metrics] or list(metrics)[:MAX_NAMED]
    measured = [(name, score(metrics[name])) for name in first]
    rest = len(metrics) - len(first)
    more = f"\n{counted(rest, 'more measure')}: --json" if rest else ""
    return f"{lines(*facts, *measured)}{more}\nnext: inf evaluations compare {result['id']} OTHER"


evaluations.door(
    operations.show,
    text=_shown,
    about="Show one evaluation; --json includes the record of its data and settings.",
)


def _compared(result: Result) -> str:
    labels = {"model": "name", "measure": "measure", **DIFFERENCE, "queries": "queries"}
    rows = [{label: row[key] for label, key in labels.items()} for row in result["data"]]
    listed = sheet(rows, empty="nothing in common")
    notes = [f"note: {note}" for note in result["notes"]]
    against = f"against {result['base']} on {result['benchmark']}"
    return "\n".join([against, listed, *notes, METHOD])


evaluations.listed(
    operations.compare,
    click.argument("others", type=int, nargs=-1, required=True, metavar="OTHER…"),
    name="compare",
    text=_compared,
    about="Differences of evaluations to the evaluation BASE, by their ids.\n\nRefused, with what "
    "differs in words, where their records differ: another corpus, queries, judgments, candidate "
    "pool, depth, template or prefixes, or no record at all.",
    former=("differences", FORMER_DIFFERENCES),
)


evaluations.door(
    operations.pin,
    click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path)),
    click.option(
        "--write", is_flag=True, help="Write it to FOLDER/benchmark.sha256, which is checked."
    ),
    actor=lambda _: owner(me()),  # of files: without a store
    text=(
        *("sha256", ("benchmarks", lambda found: ", ".join(found["benchmarks"])), "documents"),
        ("queries", "questions"),
        ("pinned in", lambda found: found["file"] or "no file: --write makes one"),
    ),
    about="Print the sha256 of a benchmark folder's content, for `inf evaluations create --pin "
    "SHA256`.\n\nOf queries, instructions, corpus, judgments and candidates as they are read; "
    "names of files and the order of lines do not count. With --write every later evaluation of "
    "the folder checks it.",
)


def _measured(result: Result) -> str:
    scores = sheet([{"measure": k, "mean": score(v)} for k, v in result["metrics"].items()])
    left_out = len(result["without_relevant"])
    notes = [f"{result['queries']} queries in the means"]
    notes += [f"{left_out} judged queries without a relevant document, in no mean"] * bool(left_out)
    notes += [f"{len(result['missing'])} judged queries are not in the run and score 0"] * bool(
        result["missing"]
    )
    return "\n".join([scores, *notes])


evaluations.listed(
    operations.measure_files,
    click.option("--run", "run_file", type=click.Path(path_type=Path), required=True),
    click.option("--qrels", "qrels_file", type=click.Path(path_type=Path), required=True),
    actor=lambda _: owner(me()),  # of files: without a store
    name="trec",
    text=_measured,
    former=lambda found: {"per_query": {row["query_id"]: row["metrics"] for row in found["data"]}},
)


evaluate = Noun("evaluate", formerly(create, "evaluate run", "evaluations create"), default="run")
for _name in ("list", "compare", "pin", "trec"):
    _now = evaluations.commands[_name]
    evaluate.add_command(formerly(_now, f"evaluate {_name}", f"evaluations {_name}"))
