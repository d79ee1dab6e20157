"""Whatever figure or table the analysis pages show can be had as numbers, with its command."""

import subprocess
import sys

import pandas as pd
import pytest
from app_pages import open_drawers, open_page, open_tab
from grown_dataset import grown
from judged_study import answered_whole, judged
from measured import described, kept, mapped
from streamlit.testing.v1 import AppTest

from analysis.files.corpora import Corpus, load_corpora
from analysis.text.sharing import describe_contamination, describe_duplicates
from app.kit.figure import frame_as_csv
from db.corpus.texts import CorpusText
from db.shape import INF_IR
from db.store.store import Store

SHOWN = {"plotly_chart", "dataframe", "bidi_component"}
UNSEEN = (".hover", ".lit")  # bring the text at the pointer and the lit rows, show nothing


def shown_and_offered(page: AppTest, least: int) -> None:
    """Each figure and table of the page is followed by its own CSV and its own command."""
    told = [
        (node.type, node)
        for node in page.main
        if node.type in {*SHOWN, "download_button", "code"}
        and not getattr(node.proto, "id", "").endswith(UNSEEN)
    ]
    kinds = [kind for kind, _ in told]
    numbers = [place for place, kind in enumerate(kinds) if kind in SHOWN]
    assert len(numbers) >= least, kinds
    for place in numbers:
        end = kinds.index("code", place)
        labels = [node.proto.label for _, node in told[place + 1 : end]]
        assert labels[:1] == ["CSV"], (place, kinds)
        if kinds[place] == "plotly_chart":
            assert labels == ["CSV", "SVG", "PDF", "PNG", "LaTeX"]
        assert told[end][1].value.startswith(("inf analyze ", "inf studies "))
        assert "--json" in told[end][1].value


@pytest.mark.long
def test_agreement_and_validators(sqlite_store: Store) -> None:
    # 12 items: a pair of fewer than 10 is a count, and the matrix is drawn of values
    judged(sqlite_store, {"ann": "ppnnpp" * 2, "bob": "ppnnpn" * 2, "cas": "pnnnpp" * 2})
    for name, model in (("GPT", "gpt-4o-mini"), ("O3", "o3-mini")):
        answers = ["yyy", "nyy", "yyy", "nyy", "yyy", "yyn"] * 2
        answered_whole(sqlite_store, name, model, answers)
    page = open_drawers(open_page("agreement"), "agreement.pairs_drawer")
    # figures and tables: the pairs' both; differences, coefficients; the judges' both; confusion
    for name, least in (
        ("People and models", 1),
        ("Pairs", 2),
        ("Measures", 2),
        ("Over time", 1),
        ("Judges", 2),
        ("Items", 1),
    ):
        shown_and_offered(open_tab(page, name, key="agreement.tab"), least)
    tables = ("validators.prices_drawer", "validators.kept_table_drawer")
    shown_and_offered(open_drawers(open_page("validators"), *tables), 4)


def test_diversity_and_overlaps(sqlite_store: Store) -> None:
    grown(sqlite_store, groups=16)
    config = {"datasets": ["demo"], "groups": "both"}
    kept(sqlite_store, config, described(sqlite_store, **config))
    shown_and_offered(open_page("diversity"), 7)
    with sqlite_store.read() as session:
        corpora = load_corpora(session, {"datasets": ["demo"]})
    bees = Corpus(
        "followir",
        "published",
        [CorpusText("query", "positive", "What about BEES 0?")],
        shape=INF_IR,
    )
    kept(sqlite_store, {"datasets": ["demo"]}, describe_duplicates(corpora))
    against = {"datasets": ["demo"], "what": "contamination", "against": ["/e/queries.jsonl"]}
    kept(sqlite_store, against, describe_contamination(corpora, [bees]))
    page = open_page("overlaps")
    shown_and_offered(page, 2)
    page.get("button_group")[0].set_value("contamination").run()
    shown_and_offered(page, 1)


def test_coverage(sqlite_store: Store) -> None:
    grown(sqlite_store)
    grown(sqlite_store, "other")
    mapped(sqlite_store, "demo", "other")
    page = open_page("coverage")
    shown_and_offered(page, 3)


def test_a_frame_as_csv_keeps_formulas_texts_and_numbers_numbers() -> None:
    frame = pd.DataFrame(
        {"x": [-1.5, 2.0], "text": ["=cmd", "fine"], "source": [None, "-nq"], "group_id": [1, None]}
    )
    assert frame_as_csv(frame).splitlines() == [
        "x,text,source,group_id",
        "-1.5,'=cmd,,1.0",
        "2.0,fine,'-nq,",
    ]


@pytest.mark.long
def test_no_page_waits_for_matplotlib() -> None:
    loaded = "import sys; print('matplotlib' in sys.modules)"
    modules = "app.kit.figure, app.models.comparison, app.jobs_page.curves, app.training.watched"
    done = subprocess.run(
        [sys.executable, "-c", f"import {modules}; {loaded}"], capture_output=True, check=True
    )
    assert done.stdout.split() == [b"False"]
