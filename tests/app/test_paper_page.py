"""The Paper page: ours next to what the paper prints, and nothing of the paper's as ours."""

from collections.abc import Iterator

import pytest
from app_pages import open_page, open_tab, sign_in, words
from grown_dataset import grown
from measured import described, kept, mapped
from streamlit.testing.v1 import AppTest

from analysis.paper.published import published
from app.paper.data import counted_sentence
from db.outcome.evaluations import record_evaluation
from db.store.store import Store
from db.tables import Dataset

TABS = {
    "Data": ["Table 1: datasets for instruction-following retrieval"],
    "Coverage": ["Figure 3a: semantic coverage", "Figure 3b: diversity"],
    "Quality": [
        "Figure 4: agreement of people and models",
        "Figure 6: effect of quality filtering",
    ],
    "Models": [
        "Table 2: base models and InF-Embed",
        "Figure 5: instruction following by size of the model",
    ],
    "Further models": ["Table 5: further models"],
    "Ablations": [
        "Table 3: objectives and base models, FollowIR",
        "Table 4: designs with Qwen2.5-1.5B",
        "Table 6: objectives on each set of FollowIR",
    ],
}
NAMED = ["Source", "Model", "dataset", "objective", "encoders", "pooling", "epochs"]


def labels_at(page: object, key: str) -> list[str]:
    """The labels of the downloads with this key."""
    found = page.get("download_button")  # type: ignore[attr-defined]
    return [
        node.proto.label for node in found if f"-{key}." in node.proto.id or key in node.proto.id
    ]


def every_tab() -> Iterator[tuple[AppTest, list[str]]]:
    """The page with each tab open, and the headings that it then has."""
    for name, headings in TABS.items():
        page = open_tab(open_page("paper"), name, key="paper.tab")
        assert not page.exception
        yield page, headings


def test_a_project_without_results_has_every_heading_and_no_value_of_its_own(
    sqlite_store: Store,
) -> None:
    with sqlite_store.write() as session:
        session.add(Dataset(name="<b>$x$</b>"))
        session.commit()
    tables = 0
    for page, headings in every_tab():
        assert [head.value for head in page.header] == headings
        for frame in (each.value for each in page.dataframe):
            assert {"published", "ours"} == set(frame["Source"])
            own = frame[frame["Source"] == "ours"]
            values = own.drop(columns=[name for name in NAMED if name in own])
            assert values.isna().all().all()
            tables += 1
    assert tables == 6


def test_every_figure_and_table_is_a_download(sqlite_store: Store) -> None:
    grown(sqlite_store)
    config = {"datasets": ["demo"], "groups": "both"}
    kept(sqlite_store, config, described(sqlite_store, **config))
    mapped(sqlite_store, "demo")
    pages = [page for page, _ in every_tab()]

    def labels(key: str) -> list[str]:
        return [label for page in pages for label in labels_at(page, key)]

    for number in range(1, 7):
        assert labels(f"paper.table_{number}") == ["CSV", "LaTeX"]
    figures = ["3b.aps", "3b.ingf_2", "3b.ingf_3", "5"]
    for name in figures:
        assert labels(f"paper.figure_{name}") == ["CSV", "SVG", "PDF", "PNG", "LaTeX"]
    assert labels("paper.figure_3a") == ["CSV", "SVG", "PDF", "PNG"]


def test_our_counts_and_the_means_come_first_on_the_page_and_say_what_is_counted(
    sqlite_store: Store,
) -> None:
    grown(sqlite_store)
    config = {"datasets": ["demo"]}
    report = described(sqlite_store, **config)
    kept(sqlite_store, config, report)
    page = open_page("paper")
    first = list(page.dataframe[0].proto.column_order)
    assert first[:5] == ["Source", "dataset", "instructions", "queries", "passages"]
    assert sorted(first) == sorted(page.dataframe[0].value)  # none is lost
    (corpus,) = report.corpora
    text = words(page).replace("\\", "")
    assert f"the texts of groups ({corpus.groups} of {corpus.corpus})" in text
    assert "Datasets counts every passage of a dataset once" in text
    assert counted_sentence([{"corpus": "files", "groups": None}]) == ""
    open_tab(page, "Models", key="paper.tab")
    table_two = list(page.dataframe[0].proto.column_order)
    assert table_two[:4] == ["Source", "Model", "FollowIR score", "FollowIR p-MRR"]
    assert sorted(table_two) == sorted(page.dataframe[0].value)


def test_what_was_evaluated_stands_in_a_row_of_ours(sqlite_store: Store) -> None:
    grown(sqlite_store)
    with sqlite_store.write() as session:
        for benchmark, metrics in (
            ("followir/Robust04", {"map": 0.111, "p-mrr": 0.022}),
            ("held-out demo", {"strict": 0.9}),
        ):
            record_evaluation(
                session,
                model="intfloat/e5-base-v2",
                benchmark=benchmark,
                metrics=metrics,
                per_query={},
            )
        session.commit()
    page = open_tab(open_page("paper"), "Models", key="paper.tab")
    assert not page.exception
    (table,) = [each.value for each in page.dataframe if "Bright nDCG" in each.value]
    own = table[table["Source"] == "ours"]
    assert list(own["Model"]) == ["intfloat/e5-base-v2"]
    cells = own.drop(columns=["Source", "Model"]).iloc[0].dropna().to_dict()
    assert cells == pytest.approx({"Robust04 MAP": 11.1, "Robust04 p-MRR": 2.2})
    place = own.index[0]
    assert table.loc[place - 1, ["Source", "Model"]].to_list() == ["published", "e5-base-v2"]
    printed = table[table["Source"] == "published"]
    assert printed["Robust04 MAP"].to_list() == [
        row["Robust04 MAP"] for row in published("table_2")
    ]
    assert "No model of this project has a p-MRR on FollowIR yet." in words(page)


def test_who_may_not_evaluate_sees_no_scores(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(sqlite_store)
    sign_in(sqlite_store, monkeypatch, "annotator")
    with pytest.raises(ValueError, match="paper"):
        open_page("paper")
