"""`inf evaluate list` and `compare`: stored evaluations, and differences of like ones."""

import click

from app.cli.kit.report import Result, ready_store, reporting
from app.models.compared.conditions import library_notes, unlike
from app.models.compared.differences import METHOD, difference_rows
from app.text.numbers import score
from db.errors import BadInput
from db.outcome.evaluations import get_evaluation, list_evaluations


def _listed(result: Result) -> str:
    rows = [
        f"{each['evaluation_id']:>5}  {each['created_at'][:16]}  {each['benchmark']}  "
        f"{each['model'][-60:]}  nDCG@10 {score(each['metrics'].get('ndcg@10'))}"
        + ("" if each["has_record"] else "  (no record: not comparable)")
        for each in result["evaluations"]
    ]
    return "\n".join(rows) if rows else "no evaluations"


@click.command(name="list")
@click.option("--benchmark", help="Only those of this benchmark, by its stored name.")
@reporting(_listed)
def list_stored(benchmark: str | None) -> Result:
    """List stored evaluations, newest first, with the ids that `compare` takes."""
    with ready_store().read() as session:
        found = list_evaluations(session, benchmark=benchmark)
        return {
            "evaluations": [
                {
                    "evaluation_id": each.id,
                    "created_at": each.created_at.isoformat(),
                    "benchmark": each.benchmark,
                    "model": each.model,
                    "metrics": each.metrics,
                    "has_record": bool(each.record),
                }
                for each in found
            ]
        }


def _compared(result: Result) -> str:
    lines = [f"against {result['base']} on {result['benchmark']}"]
    for row in result["differences"]:
        low, high, p = row["from"], row["to"], row["p (Holm)"]
        interval = "" if low is None else f" [{low:+.4f}, {high:+.4f}], p {p:.4f}"
        lines.append(
            f"{row['Model'][-40:]}, {row['Metric']}: {row['Difference']:+.4f}{interval}, "
            f"{row['Verdict']} ({row['Queries']} queries, {row['Clusters']} clusters)"
        )
    lines += [f"note: {note}" for note in result["notes"]]
    return "\n".join([*lines, METHOD])


@click.command()
@click.argument("base", type=int, metavar="BASE")
@click.argument("others", type=int, nargs=-1, required=True, metavar="OTHER…")
@reporting(_compared)
def compare(base: int, others: tuple[int, ...]) -> Result:
    """Differences of evaluations to the evaluation BASE, by their ids.

    Refused, with what differs in words, where their records differ: another corpus, queries,
    judgments, candidate pool, depth, template or prefixes, or no record at all.
    """
    with ready_store().read() as session:
        first = get_evaluation(session, base)
        rest = [get_evaluation(session, each) for each in dict.fromkeys(others) if each != base]
    if not rest:
        raise click.UsageError("give at least two different evaluations")
    if reasons := unlike(first, rest):
        lines = [f"evaluation {key}: {', '.join(texts)}" for key, texts in reasons.items()]
        raise BadInput(
            f"not comparable with evaluation {base}: {'; '.join(lines)}",
            code="not_comparable_evaluation",
        )
    if not first.per_query:
        raise BadInput(
            "a suite's mean has no values by query",
            "compare the evaluations of its sets",
            code="suite_mean_no_values",
        )
    notes = [
        f"evaluation {key} was made with {', '.join(texts)}"
        for key, texts in library_notes(first, rest).items()
    ]
    return {
        "benchmark": first.benchmark,
        "base": first.model,
        "differences": difference_rows(first, rest),
        "notes": notes,
        "method": METHOD,
    }
