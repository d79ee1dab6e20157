"""The Diversity and Overlaps pages: corpora side by side, offending pairs, and how to get them."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from app_pages import open_page, words
from conftest import Ran
from grown_dataset import grown
from measured import described, kept
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

from analysis.files.corpora import Corpus, load_corpora
from analysis.found.texts import CorpusDiversity
from analysis.text.diversity import describe_corpus
from analysis.text.diversity_tables import drop_rows, filter_pairs, filter_rows, table_one
from analysis.text.sharing import describe_contamination, describe_duplicates, what_is_found
from app.access.identity import SessionUser, owner
from app.corpora.diversity import diversity_sentence, export_commands
from app.kit.analysis_command import analysis_command
from app.operations import analyses
from db.corpus.texts import CorpusText
from db.errors import BadInput, Refused
from db.people.rights import Rights
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Job


def test_filtered_and_unfiltered_stand_side_by_side_with_the_reasons(sqlite_store: Store) -> None:
    grown(sqlite_store)
    config = {"datasets": ["demo"], "groups": "both"}
    result = described(sqlite_store, **config)
    kept(sqlite_store, config, result)
    ((filtered, unfiltered),) = filter_pairs(result.corpora)
    assert drop_rows(filtered, unfiltered) == [
        {"groups": "kept", "count": 7, "share": 7 / 8},
        {"groups": "judge_disagrees", "count": 1, "share": 1 / 8},
    ]
    sizes = {
        row["what"]: (row["filtered"], row["unfiltered"])
        for row in filter_rows(*(filtered, unfiltered))
    }
    assert sizes["groups"] == (7, 8)
    assert sizes["passages: texts"] == (21, 24)
    (first, second) = table_one(result.corpora)
    assert (first["groups"], first["instructions"], first["queries"], first["passages"]) == (
        (7, 14, 14, 21)
    )
    assert second["words per instruction"] == 2
    page = open_page("diversity")
    assert not page.exception
    shown = words(page)
    assert "inf analyze diversity --dataset demo --run 1 --groups both --json" in shown
    assert "inf releases create demo --run 1 --out releases/unfiltered --include-dropped" in shown
    assert len(page.get("plotly_chart")) == 4
    frames = [frame.value for frame in page.dataframe]
    assert any("INGF 2, samples" in frame for frame in frames)
    assert any(list(frame.get("groups", [])) == [7, 8] for frame in frames)


def corpus(name: str, aps: float | None, halves: float | None = 0.01) -> CorpusDiversity:
    none = {"ingf_2": None, "ingf_3": None}
    sampled = {"aps": None if aps is None else {"mean": aps, "sd": 0.001}}
    found = {
        **{"texts": 9, "different": 9, "mean_words": 2.0, "aps": aps, **none},
        "sampled": {"size": 4, "repeats": 3, **sampled, **none},
        "halves": {"size": 4, "repeats": 3, "aps": halves, **none},
    }
    about = {"corpus": name, "offline": False, "fields": {"query": found}}
    return CorpusDiversity.model_validate(about)


def test_a_corpus_is_called_more_varied_only_beyond_what_halves_of_one_differ_by() -> None:
    far = diversity_sentence([corpus("a", 0.30), corpus("b", 0.20), corpus("c", 0.25)])
    assert far == "b has the most varied queries, before c (APS 0.200 and 0.250)."
    near = diversity_sentence([corpus("a", 0.210), corpus("b", 0.200)])
    assert near == "b and a have equally varied queries (APS 0.200 and 0.210)."
    loud = diversity_sentence([corpus("a", 0.25, halves=0.2), corpus("b", 0.20)])
    assert "equally" in loud
    few = diversity_sentence([corpus("a", 0.25, halves=None), corpus("b", 0.20, halves=None)])
    assert few.endswith("too few to compare (APS 0.200 and 0.250).")
    assert "0.250 (queries)" in diversity_sentence([corpus("a", 0.25)])
    undefined = [corpus("a", None), corpus("b", 0.2)]
    assert diversity_sentence(undefined) == "" == diversity_sentence(undefined[:1])


def test_results_come_before_the_form_that_makes_the_next(sqlite_store: Store) -> None:
    grown(sqlite_store)

    def is_open(page: AppTest, label: str) -> bool:
        (form,) = (each for each in page.expander if each.label == label)
        return bool(form.proto.expanded)

    assert is_open(open_page("diversity"), "New measurement")
    assert is_open(open_page("overlaps"), "New comparison")
    config = {"datasets": ["demo"]}
    kept(sqlite_store, config, described(sqlite_store, datasets=["demo"]))
    page = open_page("diversity")
    assert not is_open(page, "New measurement")
    assert "Two texts of demo have an average similarity" in words(page)
    with sqlite_store.read() as session:
        found = describe_duplicates(load_corpora(session, config))
    kept(sqlite_store, config, found)
    assert not is_open(open_page("overlaps"), "New comparison")


def test_a_corpus_of_one_text_has_reasons_and_no_number(sqlite_store: Store) -> None:
    grown(sqlite_store, groups=2)
    result = described(sqlite_store, datasets=["demo"])
    one = Corpus("one", "texts", [CorpusText("text", "text", "a b c")], shape=INF_IR)
    vectors = np.ones((1, 1), dtype=np.float32)
    corpora = (*result.corpora, describe_corpus(one, lambda texts: vectors))
    both = result.model_copy(update={"corpora": corpora})
    kept(sqlite_store, {"datasets": ["demo"]}, both)
    page = open_page("diversity")
    assert not page.exception
    assert "aps of text is undefined" in words(page).replace("\\", "")


def test_the_form_queues_what_it_says(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.jobs.supervisors.ensure_supervisor", lambda store: None)
    grown(sqlite_store)
    grown(sqlite_store, "other")
    page = open_page("diversity")
    page.multiselect(key="diversity.datasets").set_value(["demo", "other"])
    page.number_input(key="diversity.sample").set_value(5)
    page.number_input(key="diversity.repeats").set_value(7)
    page.button(key="diversity.start").click().run()
    assert not page.exception
    with sqlite_store.read() as session:
        job = session.scalars(select(Job)).one()
    assert (job.kind, job.config["datasets"]) == ("embed", ["demo", "other"])
    assert (job.config["sample"], job.config["repeats"], job.config["groups"]) == (5, 7, "kept")


def test_clusters_and_offending_pairs_are_listed_with_their_groups(sqlite_store: Store) -> None:
    grown(sqlite_store, groups=16)  # group 9 is on bees again
    with sqlite_store.read() as session:
        corpora = load_corpora(session, {"datasets": ["demo"]})
    evaluation = Corpus(
        "followir",
        "published",
        [CorpusText("query", "positive", "What about BEES 0?")],
        shape=INF_IR,
    )
    config = {"datasets": ["demo"], "what": "contamination", "against": ["/e/queries.jsonl"]}
    kept(sqlite_store, {"datasets": ["demo"]}, describe_duplicates(corpora))
    kept(sqlite_store, config, describe_contamination(corpora, [evaluation]))
    page = open_page("overlaps")
    assert not page.exception
    assert any("Cluster" in frame.value for frame in page.dataframe)
    assert "inf analyze near-duplicates --dataset demo --run 1 --json" in words(page)
    page.get("button_group")[0].set_value("contamination").run()
    assert not page.exception
    pairs = next(frame.value for frame in page.dataframe if "Match" in frame.value)
    assert list(pairs["Match"]) == ["normalised", "near"]  # group 9 asks about bees 8
    assert list(pairs["Group"]) == ["groups?group=1", "groups?group=9"]
    assert "--against /e/queries.jsonl" in words(page)
    evidence = page.selectbox(key="contamination.evidence")
    assert evidence.value == 0
    evidence.set_value(1).run()
    assert not page.exception
    marked = [each.value for each in page.markdown if "orange-background" in each.value]
    assert len(marked) == 2  # "8" on our side, "0" on theirs
    assert ":orange-background[8]" in marked[0].replace("\\", "")


@pytest.mark.parametrize("text", ["What about BEES 0?", "How is glass made?"])
def test_page_and_command_name_what_a_comparison_cannot_find_also_where_nothing_overlaps(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran], text: str
) -> None:
    grown(sqlite_store)
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "1", "text": text}) + "\n")
    given = ("--against", str(tmp_path / "queries.jsonl"), "--paraphrase-threshold", "0")
    ran = inf("analyze", "contamination", "--dataset", "demo", *given)
    assert ran.code == 0, ran.err
    page = open_page("overlaps")
    page.get("button_group")[0].set_value("contamination").run()
    assert not page.exception
    for shown in (ran.out, words(page).replace("\\", "")):
        assert what_is_found(None) in shown


def test_without_an_evaluation_set_the_comparison_says_what_is_missing(sqlite_store: Store) -> None:
    grown(sqlite_store)
    page = open_page("overlaps")
    page.get("button_group")[0].set_value("contamination").run()
    page.button(key="contamination.start").click().run()
    assert "evaluation set" in page.error[0].value


def test_an_uploaded_file_is_kept_by_its_content_inside_our_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_HOME", str(tmp_path))
    content = b'{"text": "x"}\n'
    first = analyses.keep_file(owner("ada"), "../../q u.jsonl", content)
    again = analyses.keep_file(owner("ada"), "q u.jsonl", content)
    assert first == again
    assert Path(first).read_bytes() == content
    assert Path(first).is_relative_to(tmp_path.resolve() / "corpora")
    assert Path(first).name == "q-u.jsonl"
    with pytest.raises(BadInput, match=r"x\.exe"):
        analyses.keep_file(owner("ada"), "x.exe", b"")
    with pytest.raises(Refused):
        analyses.keep_file(SessionUser("nobody", rights=Rights()), "q.jsonl", content)


def test_a_command_names_everything_that_its_analysis_was_made_of() -> None:
    config = {"datasets": ["a b"], "published": ["/x/y"], "groups": "all", "sample": 10, "seed": 0}
    assert analysis_command("diversity", config, [3, None]) == (
        "inf analyze diversity --dataset 'a b' --corpus /x/y --run 3 --groups all --sample 10 "
        "--seed 0 --json"
    )
    assert "--run" not in analysis_command("coverage", {"datasets": ["a", "b"]}, [1, 2])
    for old in ({}, {"run": 4, "pace": "fast", "model": None}):  # of tests, of earlier versions
        run = "--run 4 " * bool(old)
        assert analysis_command("diversity", old, []) == f"inf analyze diversity {run}--json"
    assert export_commands("demo/NQ open", 1).startswith(
        "inf releases create demo --run 1 --source 'NQ open' --out releases/filtered\n"
    )
