"""Table 2: a row per model, columns per benchmark, as a table, CSV and LaTeX.

Columns of held-out groups: strict accuracy and instruction flip, their headline. Columns of any
other benchmark as in the paper: its retrieval measure (FollowIR's score if available, nDCG@5
for News21, MAP if instructions change, otherwise nDCG@10), then p-MRR if defined. Values times 100.
A checkpoint follows its base model. A dagger marks what was evaluated unlike the column's others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.access.identity import Actor
from app.kit.figure import draw_downloads
from app.kit.page import draw_wrapped
from app.operations import evaluations as operations
from app.text.latex import escaped
from app.text.plain import plain
from db.outcome.evaluations import Scored
from db.tables import Evaluation
from trainer.report.compared.conditions import DAGGER, unlike_the_others
from trainer.report.compared.differences import clearly_best
from trainer.report.compared.measures import model_name

P_MRR = "p-mrr"
TITLES = {
    "followir score": "score",
    "map": "MAP",
    "ndcg@5": "nDCG@5",
    "ndcg@10": "nDCG@10",
    P_MRR: "p-MRR",
    "strict": "strict",
    "instruction-flip": "flip",
}
BOLD = (
    "Bold: higher than every other model of the column on the same queries (paired over clusters "
    "of queries that belong together, $p \\le 0.05$ after Holm's adjustment)."
)
NOTHING_BOLD = "Nothing is bold: in no column does a test find one model above all others."
LATEX_DAGGER = r"$^\dagger$"
Unlike = Mapping[tuple[str, str], list[str]]  # by (model, benchmark), what differs


@dataclass(frozen=True)
class Column:
    """A measure of a benchmark."""

    benchmark: str
    measure: str

    @property
    def title(self) -> str:
        """The column header in a flat table."""
        return f"{self.benchmark} · {TITLES[self.measure]}"


def columns_of(scores: Sequence[Scored]) -> list[Column]:
    """The columns, by benchmark in order of first appearance."""
    found: list[Column] = []
    for benchmark in dict.fromkeys(each.benchmark for each in scores):
        theirs = [each.metrics for each in scores if each.benchmark == benchmark]
        if any(metrics.get("strict") is not None for metrics in theirs):
            found += [Column(benchmark, "strict"), Column(benchmark, "instruction-flip")]
            continue
        found.append(Column(benchmark, _retrieval_measure(benchmark, theirs)))
        if any(metrics.get(P_MRR) is not None for metrics in theirs):
            found.append(Column(benchmark, P_MRR))
    return found


def _retrieval_measure(benchmark: str, metrics: Iterable[dict[str, object]]) -> str:
    metrics = list(metrics)
    if any(each.get("followir score") is not None for each in metrics):
        return "followir score"
    if "news21" in benchmark.lower():
        return "ndcg@5"
    return "map" if any(each.get(P_MRR) is not None for each in metrics) else "ndcg@10"


def ordered_models(scores: Sequence[Scored]) -> list[tuple[str, bool]]:
    """(model, whether it is trained), every checkpoint right after its base model."""
    base_of = {each.model: each.base_model for each in scores if each.checkpoint_id is not None}
    bases = dict.fromkeys(base_of.get(each.model) or each.model for each in scores)
    known = {each.model for each in scores}
    found: list[tuple[str, bool]] = []
    for base in bases:
        found += [(base, False)] if base in known and base not in base_of else []
        found += [(model, True) for model, of in base_of.items() if (of or model) == base]
    return found


def unlike_cells(
    scores: Sequence[Scored], records: Mapping[int, Mapping[str, Any]]
) -> dict[tuple[str, str], list[str]]:
    """{(model, benchmark): what differs} of evaluations unlike the others of their benchmark.

    records: by evaluation id.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for benchmark in dict.fromkeys(each.benchmark for each in scores):
        of = [each for each in scores if each.benchmark == benchmark]
        theirs = [records.get(each.evaluation_id or 0, {}) for each in of]
        for place, reasons in unlike_the_others(theirs).items():
            found[of[place].model, benchmark] = reasons
    return found


def unlike_lines(unlike: Unlike) -> list[str]:
    """A line per marked evaluation: what differs from the others of its column."""
    return [
        f"{DAGGER} {model_name(model)} on {benchmark}, not comparable with the column's others: "
        + ", ".join(reasons)
        for (model, benchmark), reasons in unlike.items()
    ]


def table_rows(
    scores: Sequence[Scored], unlike: Unlike | None = None
) -> list[dict[str, str | float | None]]:
    """A row per model: its name, then every column times 100, None if undefined.

    A benchmark with evaluations in `unlike` has a column more after its others, with a
    dagger where it is so.
    """
    unlike = unlike or {}
    marked = {benchmark for _, benchmark in unlike}
    last = {column.benchmark: column for column in columns_of(scores)}
    values = {(each.model, each.benchmark): each.metrics for each in scores}
    rows: list[dict[str, str | float | None]] = []
    for model, is_trained in ordered_models(scores):
        row: dict[str, str | float | None] = {
            "Model": f"+ {model_name(model)}" if is_trained else model_name(model)
        }
        for column in columns_of(scores):
            value = values.get((model, column.benchmark), {}).get(column.measure)
            row[column.title] = None if value is None else 100 * float(value)
            if column.benchmark in marked and column == last[column.benchmark]:
                is_unlike = (model, column.benchmark) in unlike
                row[f"{column.benchmark} {DAGGER}"] = DAGGER if is_unlike else ""
        rows.append(row)
    return rows


def best_by_test(
    scores: Sequence[Scored], evaluations: Sequence[Evaluation]
) -> set[tuple[str, str, str]]:
    """(benchmark, measure, model) of the columns whose best a test supports."""
    found = set()
    for column in columns_of(scores):
        theirs = [each for each in evaluations if each.benchmark == column.benchmark]
        best = clearly_best(theirs, column.measure)
        if best is not None:
            found.add((column.benchmark, column.measure, best.model))
    return found


def as_latex(scores: Sequence[Scored], evaluations: Sequence[Evaluation] = ()) -> str:
    """The table in LaTeX (booktabs): benchmarks above measures, one decimal, -- if undefined.

    evaluations: of the scores, with values by query and records. Bold is what a test supports, and
    the line below the table says which; without a test nothing is bold. A dagger marks evaluations
    unlike the others of the column, and a line below says what differs.
    """
    records = {each.id: each.record or {} for each in evaluations}
    unlike = unlike_cells(scores, records) if records else {}
    columns, rows = columns_of(scores), table_rows(scores)
    bold = best_by_test(scores, evaluations)
    spans: dict[str, int] = {}
    for column in columns:
        spans[column.benchmark] = spans.get(column.benchmark, 0) + 1
    heads = [
        rf"\multicolumn{{{count}}}{{c}}{{{escaped(name)}}}" if count > 1 else escaped(name)
        for name, count in spans.items()
    ]

    def cell(model: str, row: dict[str, str | float | None], column: Column) -> str:
        value = row[column.title]
        if value is None:
            return "--"
        is_best = (column.benchmark, column.measure, model) in bold
        mark = LATEX_DAGGER if (model, column.benchmark) in unlike else ""
        return (rf"\textbf{{{float(value):.1f}}}" if is_best else f"{float(value):.1f}") + mark

    lines = [
        rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
        r"\toprule",
        " & ".join(["Datasets", *heads]) + r" \\",
        " & ".join(["Metrics", *(escaped(TITLES[each.measure]) for each in columns)]) + r" \\",
        r"\midrule",
        *(
            " & ".join([escaped(str(row["Model"])), *(cell(model, row, each) for each in columns)])
            + r" \\"
            for (model, _), row in zip(ordered_models(scores), rows, strict=True)
        ),
        r"\bottomrule",
        r"\end{tabular}",
        rf"\par\smallskip{{\footnotesize {BOLD if bold else NOTHING_BOLD}}}",
        *(rf"\par{{\footnotesize {escaped(line)}}}" for line in unlike_lines(unlike)),
    ]
    return "\n".join(lines) + "\n"


def draw_result_table(user: Actor) -> None:
    """The table with its filters and downloads."""
    scores = operations.scores(user)
    models = [model for model, _ in ordered_models(scores)]
    benchmarks = list(dict.fromkeys(each.benchmark for each in scores))
    st.header("All results", anchor=False)
    first, second = st.columns(2)
    chosen = first.multiselect(
        "Models and checkpoints",
        models,
        format_func=model_name,
        placeholder="all",
        key="evaluations.table_models",
    )
    wanted = second.multiselect(
        "Benchmarks", benchmarks, placeholder="all", key="evaluations.table_benchmarks"
    )
    shown = [
        each
        for each in scores
        if (not chosen or each.model in chosen) and (not wanted or each.benchmark in wanted)
    ]
    ids = [each.evaluation_id for each in shown if each.evaluation_id is not None]
    unlike = unlike_cells(shown, operations.records(user, ids))
    rows = table_rows(shown, unlike)
    if not rows:
        st.caption("No evaluations of these models on these benchmarks.")
        return
    draw_wrapped(rows, {each.title: "{:.1f}" for each in columns_of(shown)})
    for line in unlike_lines(unlike):
        st.warning(plain(line), icon=":material/difference:")
    for sentence in operations.circular(user, shown):
        st.warning(plain(sentence), icon=":material/sync_problem:")
    st.caption(
        "Times 100, as in Table 2 of the paper; held-out groups by strict accuracy and instruction "
        "flip. + marks a checkpoint, listed under its base model."
    )
    draw_downloads(
        rows,
        key="evaluations.table",
        latex=lambda: as_latex(shown, operations.stored(user, ids)),
    )
