"""`inf evaluate`: score models on held-out groups or on a benchmark; the other commands."""

import json
from pathlib import Path
from typing import Any

import click

from analysis.text.bm25 import LANGUAGES, NO_LANGUAGE
from app.cli.evaluate import compare as evaluate_compare
from app.cli.evaluate import frozen as evaluate_frozen
from app.cli.kit.one_by_default import OneByDefault
from app.cli.kit.report import Result, detach_option, ready_store, reporting, work
from app.models.compared.ordinary import NOT_MEASURED
from app.models.independence import circular_sentences
from app.text.numbers import score
from app.text.remedies import in_commands
from db.errors import BadInput
from db.outcome.evaluations import get_evaluation, newest_scores, rows_by_query
from db.store.store import Store
from db.values import DATASET_BENCHMARK as DATASET
from trainer.data.splitting import HELD_OUT_CHOICES
from trainer.evaluate.following import CONTROLS, ON_GROUPS, STABILITY
from trainer.evaluate.intervals import ranked_over
from trainer.evaluate.measures.compliance import COMPLIANCE
from trainer.settings.template import Template
from trainer.suites.registry import DOWNLOAD_NAMES, LABELS, LAYOUTS, SUBSET_HELP, SUBSETS

MAX_NAMED = 10
SHOWN = ("ndcg@5", "ndcg@10", "map", "mrr", "recall@10", "judged@10", "p-mrr")


def asks_instructions(result: Result) -> bool:
    """Whether the scores are of queries with instructions."""
    return any(model["record"]["instructions"] for model in result["models"])


def report(result: Result) -> str:
    split = result["held_out"]
    about = f"{result['benchmark']} ({result['kind']}): {result['queries']} queries, "
    about += f"{result['documents']} documents"
    about += f", content {result['sha256'][:12]}" if result.get("sha256") else ""
    if left_out := result.get("queries_left_out", 0):
        named = ", ".join(result["without_relevant"][:MAX_NAMED])
        more = ", …" if left_out > MAX_NAMED else ""
        about += f", {left_out} queries without a relevant document, in no mean ({named}{more})"
    if split:
        about += f", {split['groups']} groups (held_out={split['fraction']} seed={split['seed']})"
    also = [
        name
        for name in ("robustness@10", "followir score", *COMPLIANCE, STABILITY)
        if any(name in model["metrics"] for model in result["models"])
    ]
    first = [name for name in ON_GROUPS if any(name in m["metrics"] for m in result["models"])]
    shown = (*first, *SHOWN, *also)
    names = [str(model["model"]) for model in result["models"]]
    width = max(len("model"), *(min(len(name), 60) for name in names))
    table = [f"{'model':<{width}}  " + "  ".join(f"{name:>{max(9, len(name))}}" for name in shown)]
    for name, model in zip(names, result["models"], strict=True):
        cells = "  ".join(
            f"{score(model['metrics'].get(name)):>{max(9, len(name))}}" for name in shown
        )
        table.append(f"{name[-60:]:<{width}}  {cells}")
    intervals = [
        f"{model['model'][-40:]}, {name}: {_mean(of)}, "
        f"ranked over {ranked_over(name, model['metrics'], model['record'])}"
        for model in result["models"]
        for name, of in model["intervals"].items()
    ]
    differences = [
        f"{compared['second'][-40:]} against {compared['first'][-40:]}, {name}: "
        + _difference(found)
        for compared in result["comparisons"]
        for name, found in compared["measures"].items()
        if found and name in (*ON_GROUPS, *COMPLIANCE, STABILITY, "ndcg@10", "p-mrr")
    ]
    differences += [
        f"{compared['second'][-40:]} is not compared with {compared['first'][-40:]}: "
        + ", ".join(compared["refused"])
        for compared in result["comparisons"]
        if compared.get("refused")
    ]
    controls = [
        f"{model['model'][-40:]}, {name}: {score(value)}"
        for model in result["models"]
        for name, value in model["metrics"].items()
        if name.partition(":")[0] in CONTROLS
    ]
    controls += [f"bm25, {name}: {score(value)}" for name, value in result.get("bm25", {}).items()]
    conventions = {model["record"]["bm25"] for model in result["models"]} - {None}
    conventions |= {result["bm25_convention"]} if result.get("bm25") else set()
    controls += [f"bm25 is {convention}" for convention in sorted(conventions)]
    parts = [f"\n{report(part)}" for part in result.get("parts", [])]
    parts += [f"\nordinary retrieval: {report(part)}" for part in result.get("ordinary", [])]
    notes = [f"note: {note}" for note in result["notes"]]
    if "ordinary" in result and not result["ordinary"] and asks_instructions(result):
        notes.append(f"note: {NOT_MEASURED}")
    return "\n".join([about, *table, *intervals, *differences, *controls, *notes, *parts])


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


class RunByDefault(OneByDefault):
    """`inf evaluate --model …` is `inf evaluate run --model …`."""

    default = "run"


@click.group(cls=RunByDefault)
def evaluate() -> None:
    """Score models, and compare stored scores. Without a subcommand, `run` is used."""


for command_of_evaluations in (
    evaluate_compare.list_stored,
    evaluate_compare.compare,
    evaluate_frozen.pin,
    evaluate_frozen.trec,
):
    evaluate.add_command(command_of_evaluations)


@evaluate.command(
    epilog=f"Benchmark folders: {LAYOUTS}. Downloaded from the Hub: {DOWNLOAD_NAMES}, and "
    "owner/name."
)
@click.option(
    "--model",
    "models",
    multiple=True,
    required=True,
    help="A folder, a name, bm25, a name after cross-encoder:, monot5:, flan-t5:, openai:, or "
    "trec:FILE (a TREC run).",
)
@click.option("--release", help="Score on the held-out groups of this release (folder or number).")
@click.option(
    "--benchmark",
    help=f"A folder ({LABELS}, or several), dataset:NAME, or a name on the Hub.",
)
@click.option(
    "--subset",
    type=click.Choice(list(SUBSETS)),
    help=f"A subset of a benchmark's tasks. {SUBSET_HELP}.",
)
@click.option(
    "--per-query",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the values of every query to this file (JSON lines).",
)
@click.option(
    "--trec",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write TREC run and qrels files to this new folder, one per benchmark and model.",
)
@click.option(
    "--qrels",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A TREC qrels file: score by its judgments instead of the benchmark's.",
)
@click.option(
    "--ordinary",
    metavar="BENCHMARK",
    help="Also score on this benchmark without instructions (a BEIR folder, dataset:NAME for a "
    "dataset's queries and passages, or a name on the Hub): whether ordinary retrieval suffered.",
)
@click.option(
    "--paraphrases",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Paraphrased instructions of held-out groups, JSON lines {instruction, paraphrase}: "
    "measure paraphrase stability.",
)
@click.option(
    "--pin",
    metavar="SHA256",
    help="Refuse to evaluate unless the benchmark's content has this sha256 (see `evaluate pin`).",
)
@click.option("--held-out", type=click.FloatRange(0, 1, min_open=True, max_open=True))
@click.option("--held-out-seed", type=int)
@click.option(
    "--held-out-groups",
    type=click.Choice(HELD_OUT_CHOICES),
    help="Groups that validation kept, all, or those that people approved; else as in training.",
)
@click.option(
    "--bm25-language",
    type=click.Choice([*LANGUAGES, NO_LANGUAGE]),
    help="Stemmer and stop words of BM25, none: neither; else the benchmark's language, as far as "
    "it is known, or English.",
)
@click.option("--template", help="For models without a stored one.")
@click.option("--query-prefix", default="", help="For models without a stored one.")
@click.option("--passage-prefix", default="", help="For models without a stored one.")
@click.option("--remote-code", is_flag=True, help="Allow running code that comes with a model.")
@click.option("--alone", is_flag=True, help="Do not also score the base model of a checkpoint.")
@detach_option
@reporting(report)
def run(
    models: tuple[str, ...],
    release: str | None,
    benchmark: str | None,
    subset: str | None,
    per_query: Path | None,
    trec: Path | None,
    qrels: Path | None,
    ordinary: str | None,
    paraphrases: Path | None,
    pin: str | None,
    held_out: float | None,
    held_out_seed: int | None,
    held_out_groups: str | None,
    bm25_language: str | None,
    template: str | None,
    query_prefix: str,
    passage_prefix: str,
    remote_code: bool,
    alone: bool,
    detach: bool,
) -> Result:
    """Score models side by side: nDCG, MAP, MRR, recall and p-MRR.

    Differences from the first model come with a 95 % interval, over clusters of queries that belong
    together. A single checkpoint is compared with its base model. Held-out groups are those of the
    checkpoint's training. Of a suite, or a folder of benchmark folders, every set is scored, and
    the mean over the sets.
    """
    if (release is None) == (benchmark is None):
        raise click.UsageError("give either --release or --benchmark")
    if subset and not benchmark:
        raise click.UsageError("--subset requires --benchmark")
    if per_query and detach:
        raise click.UsageError("--per-query cannot be combined with --detach")
    if per_query and per_query.exists():
        raise click.UsageError(f"{per_query} exists: choose another file")
    if trec and trec.exists():
        raise click.UsageError(f"{trec} exists: choose another folder")
    if template is not None:
        try:
            Template(template)
        except BadInput as error:
            raise click.UsageError(in_commands(str(error))) from error
    config: dict[str, Any] = {
        "models": [_absolute(model) for model in models],
        "release": release and _absolute(release),
        "benchmark": benchmark and _absolute(benchmark),
        "subset": subset,
        "template": template,
        "query_prefix": query_prefix,
        "passage_prefix": passage_prefix,
        "with_base": not alone,
        "remote_code": remote_code,
    }
    config |= {"trec": str(trec.resolve())} if trec else {}
    config |= {"qrels": str(qrels.resolve())} if qrels else {}
    config |= {"ordinary": _absolute(ordinary)} if ordinary else {}
    config |= {"paraphrases": str(paraphrases.resolve())} if paraphrases else {}
    config |= {"pin": pin} if pin else {}
    config |= {"held_out": held_out} if held_out else {}
    config |= {"held_out_seed": held_out_seed} if held_out_seed is not None else {}
    config |= {"held_out_groups": held_out_groups} if held_out_groups else {}
    config |= {"bm25_language": bm25_language} if bm25_language else {}
    store = ready_store()
    result = work(store, "evaluate", config, detach=detach, title="evaluate")
    if per_query:
        _write_queries(store, result, per_query)
    return _with_circular(store, result)


def _with_circular(store: Store, result: Result) -> Result:
    """The result with a note where a model chose the groups that it was scored on."""
    if "benchmark" not in result or "notes" not in result:
        return result
    names = {str(model["model"]) for model in result["models"]}
    benchmarks = {part["benchmark"] for part in (result, *result.get("ordinary", []))}
    with store.read() as session:
        scores = [
            each
            for each in newest_scores(session)
            if each.benchmark in benchmarks and each.model in names
        ]
        sentences = circular_sentences(session, scores)
    # the job notes those validators that the release itself names
    known = {note.partition(":")[0] for note in result["notes"]}
    new = [sentence for sentence in sentences if sentence.partition(":")[0] not in known]
    return {**result, "notes": [*result["notes"], *new]}


def _write_queries(store: Store, result: Result, file: Path) -> None:
    """Write the values of every query, by model; for a suite, by set."""
    with store.read() as session, file.open("x", encoding="utf-8") as lines:
        for part in result.get("parts", [result]):
            for model in part["models"]:
                for row in rows_by_query(get_evaluation(session, model["evaluation_id"])):
                    lines.write(json.dumps(row, ensure_ascii=False) + "\n")


def _absolute(name: str) -> str:
    """A folder as an absolute path (the job may run elsewhere); names and numbers unchanged."""
    kind, colon, rest = name.partition(":")
    if colon and f"{kind}:" != DATASET and Path(rest).exists():  # cross-encoder:FOLDER, trec:FILE
        return f"{kind}:{Path(rest).resolve()}"
    is_folder = name.startswith((".", "/", "~")) or Path(name).is_dir()
    return str(Path(name).expanduser().resolve()) if is_folder else name
