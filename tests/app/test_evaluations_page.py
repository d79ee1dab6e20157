"""The Evaluations page with a suite's means beside its sets."""

import json
import zipfile
from collections.abc import Callable
from io import BytesIO
from itertools import count
from pathlib import Path
from statistics import fmean

import pytest
from app_pages import open_page, words
from conftest import Ran
from evaluation_rows import RECORD
from full_store import fill as fill_whole_store
from sqlalchemy.orm import Session
from trainer_folders import write_beir

from analysis.files.csv_writer import csv_text
from analysis.text.bm25 import convention_of
from app.jobs import supervisors
from app.models.headline import too_easy
from app.models.ranking_plot import ranking_figure, ranking_rows
from app.models.records import kept_files
from app.models.result_table import as_latex, best_by_test, table_rows, unlike_cells
from curation.hub.archive import zipped
from db.jobs import jobs
from db.jobs.runner import JobHandle
from db.outcome.checkpoints import record_checkpoint
from db.outcome.evaluations import (
    get_evaluation,
    list_evaluations,
    newest_scores,
    record_evaluation,
)
from db.store.store import Store
from db.tables import Evaluation
from trainer.evaluate.following import INSTRUCTION_FLIP
from trainer.evaluate.job import evaluate
from trainer.evaluate.request import EvaluationStart
from trainer.records.likeness import differences
from trainer.report.compared.differences import difference_rows
from trainer.settings.sizes import named_parameters

METRICS = {"ndcg@5": 0.4, "ndcg@10": 0.5, "map": 0.3, "mrr": 0.6, "recall@10": 0.9, "p-mrr": 0.02}


def fill(store: Store) -> None:
    with store.write() as session:
        for number, model in enumerate(("bm25", "models/mine")):
            found = METRICS | {"p-mrr": 0.01 + number}
            by_query = {f"q{n}": {"ndcg@10": 0.1 * n + 0.1 * number} for n in range(5)}
            record_evaluation(
                session,
                model=model,
                benchmark="F/Core17",
                metrics=found,
                per_query=by_query,
                questions={query: {"cluster": query, "scored": True} for query in by_query},
                record=RECORD,
            )
            means = found | {"followir score": 0.25 + number}
            record_evaluation(
                session,
                model=model,
                benchmark="F (mean of 3)",
                metrics=means,
                per_query={},
                record=RECORD,
            )
        session.commit()


def test_a_suites_mean_has_its_score_and_no_interval(sqlite_store: Store) -> None:
    fill(sqlite_store)
    at = open_page("evaluations")
    assert not at.exception
    assert at.selectbox(key="evaluations.chosen").value == "F (mean of 3)"
    table, *_ = at.dataframe
    assert table.value["FollowIR score"].tolist() == [1.25, 0.25]
    assert table.value["p-MRR ×100"].tolist() == [101.0, 1.0]
    assert "a mean over the sets of a suite" in words(at)
    at.selectbox(key="evaluations.chosen").set_value("F/Core17").run()
    assert not at.exception and "a mean over the sets" not in words(at)
    compared, *others = [each.value for each in at.dataframe]
    assert "FollowIR score" not in next(each for each in others if "nDCG@10" in each)
    (row,) = compared.to_dict("records")
    assert row["measure"] == "nDCG@10" and row["queries"] == 5


def test_a_benchmark_without_changed_instructions_has_no_ranking_by_p_mrr(
    sqlite_store: Store,
) -> None:
    with sqlite_store.write() as session:
        for model in ("one", "other"):
            record_evaluation(
                session,
                model=model,
                benchmark="MAIR (mean of 5)",
                metrics=METRICS | {"p-mrr": None},
                per_query={},
                record=RECORD,
            )
        session.commit()
    at = open_page("evaluations")
    assert not at.exception and not at.get("plotly_chart")


def test_table_2_has_a_checkpoint_under_its_base_and_nothing_in_bold(store: Store) -> None:
    """News21 is told by nDCG@5, other sets whose instructions change by MAP, the rest by nDCG@10.

    base: MAP 0.3 → 30.0, p-MRR 0.02 → 2.0; its checkpoint's p-MRR 0.051 → 5.1 is the best.
    """
    with store.write() as session:
        checkpoint = record_checkpoint(
            session, path="out/a_1", base_model="org/base", config={}, summary={}
        )
        for model, checkpoint_id, follows in (
            ("org/base", None, 0.02),
            ("out/a_1", checkpoint.id, 0.051),
        ):
            for benchmark in ("F/Core17", "F/News21", "BRIGHT"):
                found = METRICS | {"p-mrr": None if benchmark == "BRIGHT" else follows}
                for old in (0.9, 1.0):  # the newest of a model and benchmark counts
                    record_evaluation(
                        session,
                        model=model,
                        benchmark=benchmark,
                        metrics={name: v and v * old for name, v in found.items()},
                        per_query={},
                        checkpoint_id=checkpoint_id,
                    )
        record_evaluation(
            session,
            model="bm25",
            benchmark="BRIGHT",
            metrics=METRICS | {"p-mrr": None},
            per_query={},
        )
        session.flush()
        scores = newest_scores(session)
    rows = table_rows(scores)
    assert [row["Model"] for row in rows] == ["bm25", "org/base", "+ out/a_1"]
    assert {name: round(v, 3) for name, v in rows[1].items() if name != "Model"} == {
        **{"BRIGHT · nDCG@10": 50.0, "F/Core17 · MAP": 30.0, "F/Core17 · p-MRR": 2.0},
        **{"F/News21 · nDCG@5": 40.0, "F/News21 · p-MRR": 2.0},
    }
    assert rows[0]["F/Core17 · MAP"] is None
    latex = as_latex(scores)
    assert r"+ out/a\_1 & " in latex and "5.1" in latex and "textbf" not in latex
    assert r"\multicolumn{2}{c}{F/Core17}" in latex and " -- " in latex
    lines = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert len(lines) == 5 and {line.count("&") for line in lines[1:]} == {5}
    assert csv_text(rows).splitlines()[0].startswith("Model,BRIGHT · nDCG@10")


def scored(model: str, metrics: dict[str, float | None]) -> Evaluation:
    return Evaluation(model=model, benchmark="F (mean of 3)", metrics=metrics, per_query={})


def test_figure_5_groups_models_by_size_and_ranks_each_group_by_p_mrr() -> None:
    """The score of e5 is 16.5 in the paper's unit: its dot stands at 1.65."""
    found = [
        scored(model, {"p-mrr": follows, "followir score": score, "ndcg@10": 0.9})
        for model, follows, score in (
            ("org/Llama-3.2-1B", 0.035, 0.172),
            ("org/e5-base-v2", 0.051, 0.165),
            ("org/Qwen2.5-3B", 0.03, 0.164),
            ("org/ModernBERT-base", 0.011, 0.086),
            ("org/e5-mistral-7b-instruct", 0.01, 0.2),
            ("bm25", -0.02, 0.1),
        )
    ]
    found.append(scored("undefined", {"p-mrr": None, "ndcg@10": 0.5}))
    sizes = {each.model: named_parameters(each.model) for each in found}
    sizes |= {"org/e5-base-v2": 109.5e6, "org/ModernBERT-base": 149e6}
    rows = ranking_rows(found, sizes)
    assert [(row["group"], row["model"]) for row in rows] == [
        ("below 1 B", "org/e5-base-v2"),
        ("below 1 B", "org/ModernBERT-base"),
        ("1 to 5 B", "org/Llama-3.2-1B"),
        ("1 to 5 B", "org/Qwen2.5-3B"),
        ("above 5 B", "org/e5-mistral-7b-instruct"),
        ("size unknown", "bm25"),
    ]
    bars, dots = ranking_figure(rows).data
    assert (bars.x[0], dots.x[0]) == pytest.approx((5.1, 1.65))
    assert list(bars.y[0])[:2] == ["below 1 B"] * 2


@pytest.mark.parametrize(("templates", "marked"), [("aab", "b"), ("aaa", ""), ("ab", "ab")])
def test_all_results_mark_what_was_evaluated_unlike_the_columns_others(
    sqlite_store: Store, templates: str, marked: str
) -> None:
    with sqlite_store.write() as session:
        for number, template in enumerate(templates):
            record_evaluation(
                session,
                model=f"{template}{number}",
                benchmark="F/Core17",
                metrics=METRICS,
                per_query={},
                record=RECORD | {"template": template},
            )
        session.commit()
        scores = newest_scores(session)
        evaluations = list_evaluations(session)
        latex = as_latex(scores, evaluations)
        unlike = unlike_cells(scores, {each.id: each.record for each in evaluations})
    assert {model[0] for model, _ in unlike} == set(marked)
    assert latex.count(r"30.0$^\dagger$") == len(marked) == latex.count("not comparable with")
    rows = table_rows(scores, unlike)
    assert csv_text(rows).count("†") == (len(marked) + 1 if marked else 0)
    assert rows[0]["F/Core17 · MAP"] == 30.0
    assert not marked or list(rows[0])[-1] == "F/Core17 †"  # after all columns of the benchmark
    for (model, _), reasons in unlike.items():  # each line names its own template first
        assert reasons[0].startswith(f"other template ({model[0]} instead of ")
    if templates == "aab":
        at = open_page("evaluations", benchmark="F/Core17")
        warned = "\n".join(each.value for each in at.warning)
        models = [frame.value["Model"] for frame in at.dataframe if "trained" in frame.value]
        assert [sorted(names) for names in models] == [["a0", "a1", "b2 †"]]
        captions = [each.value.replace("\\", "") for each in at.caption if "† b2" in each.value]
        assert captions and "is not comparable with the others: other template" in captions[0]
        line = "† b2 on F/Core17, not comparable with the column's others: other template"
        assert line in warned.replace("\\", "")


def test_only_the_chosen_models_are_compared(sqlite_store: Store) -> None:
    fill(sqlite_store)
    at = open_page("evaluations")
    at.selectbox(key="evaluations.chosen").set_value("F/Core17").run()
    models = at.multiselect(key="evaluations.compared.F/Core17")
    assert models.value == ["models/mine", "bm25"]
    models.set_value(["bm25"]).run()
    assert not at.exception and "Choose at least two models" in words(at)


def test_one_forest_has_every_benchmark_of_the_two_models_with_guards_apart(
    sqlite_store: Store,
) -> None:
    values = {
        f"q{n}": {INSTRUCTION_FLIP: n % 2, "ndcg@10": n / 20, "p-mrr": n / 20} for n in range(12)
    }
    with sqlite_store.write() as session:
        for benchmark, of in (("F/Core17", "p-mrr"), ("held-out demo", INSTRUCTION_FLIP)):
            for model, gain in (("the-first/all-MiniLM-L6-v2", 0), ("models/mine", 0.1)):
                record_evaluation(
                    session,
                    model=model,
                    benchmark=benchmark,
                    metrics=METRICS | {of: 0.5, "query-alone:query-flip": 0.5 + 2 * gain},
                    per_query={
                        query: {name: value[name] + gain for name in (of, "ndcg@10")}
                        for query, value in values.items()
                    },
                    questions={query: {"cluster": query, "scored": True} for query in values},
                    record=RECORD,
                )
        session.commit()
    at = open_page("evaluations")
    at.selectbox(key="evaluations.chosen").set_value("F/Core17").run()
    at.selectbox(key="evaluations.base").set_value("the-first/all-MiniLM-L6-v2").run()
    assert not at.exception
    (forest,) = [
        json.loads(each.proto.spec)
        for each in at.get("plotly_chart")
        if "difference" in each.proto.spec
    ]
    title = forest["layout"]["xaxis"]["title"]["text"]
    assert title == "difference to<br>all-MiniLM-L6-v2"  # not cut off on a phone
    assert forest["layout"]["yaxis"]["ticktext"] == [
        *("<b>Goals: F/Core17</b>", "p-MRR", "<b>Guards: F/Core17</b>", "nDCG@10"),
        *("<b>Controls: F/Core17</b>", "Query flip, query alone"),
        *("<b>Goals: held-out demo</b>", "Instruction flip"),
        *("<b>Guards: held-out demo</b>", "nDCG@10"),
        *("<b>Controls: held-out demo</b>", "Query flip, query alone"),
    ]
    (rows,) = [table.value for table in at.dataframe if "verdict" in table.value]
    assert list(rows["benchmark"].unique()) == ["F/Core17", "held-out demo"]
    assert list(rows["part"]) == ["Goals", "Guards", "Controls"] * 2, "apart in the table, too"
    assert "Controls, hollow" in words(at)


def test_a_benchmark_is_evaluated_by_name_with_some_of_its_tasks(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisors, "ensure_supervisor", lambda store: None)  # jobs stay queued
    fill_whole_store(sqlite_store)
    at = open_page("evaluations")
    assert "evaluations.subset" not in [each.key for each in at.selectbox]
    at.session_state["evaluations.new"] = True  # the drawer is opened
    at.run()
    at.selectbox("evaluations.subset").select("mair-paper")
    at.button("evaluations.submit").click().run()
    assert not at.exception and "Tasks need a benchmark" in words(at)
    at.text_input("evaluations.benchmark").set_value("mair")
    at.button("evaluations.submit").click().run()
    assert not at.exception
    with sqlite_store.read() as session:
        (job,) = jobs.list_jobs(session, kind="evaluate", statuses=("queued",))
    assert (job.config["benchmark"], job.config["subset"]) == ("mair", "mair-paper")
    assert job.config["release"] is None


def test_a_benchmark_is_evaluated_where_there_is_no_release(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisors, "ensure_supervisor", lambda store: None)  # jobs stay queued
    at = open_page("evaluations")
    assert "No evaluations yet" in words(at)
    at.button("evaluations.submit").click().run()
    assert not at.exception and "there is no release yet, so give a benchmark" in words(at)
    at.text_input("evaluations.benchmark").set_value("followir")
    at.button("evaluations.submit").click().run()
    assert not at.exception
    with sqlite_store.read() as session:
        (job,) = jobs.list_jobs(session, kind="evaluate", statuses=("queued",))
    assert job.config["benchmark"] == "followir" and job.config["release"] is None


def evaluate_as(
    store: Store,
    model: str,
    *,
    queries: str = "abc",
    without_record: bool = False,
    benchmark: dict[str, object] | None = None,
    **changed: object,
) -> int:
    with store.write() as session:
        record = {**RECORD, **changed, "benchmark": RECORD["benchmark"] | (benchmark or {})}
        made = record_evaluation(
            session,
            model=model,
            benchmark="F",
            metrics=METRICS,
            per_query={name: {"ndcg@10": 0.5} for name in queries},
            questions={name: {"cluster": name, "scored": True} for name in queries},
            record={} if without_record else record,
        )
        session.commit()
        return made.id


WEIGHTS = {"name": "m", "identity": "m", "weights_sha256": "1f", "revision": None}
UNLIKE: list[tuple[dict[str, object], str]] = [
    ({"queries": "abd"}, "values of other queries (2 in common)"),
    (
        {"benchmark": {"corpus": "77", "documents": 10}},
        "other corpus (10, sha256 77 instead of 9, sha256 0a)",
    ),
    ({"benchmark": {"judgments": "77"}}, "other relevance judgments (sha256 77 instead of"),
    ({"benchmark": {"forms": "77"}}, "other forms of a query"),
    ({"pool": "BM25's best 5 of 9 documents"}, "other candidate pool (BM25's best 5"),
    ({"depth": 5}, "other ranking depth (5 instead of 9)"),
    ({"convention": "other ties"}, "other convention (other ties instead of"),
    ({"template": "{query} {instruction}"}, "other template ({query} {instruction} instead"),
    ({"chat_template": "on"}, "other chat template (on instead of off)"),
    (
        {"given_prefixes": {"query_prefix": "query: ", "passage_prefix": ""}},
        "other prefixes ('query: ' and '' instead of '' and '')",
    ),
    ({"without_record": True}, "no record of the data and settings"),
]


@pytest.mark.parametrize(("other", "reason"), UNLIKE)
def test_evaluations_under_other_conditions_are_not_compared_and_the_reason_is_in_words(
    sqlite_store: Store, other: dict[str, object], reason: str, inf: Callable[..., Ran]
) -> None:
    base = evaluate_as(sqlite_store, "base")
    unlike = evaluate_as(sqlite_store, "unlike", **other)  # type: ignore[arg-type]
    ran = inf("evaluate", "compare", base, unlike, "--json")
    assert (
        ran.code == 1
        and reason in ran.json["error"]
        and f"evaluation {unlike}" in ran.json["error"]
    )
    ran = inf("evaluate", "compare", unlike, base, "--json")
    assert ran.code == 1 and "not comparable" in ran.json["error"]


def test_the_page_shows_an_old_evaluation_and_why_it_is_not_compared(sqlite_store: Store) -> None:
    evaluate_as(sqlite_store, "base")
    evaluate_as(sqlite_store, "like", libraries={"python": "3.12"})
    evaluate_as(sqlite_store, "old", without_record=True)
    at = open_page("evaluations")
    at.selectbox("evaluations.base").set_value("base").run()
    assert not at.exception
    shown = at.warning[0].value.replace("\\", "")
    assert "Not comparable with base" in shown and "old: no record" in shown
    rows = [table.value for table in at.dataframe if "verdict" in table.value]
    assert set(rows[0]["name"]) == {"like"}
    assert "like was evaluated with python 3.12 instead of 3.11" in words(at).replace("\\", "")
    scores = next(each.value for each in at.dataframe if "nDCG@10" in each.value)
    assert set(scores["Model"]) == {"base", "like", "old †"}


def test_one_model_that_read_other_tokens_is_not_compared_with_itself() -> None:
    """A library that drops the prefix silently: every setting is the same, the tokens are not."""
    one = RECORD | {"model": WEIGHTS}
    tokens = [{"text": "query: a", "tokens": ["query", ":", "a"], "count": 3}]
    other = one | {"applied": {"query": tokens, "document": []}}
    (reason,) = differences(one, other)
    assert reason == "the same weights read other tokens ('query : a' instead of 'a')"
    assert differences(RECORD, RECORD | {"applied": other["applied"]}) == []  # two other models


def test_like_evaluations_are_compared_on_the_command_line(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    base, like = evaluate_as(sqlite_store, "base"), evaluate_as(sqlite_store, "like")
    ran = inf("evaluate", "compare", base, like, "--json")
    assert ran.code == 0, ran.err
    (row,) = ran.json["differences"]
    assert row["Verdict"] == "unknown: 3 independent groups of queries: an interval needs 10"
    assert row["Clusters"] == 3 and row["from"] is None
    ran = inf("evaluate", "list", "--json")
    assert [each["evaluation_id"] for each in ran.json["evaluations"]] == [like, base]
    ran = inf("evaluate", "compare", base, like)
    assert "adjusted by Holm" in ran.out


def test_the_page_names_the_queries_without_a_relevant_document(sqlite_store: Store) -> None:
    evaluate_as(sqlite_store, "base", benchmark={"without_relevant": ["q7", "q9"]})
    at = open_page("evaluations")
    assert not at.exception
    assert "2 queries have no relevant document and are in no mean: q7, q9." in words(at).replace(
        "\\", ""
    )


def test_differences_are_adjusted_for_the_number_of_models_and_read_in_words() -> None:
    """20 queries: one model is better by 1 to 20 hundredths, one alternates, one has 5 queries."""

    number = count(1)

    def evaluation(name: str, values: list[float]) -> Evaluation:
        per_query = {f"q{place}": {"ndcg@10": value} for place, value in enumerate(values)}
        questions = {query: {"cluster": query, "scored": True} for query in per_query}
        made = Evaluation(
            model=name, benchmark="b", metrics={}, per_query=per_query, questions=questions
        )
        made.id = next(number)  # as a stored one has
        return made

    base = evaluation("base", [0.3] * 20)
    better = evaluation("better", [0.31 + place / 100 for place in range(20)])
    alternating = evaluation("alternating", [0.3 + (-1) ** place / 10 for place in range(20)])
    few = evaluation("few", [0.4] * 5)
    rows = difference_rows(base, [better, alternating, few])
    assert [row.verdict for row in rows] == [
        "higher",
        "no clear difference",
        "unknown: 5 independent groups of queries: an interval needs 10",
    ]
    (alone,) = difference_rows(base, [better])
    # two models have a p: Holm doubles the smaller one
    assert rows[0].p_holm == pytest.approx(2 * (alone.p_holm or 0))
    assert rows[2].p_holm is None


def test_latex_bolds_only_the_best_that_a_test_supports(sqlite_store: Store) -> None:
    """The largest number of a column is bold with a difference of every query, not by one query,
    and not where the others were scored on other data."""

    def fill_column(session: Session, benchmark: str, lead: list[float], **other: object) -> None:
        for model, values in (("low", [0.3] * 20), ("high", lead)):
            by_query = {f"q{place}": {"ndcg@10": value} for place, value in enumerate(values)}
            record_evaluation(
                session,
                model=model,
                benchmark=benchmark,
                metrics={"ndcg@10": fmean(values)},
                per_query=by_query,
                questions={query: {"cluster": query, "scored": True} for query in by_query},
                record=RECORD | (other if model == "low" else {}),
            )

    with sqlite_store.write() as session:
        clear = [0.31 + place / 100 for place in range(20)]
        fill_column(session, "clear", clear)
        fill_column(session, "chance", [0.3] * 19 + [0.9])
        fill_column(session, "unlike", clear, depth=5)
        session.commit()
        scores = newest_scores(session)
        evaluations = [get_evaluation(session, each.evaluation_id or 0) for each in scores]
        latex = as_latex(scores, evaluations)
        assert best_by_test(scores, evaluations) == {("clear", "ndcg@10", "high")}
        chance = [each for each in scores if each.benchmark != "clear"]
        assert "textbf" not in as_latex(chance, evaluations)
        assert "Nothing is bold" in as_latex(chance, evaluations)
    (row,) = [line for line in latex.splitlines() if line.startswith("high")]
    assert row == r"high & 33.0 & \textbf{40.5} & 40.5$^\dagger$ \\"
    assert "after Holm's adjustment" in latex


def test_held_out_groups_begin_with_flip_and_strict_accuracy_and_their_intervals(
    sqlite_store: Store,
) -> None:
    """12 of 15 groups: 0.8 with the interval of `test_means`: 0.513 to 0.938."""
    by_group = {
        f"g{n}": {"strict": float(n < 12), "instruction-flip": float(n < 14)} for n in range(15)
    }
    with sqlite_store.write() as session:
        metrics = METRICS | {"strict": 12 / 15, "instruction-flip": 14 / 15}
        record_evaluation(
            session,
            model="base",
            benchmark="held-out x 0a",
            metrics=metrics,
            per_query=by_group,
            questions={name: {"cluster": name, "scored": True} for name in by_group},
            record=RECORD,
        )
        session.commit()
        scores = newest_scores(session)
    at = open_page("evaluations")
    assert not at.exception
    first = at.dataframe[0].value.to_dict("records")
    assert [row["Measure"] for row in first] == ["Strict group accuracy", "Instruction flip"]
    assert (first[0]["95 % from"], first[0]["to"]) == pytest.approx((0.513, 0.938), abs=1e-3)
    assert first[0]["n"] == first[0]["Clusters"] == 15 and "3 passages" in first[0]["Ranked over"]
    assert "too easy to show an improvement" in "".join(each.value for each in at.warning)
    assert table_rows(scores) == [
        {"Model": "base", "held-out x 0a · strict": 80.0, "held-out x 0a · flip": 1400 / 15}
    ]


@pytest.mark.parametrize("trained_on", ["0a" * 32, "unknown"])
def test_groups_are_not_called_too_easy_by_a_model_that_was_or_may_have_been_trained_on_them(
    trained_on: str,
) -> None:
    """Without a checkpoint in this store: copied from another one, or a record without the fact."""
    model = {"trained_on": trained_on} if trained_on != "unknown" else {"name": "m"}
    found = Evaluation(
        model="copied",
        benchmark="held-out x 0a",
        metrics={"instruction-flip": 0.95},
        record={"model": model},
    )
    assert too_easy([found]) == ""
    base = Evaluation(
        model="base",
        benchmark="held-out x 0a",
        metrics={"instruction-flip": 0.95},
        record={"model": {"trained_on": None}},
    )
    assert too_easy([found, base]).startswith("base has instruction flip 0.95 without training")


def test_bm25s_convention_stands_beside_its_score(sqlite_store: Store) -> None:
    evaluate_as(sqlite_store, "bm25", bm25=convention_of("de"))
    evaluate_as(sqlite_store, "other")
    at = open_page("evaluations")
    assert not at.exception
    assert (
        "bm25: BM25 (bm25s, Lucene, k1 1.5, b 0.75, stop words, Snowball stemmer, language de)"
        in (words(at).replace("\\", ""))
    )


def test_run_and_qrels_files_are_downloaded_where_they_were_kept(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisors, "ensure_supervisor", lambda store: None)  # jobs stay queued
    monkeypatch.setenv("INF_HOME", str(tmp_path / "home"))
    at = open_page("evaluations")
    at.multiselect("evaluations.models").set_value(["bm25"])
    at.text_input("evaluations.benchmark").set_value(str(write_beir(tmp_path / "beir")))
    at.checkbox("evaluations.trec").check()
    at.button("evaluations.submit").click().run()
    assert not at.exception
    with sqlite_store.write() as session:
        (job,) = jobs.list_jobs(session, kind="evaluate", statuses=("queued",))
        claimed = jobs.claim_job(session, job.id)
        assert claimed is not None
        session.commit()
    evaluate(JobHandle(sqlite_store, claimed.id, claimed.attempt))
    with sqlite_store.read() as session:
        found = list_evaluations(session)
        requested = {claimed.id: EvaluationStart.read(jobs.get_job(session, claimed.id).config)}
    files = kept_files(found, requested)
    assert {name.partition("/")[0] for name in files} == {f"job-{claimed.id}"}
    assert (tmp_path / "home" / "trec") in [file.parents[2] for file in files.values()]
    with zipfile.ZipFile(BytesIO(b"".join(zipped(files)))) as packed:
        (run,) = [name for name in packed.namelist() if name.endswith(".run")]
        assert packed.read(run).decode().split()[1] == "Q0" and len(packed.namelist()) == 2
    at = open_page("evaluations")
    assert not at.exception and at.get("download_button")
    assert "Download runs and qrels (TREC)" in [each.label for each in at.get("download_button")]
    for file in files.values():
        file.unlink()
    assert kept_files(found, requested) == {}
