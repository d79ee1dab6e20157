import json
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Ran
from grown_dataset import SUBJECTS, grown, run_job

from analysis.files.corpora import (
    Chosen,
    Corpus,
    RowsOnDisk,
    corpora_sha256,
    load_corpora,
    texts_of,
)
from analysis.found.texts import CoverageNumbers
from analysis.map import coverage
from analysis.map.clusters import Column, cluster_names, with_clusters
from analysis.map.coverage import (
    ByText,
    coverage_numbers,
    points_frame,
    points_table,
    read_table,
    require_storable,
    to_bytes,
)
from analysis.text.sharing import Paraphrases, describe_contamination, describe_duplicates
from db.corpus.datasets import text_sha256
from db.corpus.texts import CorpusText, pair_texts, run_texts
from db.errors import BadInput, BadRows, NotFound
from db.outcome.analyses import (
    analyses_of_dataset,
    find_analysis,
    get_analysis,
    list_analyses,
    store_analysis,
)
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Dataset, Pair, Passage


def test_every_text_is_listed_once_under_the_role_that_introduced_it(store: Store) -> None:
    run_id = grown(store, groups=2)
    with store.read() as session:
        rows = run_texts(session, run_id, INF_IR, verdicts=["kept"])
    assert [(row.field, row.role) for row in rows] == [
        ("instruction", "positive"),
        ("query", "positive"),
        ("passage", "positive"),
        ("instruction", "instruction_negative"),
        ("passage", "instruction_negative"),
        ("query", "query_negative"),
        ("passage", "query_negative"),
    ]
    assert rows[3].text == "Omit bees."
    assert rows[5].text == "who sells bees"
    assert {row.verdict for row in rows} == {"kept"}


def test_the_pairs_give_each_query_and_each_passage_once(store: Store) -> None:
    grown(store, groups=3)
    with store.read() as session:
        dataset_id = latest_dataset(session)
        rows = pair_texts(session, dataset_id)
    assert [row.field for row in rows] == ["query"] * 3 + ["passage"] * 3
    assert {row.group_id for row in rows} == {None}


def latest_dataset(session: Any) -> int:
    return int(session.query(Dataset.id).order_by(Dataset.id.desc()).limit(1).scalar())


def test_kept_groups_are_the_default_and_all_can_be_requested(sqlite_store: Store) -> None:
    run_id = grown(sqlite_store, groups=4)
    with sqlite_store.read() as session:
        (kept,) = load_corpora(session, {"datasets": ["demo"]})
        (whole,) = load_corpora(session, {"datasets": ["demo"], "groups": "all", "run": run_id})
    assert (len(kept.texts), len(whole.texts)) == (21, 28)
    assert kept.run_id == run_id
    assert kept.offline


def test_filtered_and_unfiltered_stand_side_by_side(sqlite_store: Store) -> None:
    grown(sqlite_store, groups=4)
    with sqlite_store.read() as session:
        filtered, unfiltered = load_corpora(session, {"datasets": ["demo"], "groups": "both"})
    assert (filtered.name, unfiltered.name) == ("demo, filtered", "demo, unfiltered")
    assert (len(filtered.texts), len(unfiltered.texts)) == (21, 28)
    assert filtered.dropped == {"judge_disagrees": 1}


def test_another_text_or_model_is_another_analysis() -> None:
    corpus = Corpus("c", "texts", [CorpusText("text", "text", "a")], shape=INF_IR)
    other = Corpus("c", "texts", [CorpusText("text", "text", "b")], shape=INF_IR)
    same = corpora_sha256([corpus], {"model": "m"})
    assert same == corpora_sha256([corpus], {"model": "m"})
    assert len({same, corpora_sha256([other], {"model": "m"}), corpora_sha256([corpus], {})}) == 3


def test_wrong_names_and_runs_are_refused(sqlite_store: Store) -> None:
    run_id = grown(sqlite_store)
    grown(sqlite_store, "other")
    with sqlite_store.read() as session:
        for config, error, message in (
            ({}, BadInput, "nothing to analyse"),
            ({"datasets": ["nope"]}, NotFound, "existing ones: demo, other"),
            ({"datasets": ["other"], "run": run_id}, BadInput, "not a run of dataset 'other'"),
            ({"run": run_id + 9}, NotFound, "no run"),
        ):
            with pytest.raises(error, match=message):
                load_corpora(session, config)


def test_the_texts_of_a_corpus_are_the_same_from_its_file_and_take_little_memory() -> None:
    rows = [
        CorpusText("query", "positive", f"ä {n} \U0001f41d " * (n % 40), n, "kept", "nq", n + 7)
        for n in range(2_500)
    ]
    rows += [CorpusText("text", "text", ""), CorpusText("text", "text", "last", 0)]
    there = RowsOnDisk(iter(rows))
    assert list(there) == rows and len(there) == len(rows)
    for some in (slice(990, 2_010, 7), slice(30, 10, -3), slice(5, 5)):
        assert there[some] == rows[some]
    assert (there[0], there[-1], there[1_204]) == (rows[0], rows[-1], rows[1_204])
    with pytest.raises(IndexError):
        there[len(rows)]
    corpora = [Corpus(name, "texts", there, shape=INF_IR) for name in ("one", "two")]
    chosen = Chosen(corpora, [0, 2_501, 2_502, 5_003])
    assert [chosen.row(n)[0] for n in range(4)] == ["one", "one", "two", "two"]
    assert list(chosen) == [rows[0].text, "last", rows[0].text, "last"]
    tracemalloc.start()
    many = RowsOnDisk(CorpusText("text", "text", f"{n} " * 100, n) for n in range(20_000))
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 60 * len(many), "its texts have 550 bytes and more"


def test_clusters_are_those_of_the_rows_in_memory_where_texts_repeat() -> None:
    chance = np.random.default_rng(3)
    words = [f"bees make honey all summer long number {n}" for n in range(40)]
    rows = [
        CorpusText(("query", "passage")[n % 2], f"role {n % 3}", words[chance.integers(40)], n)
        for n in range(300)
    ]
    corpora = [
        Corpus(name, "texts", of, shape=INF_IR) for name, of in (("a", rows), ("b", rows[50:200]))
    ]
    on_disk = [replace(corpus, texts=RowsOnDisk(corpus.texts)) for corpus in corpora]
    found = describe_duplicates(on_disk)
    assert found == describe_duplicates(corpora)
    for cluster in found.clusters:
        texts = [place.text for place in cluster.texts if place.corpus == "a"]
        of_field = [row.text if row.field == cluster.field else "" for row in rows]
        lasts = [len(rows) - of_field[::-1].index(text) for text in texts]
        assert lasts == sorted(lasts), "in the order of their last use, as results before have it"
    assert sum(len(cluster.texts) for cluster in found.clusters) > 100


def test_overlaps_are_those_of_the_rows_in_memory_where_texts_repeat() -> None:
    chance = np.random.default_rng(5)
    words = [f"{n} bees make honey {n * n} all summer {n % 7} long {n * 3}" for n in range(60)]
    fields = ("query", "passage", "instruction")

    def rows(count: int) -> list[CorpusText]:
        found = []
        for n in range(count):
            text, way = words[chance.integers(60)], chance.integers(4)
            text = (text, text.upper(), f"{text} {n}", text.replace("all", "one"))[way]
            field = fields[chance.integers(3)]
            found.append(CorpusText(field, f"role {n % 2}", text, None if n % 5 == 0 else n))
        return found

    ours = [Corpus(name, "texts", rows(200), shape=INF_IR) for name in ("a", "b")]
    theirs = [Corpus("eval", "published", rows(80), shape=INF_IR)]
    on_disk = [
        [replace(corpus, texts=RowsOnDisk(corpus.texts)) for corpus in corpora]
        for corpora in (ours, theirs)
    ]
    vectors = np.random.default_rng(6).standard_normal((60, 4))

    def embedded(texts: Sequence[str]) -> np.ndarray:
        found = vectors[[int(text.split()[0]) for text in texts]]
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))

    how = Paraphrases(embedded, "numbers", threshold=0.2)
    found = describe_contamination(*on_disk, how)
    assert found == describe_contamination(ours, theirs, how)
    assert set(found.how) >= {"exact", "normalised", "near", "paraphrase"}
    of_text: dict[str, set[int]] = {}
    for corpus in ours:
        for row in corpus.texts:
            groups = of_text.setdefault(row.text, set())
            groups.update([] if row.group_id is None else [row.group_id])
    assert all(pair.groups == tuple(sorted(of_text[pair.text])) for pair in found.pairs)
    places = [of_corpus(ours, pair.corpus, pair.field, pair.text) for pair in found.pairs]
    for how_found in set(found.how):
        shown = [
            (-pair.share, place)
            for pair, place in zip(found.pairs, places, strict=True)
            if pair.how == how_found
        ]
        assert shown == sorted(shown), "in the order of their last use, as results before have it"


def of_corpus(corpora: Sequence[Corpus], name: str, field: str, text: str) -> int:
    """Where a text of a field stands last among all rows."""
    rows = [
        (corpus.name, row.field, row.text) == (name, field, text)
        for corpus in corpora
        for row in corpus.texts
    ]
    return len(rows) - rows[::-1].index(True)


def test_a_map_that_no_store_takes_is_refused_before_it_is_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [CorpusText("text", "text", "ä" * 500)] * 1_000
    corpora = [Corpus("large", "texts", RowsOnDisk(rows), shape=INF_IR)]
    size = len(to_bytes(points_table(corpora, {rows[0].text: np.zeros(2)}, set())))
    assert size > 1_000 * (coverage.POINT_BYTES + 2 * coverage.EXCERPT)
    monkeypatch.setattr(coverage, "MAX_BYTES", size)
    require_storable(corpora)
    monkeypatch.setattr(coverage, "MAX_BYTES", 300_000)
    with pytest.raises(BadInput, match="1,000 points") as refused:
        require_storable(corpora)
    assert refused.value.code == "map_too_large"


def test_a_file_of_texts_is_read_and_its_bad_lines_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "one"}\n\n{"text": "two", "more": 1}\n')
    assert [row.text for row in texts_of(path)] == ["one", "two"]
    path.write_bytes(b'{"text": ""}\n{"no": 1}\nnonsense\n{"text": "\xff"}\n')
    with pytest.raises(BadRows) as caught:
        list(texts_of(path))
    assert [row.line for row in caught.value.rows] == [1, 2, 3, 4]
    path.write_text("")
    with pytest.raises(BadInput, match="holds no text"):
        list(texts_of(path))


def test_the_same_inputs_are_kept_once(store: Store) -> None:
    with store.write() as session:
        dataset = Dataset(name="d")
        session.add(dataset)
        session.flush()
        first = store_analysis(
            session,
            kind="diversity",
            inputs_sha256="x",
            config={},
            result={"a": 1},
            dataset_id=dataset.id,
        )
        second = store_analysis(
            session, kind="diversity", inputs_sha256="x", config={}, result={"a": 2}
        )
        coverage = store_analysis(
            session, kind="coverage", inputs_sha256="x", config={}, result={}, payload=b"points"
        )
        assert first.id == second.id
        assert second.result == {"a": 1}
        session.commit()
    with store.read() as session:
        assert find_analysis(session, "diversity", "y") is None
        of_dataset = analyses_of_dataset(session, "diversity", dataset.id)
        assert next(of_dataset).id == first.id
        assert not list(analyses_of_dataset(session, "coverage", dataset.id))
        assert [row.id for row in list_analyses(session, "coverage")] == [coverage.id]
        assert get_analysis(session, coverage.id).payload == b"points"
        with pytest.raises(NotFound, match="no analysis 99"):
            get_analysis(session, 99)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps({"text": f"a text about {s}"}) + "\n" for s in SUBJECTS))
    return path


def test_diversity_reports_every_field_and_role_of_every_corpus(
    sqlite_store: Store, mine: Path
) -> None:
    grown(sqlite_store)
    found = run_job(sqlite_store, "diversity", datasets=["demo"], texts=[str(mine)])
    demo, texts = found["corpora"]
    assert (demo["corpus"], demo["offline"], demo["groups"]) == ("demo", True, 7)
    assert {field: numbers["texts"] for field, numbers in demo["fields"].items()} == {
        "instruction": 14,
        "query": 14,
        "passage": 21,
    }
    assert set(demo["fields"]["passage"]["by_role"]) == {
        "positive",
        "instruction_negative",
        "query_negative",
    }
    assert -1 < demo["fields"]["query"]["aps"] < 1
    assert texts["fields"]["text"]["mean_words"] == 4.0
    assert texts["fields"]["text"]["ingf_3"] > 0
    sampled = run_job(sqlite_store, "diversity", datasets=["demo"], sample=10, repeats=3)
    assert sampled["corpora"][0]["fields"]["query"]["sampled"]["aps"]["sd"] > 0


@pytest.mark.long
def test_a_map_is_computed_once_and_takes_new_texts(
    sqlite_store: Store, inf: Any, mine: Path
) -> None:
    grown(sqlite_store)
    computed = run_job(sqlite_store, "coverage", datasets=["demo"])
    assert computed["fields"]["query"]["demo"]["occupied_share"] == 1.0
    assert computed["fields"]["query"]["demo"]["hull_share"] == 1.0
    again: Ran = inf("analyze", "coverage", "--dataset", "demo", "--json")
    assert again.json["known"] is True
    assert again.json["analysis_id"] == computed["analysis_id"]
    with sqlite_store.read() as session:
        points = points_frame(get_analysis(session, computed["analysis_id"]).payload or b"")
    assert len(points) == computed["points"] == 56
    assert set(points["role"]) == {"positive", "instruction_negative", "query_negative"}
    assert points[["x", "y"]].notna().all().all()
    placed = run_job(sqlite_store, "coverage", texts=[str(mine)], onto=computed["analysis_id"])
    with sqlite_store.read() as session:
        both = points_frame(get_analysis(session, placed["analysis_id"]).payload or b"")
    assert both["corpus"].value_counts().to_dict() == {"demo": 56, "mine": 8}
    assert both[["x", "y"]].iloc[:56].equals(points[["x", "y"]])
    fitted = run_job(sqlite_store, "coverage", datasets=["demo"], fit=20)
    assert (fitted["fitted"], fitted["points"]) == (20, 56)
    assert computed["fitted"] == computed["different"]
    assert placed["fitted"] == 0
    with pytest.raises(BadInput, match="was computed with the model sentence-transformers/"):
        run_job(
            sqlite_store, "coverage", texts=[str(mine)], model="other", onto=computed["analysis_id"]
        )
    with pytest.raises(BadInput, match="is no map"):
        diversity = run_job(sqlite_store, "diversity", texts=[str(mine)])
        run_job(sqlite_store, "coverage", texts=[str(mine)], onto=diversity["analysis_id"])


@pytest.mark.long
def test_the_command_prints_a_table_and_wants_a_corpus(sqlite_store: Store, inf: Any) -> None:
    grown(sqlite_store)
    measured = inf("analyze", "diversity", "--dataset", "demo", "--sample", 5)
    head, first = measured.out.splitlines()[:2]
    assert "APS, samples" in head and " 5 " in first[head.index("Sample") - 2 :]
    done = inf("analyze", "diversity", "--json")
    assert (done.code, "--dataset" in done.json["error"]) == (2, True)
    missing = inf("analyze", "coverage", "--dataset", "nope", "--json")
    assert missing.code == 1
    assert "no dataset 'nope'" in missing.json["error"]


def test_the_numbers_of_a_map_say_who_covers_whom() -> None:
    angles = np.radians(np.arange(360))
    circle = np.stack([np.cos(angles), np.sin(angles), np.zeros(360)], axis=1).astype(np.float32)
    texts = [f"text {n}" for n in range(360)]
    vectors = dict(zip(texts, circle, strict=True))
    places = dict(zip(texts, circle[:, :2], strict=True))
    whole = Corpus(
        "whole", "texts", [CorpusText("text", "text", text) for text in texts], shape=INF_IR
    )
    half = Corpus("half", "texts", whole.texts[:180], shape=INF_IR)
    found = coverage_numbers([whole, half], places, vectors, seed=0)
    assert found.fields["text"]["whole"].occupied_share == 1.0
    assert 0.4 < found.fields["text"]["half"].occupied_share < 0.6
    assert found.fields["text"]["half"].hull_share is None
    assert "no volume" in found.fields["text"]["half"].reason
    rows = {(row.corpus, row.by): row for row in found.covered}
    assert {row.size for row in rows.values()} == {90}  # half of the smaller one, of each
    assert rows["half", "whole"].share > 0.8
    assert 0.5 < rows["whole", "half"].share < 0.65
    assert rows["whole", "half"].share_halves > 0.9
    assert rows["whole", "half"].hull is None and "plane" in rows["whole", "half"].reason


def test_a_map_and_its_numbers_made_in_parts_are_those_made_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(1)
    vectors = generator.normal(size=(300, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = [f"{word} and {n}" for n in range(100) for word in ("bees", "tea", "the Honig")]
    rows = [CorpusText("text", ("one", "two")[n % 2], text) for n, text in enumerate(texts)]
    corpora = [
        Corpus("first", "texts", rows, shape=INF_IR),
        Corpus("second", "texts", rows[40:180], shape=INF_IR),
    ]
    by_text = ByText(texts, vectors)

    def made() -> tuple[Any, CoverageNumbers]:
        places = by_text.placed(vectors[:, :2])
        table = with_clusters(points_table(corpora, places, set(texts[:9])), seed=0)
        return read_table(to_bytes(table)), coverage_numbers(corpora, places, by_text, seed=0)

    table, numbers = made()
    for module in ("coverage", "clusters", "manifold"):
        monkeypatch.setattr(f"analysis.map.{module}.AT_ONCE", 150)
    in_parts, numbers_in_parts = made()
    assert in_parts.to_pylist() == table.to_pylist()
    assert numbers_in_parts.covered == numbers.covered
    for name, of in numbers_in_parts.fields["text"].items():
        whole = numbers.fields["text"][name]
        assert of.hull_share == pytest.approx(whole.hull_share, rel=1e-9)
        assert of.occupied_share == whole.occupied_share


@pytest.mark.long
def test_the_words_of_many_texts_take_little_memory() -> None:
    texts = [f"{'bees honey summer ' * 8}{number}" for number in range(20_000)]
    column = Column(pa.chunked_array([texts]))
    tracemalloc.start()
    names = cluster_names(column, np.zeros(len(texts), dtype=np.int64))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert names == ["bees, honey, summer"]
    assert peak < 500 * len(texts), "each text once, and none of its words"


def test_a_random_part_of_a_corpus_has_the_shares_of_its_halves() -> None:
    """At equal size: a random 200 of 900 texts are the corpus, whatever the size of either."""
    generator = np.random.default_rng(1)
    points = generator.normal(size=(900, 8)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    texts = [f"text {n}" for n in range(900)]
    vectors = dict(zip(texts, points, strict=True))
    places = dict(zip(texts, points[:, :2], strict=True))
    whole = Corpus(
        "whole", "texts", [CorpusText("text", "text", text) for text in texts], shape=INF_IR
    )
    part = Corpus("part", "texts", whole.texts[:200], shape=INF_IR)
    found = coverage_numbers([whole, part], places, vectors, seed=0)
    assert found.fields["text"]["part"].hull_share < 0.75  # what grows with size
    for row in found.covered:
        assert row.size == 100
        for name in ("share", "map", "hull"):
            assert getattr(row, name) == pytest.approx(getattr(row, f"{name}_halves"), abs=0.07), (
                name
            )


def test_each_source_of_a_dataset_is_a_corpus_of_its_own(store: Store) -> None:
    with store.write() as session:
        dataset = Dataset(name="logged", source="our logs")
        session.add(dataset)
        session.flush()
        for number, source in enumerate(["nq", "boolq", "nq", ""]):
            text = f"passage {number}"
            passage = Passage(
                dataset_id=dataset.id,
                external_id=f"p{number}",
                text=text,
                sha256=text_sha256(text),
                origin="seed",
            )
            session.add(passage)
            session.flush()
            session.add(
                Pair(
                    dataset_id=dataset.id,
                    external_id=f"q{number}",
                    query=f"query {number}",
                    passage_id=passage.id,
                    meta={"source": source} if source else {},
                )
            )
        session.commit()
        config = {"datasets": ["logged"], "sources": ["nq", "boolq", "our logs"]}
        found = {
            corpus.name: [row.text for row in corpus.texts if row.field == "query"]
            for corpus in load_corpora(session, config)
        }
        assert found == {
            "logged/nq": ["query 0", "query 2"],
            "logged/boolq": ["query 1"],
            "logged/our logs": ["query 3"],
        }
        session.add(Dataset(name="other", source="elsewhere"))
        session.flush()
        both = {"datasets": ["logged", "other"], "sources": ["nq"]}
        assert [corpus.name for corpus in load_corpora(session, both)] == ["logged/nq", "other"]
        with pytest.raises(BadInput, match="there are: boolq, nq, our logs"):
            load_corpora(session, {"datasets": ["logged"], "sources": ["quora"]})
