"""`inf evaluations`: score models, list, show and compare stored scores, freeze a benchmark."""

import json
from pathlib import Path
from typing import Any

import click

from app.cli.kit.formerly import OneByDefault, formerly, with_former_keys
from app.cli.kit.listing import listing
from app.cli.kit.options import request_options
from app.cli.kit.report import (
    Launching,
    Result,
    command_actor,
    facts,
    launched,
    lines,
    reporting,
)
from app.cli.kit.table import table
from app.operations import evaluations as operations
from app.operations.evaluations import EvaluationRow, EvaluationShown
from app.text.numbers import counted, score
from db.outcome.evaluations import Scored
from db.rows import Listed
from db.values import DATASET_BENCHMARK as DATASET
from trainer.evaluate.following import CONTROLS, ON_GROUPS, STABILITY
from trainer.evaluate.intervals import ranked_over
from trainer.evaluate.measures.compliance import COMPLIANCE
from trainer.evaluate.measures.rankings import average, measure, without_relevant
from trainer.evaluate.request import EvaluationStart
from trainer.records.content import benchmark_content
from trainer.records.pinning import write_pin
from trainer.records.record import content_together
from trainer.report.compared.differences import METHOD
from trainer.report.compared.ordinary import NOT_MEASURED
from trainer.suites.registry import DOWNLOAD_NAMES, LAYOUTS, read_benchmarks
from trainer.trec.files import read_qrels, read_run

MAX_NAMED = 10
SHOWN = ("ndcg@5", "ndcg@10", "map", "mrr", "recall@10", "judged@10", "p-mrr")
FORMER_DIFFERENCES = {
    "Model": "name",
    "Metric": "measure",
    "Difference": "difference",
    "from": "low",
    "to": "high",
    "p (Holm)": "p_holm",
    "Verdict": "verdict",
    "Queries": "queries",
    "Gained": "gained",
    "Lost": "lost",
    "Clusters": "clusters",
    "Interval by": "method",
}


@click.group()
def evaluations() -> None:
    """Score models, list, show and compare stored scores, freeze a benchmark."""


def _made(result: Result) -> str:
    """A summary, or with --details every interval and control."""
    text = scored_text(result, with_details=click.get_current_context().params["details"])
    ids = [str(model["evaluation_id"]) for model in result["models"] if "evaluation_id" in model]
    if len(ids) > 1:
        return f"{text}\nnext: inf evaluations compare {' '.join(ids)}"
    return f"{text}\nnext: inf evaluations {f'show {ids[0]}' if ids else 'list'}"


def scored_text(result: Result, *, with_details: bool) -> str:
    """The scores of the models, their differences and notes; with details every interval."""
    split, models = result["held_out"], result["models"]
    about = f"{result['benchmark']} ({result['kind']}): {result['queries']} queries, "
    about += f"{result['documents']} documents"
    about += f", content {result['sha256'][:12]}" if result.get("sha256") else ""
    if left_out := result.get("queries_left_out", 0):
        named = ", ".join(result["without_relevant"][:MAX_NAMED])
        more = ", …" if left_out > MAX_NAMED else ""
        about += f", {left_out} queries without a relevant document, in no mean ({named}{more})"
    if split:
        about += f", {split['groups']} groups (held_out={split['fraction']} seed={split['seed']})"
    has = {name for model in models for name in model["metrics"]}
    also = ("robustness@10", "followir score", *COMPLIANCE, STABILITY)
    shown = [name for name in (*ON_GROUPS, *SHOWN, *also) if name in {*SHOWN, *has}]
    rows = [
        [str(model["model"])[-60:], *(score(model["metrics"].get(name)) for name in shown)]
        for model in models
    ]
    said = [about, table(("model", *shown), rows, empty="no models")]
    said += [
        f"{compared['second'][-40:]} against {compared['first'][-40:]}, {name}: "
        + _difference(found)
        for compared in result["comparisons"]
        for name, found in compared["measures"].items()
        if found and name in (*ON_GROUPS, *COMPLIANCE, STABILITY, "ndcg@10", "p-mrr")
    ]
    said += [
        f"{compared['second'][-40:]} is not compared with {compared['first'][-40:]}: "
        + ", ".join(compared["refused"])
        for compared in result["comparisons"]
        if compared.get("refused")
    ]
    details = _details(result)
    if with_details:
        said += details
    elif details:
        said.append(f"{counted(len(details), 'line')} of intervals and controls: --details")
    said += [f"note: {note}" for note in result["notes"]]
    has_instructions = any(model["record"]["instructions"] for model in models)
    if "ordinary" in result and not result["ordinary"] and has_instructions:
        said.append(f"note: {NOT_MEASURED}")
    for part in result.get("parts", []):
        said.append(f"\n{scored_text(part, with_details=with_details)}")
    for part in result.get("ordinary", []):
        said.append(f"\nordinary retrieval: {scored_text(part, with_details=with_details)}")
    return "\n".join(said)


def _details(result: Result) -> list[str]:
    """The interval of every mean, what the controls score, and which BM25 it is."""
    said = [
        f"{model['model'][-40:]}, {name}: {_mean(of)}, "
        f"ranked over {ranked_over(name, model['metrics'], model['record'])}"
        for model in result["models"]
        for name, of in model["intervals"].items()
    ]
    said += [
        f"{model['model'][-40:]}, {name}: {score(value)}"
        for model in result["models"]
        for name, value in model["metrics"].items()
        if name.partition(":")[0] in CONTROLS
    ]
    said += [f"bm25, {name}: {score(value)}" for name, value in result.get("bm25", {}).items()]
    conventions = {model["record"]["bm25"] for model in result["models"]} - {None}
    conventions |= {result["bm25_convention"]} if result.get("bm25") else set()
    return [*said, *(f"bm25 is {convention}" for convention in sorted(conventions))]


def _mean(found: Result) -> str:
    """A mean with its interval, or why it has none."""
    of = f"{found['queries']} values, {found['clusters']} clusters"
    if found["low"] is None:
        return f"{found['value']:.4f} ({of}; no interval: {found['reason']})"
    low, high = found["low"], found["high"]
    return f"{found['value']:.4f} [{low:.4f}, {high:.4f}] ({of}; {found['method']})"


def _difference(found: Result) -> str:
    """A difference with its interval and p where it has them, and the verdict."""
    if found["low"] is None:
        return f"{found['difference']:+.4f}, {found['verdict']}"
    return (
        f"{found['difference']:+.4f} [{found['low']:+.4f}, {found['high']:+.4f}], "
        f"p {found['p_holm']:.3f}, {found['verdict']} "
        f"(Holm; {found['method']} over {found['clusters']} clusters)"
    )


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
    if request.trec and Path(request.trec).exists():
        raise click.UsageError(f"{request.trec} exists: choose another folder")
    for file in (request.qrels, request.paraphrases):
        if file and not Path(file).is_file():
            raise click.UsageError(f"no file {file}")
    actor = command_actor()
    result = operations.create(actor, _from_anywhere(request), launch("evaluate"))
    if per_query:
        parts = result.get("parts", [result])
        ids = [model["evaluation_id"] for part in parts for model in part["models"]]
        with per_query.open("x", encoding="utf-8") as out:
            for row in (row for each in ids for row in operations.values(actor, each)):
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
    if "models" in result:
        made = {
            model["evaluation_id"]
            for part in (result, *result.get("ordinary", []))
            for model in part["models"]
            if "evaluation_id" in model
        }
        scored: list[Scored] = [
            each for each in operations.scores(actor) if each.evaluation_id in made
        ]
        # the job notes those validators that the release itself names
        known = {note.partition(":")[0] for note in result["notes"]}
        new = [
            sentence
            for sentence in operations.circular(actor, scored)
            if sentence.partition(":")[0] not in known
        ]
        result["notes"] = [*result["notes"], *new]
    return result


def _from_anywhere(request: EvaluationStart) -> EvaluationStart:
    """The request with folders and files as absolute paths: the job may run elsewhere."""
    found: dict[str, Any] = {"models": tuple(_absolute(model) for model in request.models)}
    for name in ("release", "benchmark", "ordinary"):
        if given := getattr(request, name):
            found[name] = _absolute(given)
    for name in ("trec", "qrels", "paraphrases"):
        if given := getattr(request, name):
            found[name] = str(Path(given).resolve())
    return request.model_copy(update=found)


def _absolute(name: str) -> str:
    """A folder as an absolute path; names and numbers unchanged."""
    kind, colon, rest = name.partition(":")
    if colon and f"{kind}:" != DATASET and Path(rest).exists():  # cross-encoder:FOLDER, trec:FILE
        return f"{kind}:{Path(rest).resolve()}"
    is_folder = name.startswith((".", "/", "~")) or Path(name).is_dir()
    return str(Path(name).expanduser().resolve()) if is_folder else name


@evaluations.command("list")
@click.option("--benchmark", help="Only those of this benchmark, by its stored name.")
@listing(
    *("id", "name", "benchmark", ("nDCG@10", lambda row: score(row["metrics"].get("ndcg@10")))),
    ("created", lambda row: row["created_at"][:16]),
    ("", lambda row: "" if row["has_record"] else "no record: not comparable"),
    empty="no evaluations: inf evaluations create --model MODEL",
    then="inf evaluations compare ID ID",
    former=("evaluations", {"evaluation_id": "id"}),
)
def list_(benchmark: str | None, **page: Any) -> Listed[EvaluationRow]:
    """List stored evaluations, newest first, with the ids that `compare` takes."""
    return operations.list_some(command_actor(), benchmark, **page)


def _shown(result: Result) -> str:
    facts = [(name, result[name]) for name in ("id", "model", "benchmark", "queries", "created_at")]
    measured = [(name, score(value)) for name, value in result["metrics"].items()]
    return f"{lines(*facts, *measured)}\nnext: inf evaluations compare {result['id']} OTHER"


@evaluations.command()
@click.argument("evaluation_id", type=int)
@reporting(_shown)
def show(evaluation_id: int) -> EvaluationShown:
    """Show one evaluation; --json includes the record of its data and settings."""
    return operations.show(command_actor(), evaluation_id)


def _compared(result: Result) -> str:
    head = ("model", "measure", "difference", "from", "to", "p (Holm)", "verdict", "queries")
    rows = [
        [
            row["name"],
            row["measure"],
            *(
                None if row[key] is None else f"{row[key]:+.4f}"
                for key in ("difference", "low", "high")
            ),
            None if row["p_holm"] is None else f"{row['p_holm']:.4f}",
            row["verdict"],
            f"{row['queries']:,} in {row['clusters']:,} clusters",
        ]
        for row in result["data"]
    ]
    notes = [f"note: {note}" for note in result["notes"]]
    against = f"against {result['base']} on {result['benchmark']}"
    drawn = table(head, rows, empty="nothing in common", max_columns=90)
    return "\n".join([against, drawn, *notes, METHOD])


@evaluations.command()
@click.argument("base", type=int, metavar="BASE")
@click.argument("others", type=int, nargs=-1, required=True, metavar="OTHER…")
@reporting(_compared)
def compare(base: int, others: tuple[int, ...]) -> Result:
    """Differences of evaluations to the evaluation BASE, by their ids.

    Refused, with what differs in words, where their records differ: another corpus, queries,
    judgments, candidate pool, depth, template or prefixes, or no record at all.
    """
    if set(others) == {base}:
        raise click.UsageError("give at least two different evaluations")
    found = operations.compare(command_actor(), base, others).as_json()
    return with_former_keys(found, "differences", FORMER_DIFFERENCES)


@evaluations.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--write", is_flag=True, help="Write it to FOLDER/benchmark.sha256, which is checked."
)
@reporting(
    facts(
        *("sha256", ("benchmarks", lambda found: ", ".join(found["benchmarks"])), "documents"),
        ("queries", "questions"),
        ("pinned in", lambda found: found["file"] or "no file: --write makes one"),
    )
)
def pin(folder: Path, write: bool) -> Result:
    """Print the sha256 of a benchmark folder's content, for `inf evaluations create --pin SHA256`.

    Of queries, instructions, corpus, judgments and candidates as they are read; names of files and
    the order of lines do not count. With --write every later evaluation of the folder checks it.
    """
    folder = folder.resolve()
    benchmarks = read_benchmarks(folder)
    contents = [benchmark_content(benchmark) for benchmark in benchmarks]
    found = content_together(contents)
    return {
        "sha256": found["sha256"],
        "benchmarks": [benchmark.name for benchmark in benchmarks],
        "documents": found["documents"],
        "questions": found["questions"],
        "file": str(write_pin(folder, contents)) if write else None,
    }


def _measured(result: Result) -> str:
    scores = [f"{name:<12}{score(value)}" for name, value in result["metrics"].items()]
    left_out = len(result["without_relevant"])
    notes = [f"{result['queries']} queries in the means"]
    notes += [f"{left_out} judged queries without a relevant document, in no mean"] * bool(left_out)
    notes += [f"{len(result['missing'])} judged queries are not in the run and score 0"] * bool(
        result["missing"]
    )
    return "\n".join([*scores, *notes])


@evaluations.command()
@click.option("--run", "run_file", type=click.Path(path_type=Path), required=True)
@click.option("--qrels", "qrels_file", type=click.Path(path_type=Path), required=True)
@reporting(_measured)
def trec(run_file: Path, qrels_file: Path) -> Result:
    """Measure a TREC run file by a qrels file, without a benchmark or the store.

    The values are trec_eval's with -c: a judged query that the run lacks scores 0. Queries without
    any relevant document are in no mean.
    """
    run, judgments = read_run(run_file).scores, read_qrels(qrels_file)
    per_query = measure(run, judgments)
    return {
        "metrics": average(per_query),
        "per_query": per_query,
        "queries": len(per_query),
        "without_relevant": without_relevant(judgments),
        "missing": sorted(per_query.keys() - run.keys()),
    }


class CreateByDefault(OneByDefault):
    """`inf evaluate --model …` is `inf evaluate run --model …`."""

    default = "run"


@click.group(cls=CreateByDefault)
def evaluate() -> None:
    """As `inf evaluations`, its former name. Without a subcommand, `run` is used."""


evaluate.add_command(formerly(create, "evaluate run", "evaluations create"))
for each in (list_, compare, pin, trec):
    evaluate.add_command(formerly(each, f"evaluate {each.name}", f"evaluations {each.name}"))
