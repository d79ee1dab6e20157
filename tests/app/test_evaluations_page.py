"""The Evaluations page with a suite's means beside its sets."""

from app_pages import open_page, words

from db.evaluations import record_evaluation
from db.store import Store

METRICS = {"ndcg@5": 0.4, "ndcg@10": 0.5, "map": 0.3, "mrr": 0.6, "recall@10": 0.9, "p-mrr": 0.02}


def fill(store: Store) -> None:
    with store.write() as session:
        for number, model in enumerate(("bm25", "models/mine")):
            found = METRICS | {"p-mrr": 0.01 + number}
            by_query = {f"q{n}": {"ndcg@10": 0.1 * n + 0.1 * number} for n in range(5)}
            record_evaluation(
                session, model=model, benchmark="F/Core17", metrics=found, per_query=by_query
            )
            means = found | {"followir score": 0.25 + number}
            record_evaluation(
                session, model=model, benchmark="F (mean of 3)", metrics=means, per_query={}
            )
        session.commit()


def test_a_suites_mean_has_its_score_and_no_interval(sqlite_store: Store) -> None:
    fill(sqlite_store)
    at = open_page("evaluations")
    assert not at.exception
    assert at.selectbox(key="evaluations.chosen").value == "F (mean of 3)"
    (table,) = at.dataframe
    assert table.value["FollowIR score"].tolist() == [1.25, 0.25]
    assert table.value["p-MRR ×100"].tolist() == [101.0, 1.0]
    assert "a mean over the sets of a suite" in words(at)
    at.selectbox(key="evaluations.chosen").set_value("F/Core17").run()
    assert not at.exception and "a mean over the sets" not in words(at)
    scores, differences = at.dataframe
    assert "FollowIR score" not in scores.value
    (row,) = differences.value.to_dict("records")
    assert row["Metric"] == "nDCG@10" and row["Queries"] == 5


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
            )
        session.commit()
    at = open_page("evaluations")
    assert not at.exception and not at.get("plotly_chart")
