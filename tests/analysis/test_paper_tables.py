"""The paper's tables as printed, and rows of ours next to them: no value crosses over."""

import pytest

from analysis.paper.published import MISPRINTS, columns_of, published
from analysis.paper.rows import (
    OURS,
    PUBLISHED,
    SOURCE,
    Trained,
    backbone_rows,
    cells_of,
    design_rows,
    model_rows,
    objective_rows,
    published_ranking,
)
from db.outcome.evaluations import Scored

TABLES = tuple(f"table_{number}" for number in range(1, 7))


def scored(model: str, benchmark: str, checkpoint: int | None = None, **metrics: float) -> Scored:
    named = {name.replace("_", " "): value for name, value in metrics.items()}
    named = {{"p mrr": "p-mrr", "ndcg": "ndcg@10"}.get(name, name): v for name, v in named.items()}
    return Scored(model, benchmark, named, checkpoint, None, evaluation_id=1)


def test_every_table_is_there_with_the_rows_and_the_cells_that_are_printed() -> None:
    sizes = {name: (len(published(name)), len(columns_of(name))) for name in TABLES}
    assert sizes == {
        "table_1": (11, 15),
        "table_2": (18, 18),
        "table_3": (14, 15),
        "table_4": (4, 4),
        "table_5": (30, 18),
        "table_6": (96, 10),
    }
    assert published("table_1")[-1]["instructions"] == 77_500
    assert published("table_4")[0] == {
        "encoders": "shared",
        "pooling": "last",
        "epochs": 2,
        "p-MRR": 2.27,
    }
    bm25 = published("table_5")[0]
    assert (bm25["Robust04 MAP"], bm25["DD-15 nDCG"]) == (12.1, None)
    base = published("table_3")[0]
    assert (base["objective"], base["ModernBERT-base p-MRR"]) == ("base", -0.27)  # as printed
    assert set(MISPRINTS) <= set(TABLES)


def test_table_6_and_table_3_print_the_same_overall_numbers_in_the_same_order() -> None:
    """The row labels of both are garbled in the text copy: their order is checked by the values."""
    overall = {
        (row["base model"], row["objective"]): (row["FollowIR score"], row["FollowIR p-MRR"])
        for row in published("table_6")
    }
    differing = {
        (base, row["objective"])
        for row in published("table_3")[:12]
        for base in (name.removesuffix(" score") for name in columns_of("table_3")[1::2])
        if overall[base, row["objective"]] != (row[f"{base} score"], row[f"{base} p-MRR"])
    }
    assert differing == set()


def test_a_row_of_ours_stands_below_the_paper_s_row_of_the_same_model_and_only_it_is_ours() -> None:
    scores = [
        scored("intfloat/e5-base-v2", "followir/Robust04", map=0.2, p_mrr=-0.01),
        scored("/home/me/checkpoints/mine", "followir", 7, followir_score=0.3, p_mrr=0.05),
        scored("other/model", "mair/DD_2015", ndcg=0.5),
        scored("nothing/else", "held-out demo", strict=0.9),
    ]
    ours = cells_of(scores)
    bases = {"/home/me/checkpoints/mine": "intfloat/e5-base-v2"}
    rows = model_rows("table_2", ours, bases, {})
    sources = [(row[SOURCE], row["Model"]) for row in rows]
    assert sources[:2] == [(OURS, "other/model"), (OURS, "nothing/else")]
    place = sources.index((PUBLISHED, "e5-base-v2"))
    assert sources[place + 1 : place + 4] == [
        (OURS, "intfloat/e5-base-v2"),
        (PUBLISHED, "e5-base-v2 + InF-Embed"),
        (OURS, "/home/me/checkpoints/mine"),
    ]
    mine = {row["Model"]: row for row in rows if row[SOURCE] == OURS}
    assert mine["intfloat/e5-base-v2"]["Robust04 MAP"] == 20
    assert mine["intfloat/e5-base-v2"]["News21 nDCG"] is None  # nobody ran it
    assert mine["/home/me/checkpoints/mine"]["FollowIR p-MRR"] == 5
    numbers = {value for row in mine.values() for value in row.values() if isinstance(value, float)}
    assert numbers == {20, -1, 30, 5, 50}


EMPTY_OF_OURS = {
    "table 2": model_rows("table_2", {}, {}, {}),
    "table 5": model_rows("table_5", {}, {}, {}),
    "table 3": objective_rows({}, []),
    "table 4": design_rows({}, []),
    "table 6": backbone_rows("Qwen2.5-1.5B", {}, []),
}


@pytest.mark.parametrize("name", EMPTY_OF_OURS)
def test_cells_that_nobody_ran_stay_empty(name: str) -> None:
    varied = {SOURCE, "Model", "objective", "encoders", "pooling", "epochs"}
    own = [row for row in EMPTY_OF_OURS[name] if row[SOURCE] == OURS]
    assert own
    assert {row[column] for row in own for column in row.keys() - varied} == {None}


def test_tables_3_4_and_6_take_ours_by_base_model_objective_and_design() -> None:
    ours = cells_of(
        [
            scored("a", "followir", 1, followir_score=0.2, p_mrr=0.03),
            scored("b", "followir", 2, followir_score=0.4, p_mrr=0.06),
            scored("Qwen/Qwen2.5-1.5B", "followir", followir_score=0.1, p_mrr=0.01),
        ]
    )
    trained = [
        Trained("a", "Qwen/Qwen2.5-1.5B", "P", "shared", "last", 2),
        Trained("b", "Qwen/Qwen2.5-1.5B", "P,I:multi", "shared", "mean", 2),
    ]
    column = "Qwen2.5-1.5B score"
    found = {
        row["objective"]: row[column]
        for row in objective_rows(ours, trained)
        if row[SOURCE] == OURS and row[column] is not None
    }
    assert found == {"base": 10, "P": 20, "P,I:multi": 40}
    assert [row["p-MRR"] for row in design_rows(ours, trained) if row[SOURCE] == OURS] == [
        3,
        None,  # the objective of Table 4 is P
        None,
        None,
    ]
    six = [row for row in backbone_rows("Qwen2.5-1.5B", ours, trained) if row[SOURCE] == OURS]
    assert [row["FollowIR p-MRR"] for row in six if row["FollowIR p-MRR"]] == [1, 3, 6]


def test_figure_5_marks_every_printed_bar_as_published() -> None:
    rows = published_ranking()
    assert len(rows) > 20
    assert all(str(row["model"]).endswith("· published") for row in rows)
    assert all(row["checkpoint"] is None for row in rows)
