"""`inf evaluations pin` and `trec`: freeze a benchmark's content, measure TREC files alone."""

from pathlib import Path

import click

from app.cli.kit.report import Result, lines, reporting
from app.text.numbers import score
from trainer.evaluate.measures.rankings import average, measure, without_relevant
from trainer.records.content import benchmark_content
from trainer.records.pinning import write_pin
from trainer.records.record import content_together
from trainer.suites.registry import read_benchmarks
from trainer.trec.files import read_qrels, read_run


def _pinned(result: Result) -> str:
    return lines(
        ("sha256", result["sha256"]),
        ("benchmarks", ", ".join(result["benchmarks"])),
        ("documents", result["documents"]),
        ("queries", result["questions"]),
        ("pinned in", result["file"] or "no file: --write makes one"),
    )


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--write", is_flag=True, help="Write it to FOLDER/benchmark.sha256, which is checked."
)
@reporting(_pinned)
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
    table = [f"{name:<12}{score(value)}" for name, value in result["metrics"].items()]
    left_out = len(result["without_relevant"])
    notes = [f"{result['queries']} queries in the means"]
    notes += [f"{left_out} judged queries without a relevant document, in no mean"] * bool(left_out)
    notes += [f"{len(result['missing'])} judged queries are not in the run and score 0"] * bool(
        result["missing"]
    )
    return "\n".join([*table, *notes])


@click.command()
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
