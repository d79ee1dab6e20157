import numpy as np
import pytest

from analysis.files.corpora import Corpus
from analysis.found.texts import CorpusDiversity, CorpusRow, FieldNumbers
from analysis.text.diversity import (
    Sampling,
    average_pairwise_similarity,
    describe_corpus,
    describe_halves,
    describe_sample,
    describe_texts,
    sample_sizes,
)
from analysis.text.diversity_tables import number_rows, published_rows
from db.corpus.texts import CorpusText
from db.shape import INF_IR

WORDS = ["bee", "river", "violin", "bread", "comet"]


def vectors(texts: list[str]) -> np.ndarray:
    """A text's vector: how often each word stands in it."""
    return np.array([[text.count(word) for word in WORDS] for text in texts], dtype=float)


def corpus(name: str, queries: list[str], passages: list[str] = ()) -> Corpus:  # type: ignore[assignment]
    rows = [CorpusText("query", "positive", text) for text in queries]
    return Corpus(
        name, "texts", rows + [CorpusText("passage", "positive", t) for t in passages], shape=INF_IR
    )


def test_the_numbers_of_texts_worked_by_hand() -> None:
    found = describe_texts(["bee river", "bee river", "bee bread comet"], vectors)
    assert (found.texts, found.different) == (3, 2)
    assert found.mean_words == 7 / 3
    # cosines: 1 and twice 1/(√2·√3)
    assert found.aps == pytest.approx((1 + 2 / 6**0.5) / 3)
    # 2-grams: "bee river" 2, "bee bread" 1, "bread comet" 1
    assert found.ingf_2 == pytest.approx(3 / (1 / 3) ** 0.5)
    assert found.ingf_3 is None
    assert set(found.reason) == {"ingf_3"}


def test_a_field_is_the_whole_of_its_roles() -> None:
    rows = [CorpusText("query", "positive", "bee"), CorpusText("query", "query_negative", "river")]
    found = describe_corpus(Corpus("c", "dataset", rows, shape=INF_IR), vectors).fields["query"]
    assert found.texts == 2
    assert found.aps == 0.0
    assert found.by_role["positive"].aps is None
    assert found.sampled is None


def test_several_corpora_are_sampled_at_half_the_size_of_the_smallest() -> None:
    corpora = [corpus("a", ["bee"] * 5, ["river"]), corpus("b", ["bee"] * 3)]
    assert sample_sizes(corpora, None) == {"query": 1, "passage": None}  # half of 3
    assert sample_sizes(corpora, 2) == {"query": 2, "passage": 2}
    assert sample_sizes(corpora[1:], None) == {"query": None}


def test_samples_have_a_mean_and_a_spread_and_a_seed() -> None:
    texts = [f"{WORDS[n % 5]} {WORDS[n % 3]}" for n in range(40)]
    found = describe_sample(texts, vectors, size=20, repeats=6, seed=1)
    assert found.aps.sd > 0
    whole = average_pairwise_similarity(vectors(texts)).value
    assert found.aps.mean == pytest.approx(whole, abs=0.05)
    assert found == describe_sample(texts, vectors, size=20, repeats=6, seed=1)
    assert found != describe_sample(texts, vectors, size=20, repeats=6, seed=2)


@pytest.mark.parametrize(("size", "repeats"), [(40, 3), (20, 1)])
def test_one_draw_has_no_spread_rather_than_one_of_zero(size: int, repeats: int) -> None:
    texts = [f"{WORDS[n % 5]} {WORDS[n % 3]}" for n in range(40)]
    found = describe_sample(texts, vectors, size=size, repeats=repeats, seed=0)
    assert (found.aps.sd, found.aps.draws) == (None, 1)
    whole = FieldNumbers(**describe_texts(texts, vectors).as_json(), sampled=found)
    (row,) = number_rows([CorpusDiversity(corpus="one", offline=False, fields={"query": whole})])
    assert row["Draws"] == "one draw" and row["APS ±"] is None


def test_a_sample_larger_than_the_corpus_is_undefined() -> None:
    found = describe_sample(["bee"], vectors, size=2, repeats=2, seed=0)
    assert found.aps is None
    assert found.reason["aps"] == "1 texts are fewer than the sample of 2"
    found = describe_corpus(corpus("c", ["bee"]), vectors, Sampling({"query": 2}, 2, 0))
    assert found.fields["query"].sampled.ingf_2 is None


def test_halves_of_one_corpus_differ_by_little_and_those_of_a_mixed_one_by_chance_alone() -> None:
    texts = [f"word{n % 7} word{n % 11} word{n % 13}" for n in range(60)]
    found = describe_halves(texts, vectors, size=30, repeats=4, seed=0)
    assert found.size == 30  # two disjoint halves of 60
    assert 0 < found.ingf_2 < describe_texts(texts, vectors).ingf_2
    assert found == describe_halves(texts, vectors, size=30, repeats=4, seed=0)
    assert describe_halves(["a b c"], vectors, size=5, repeats=2, seed=0).aps is None


def test_halves_have_the_size_of_the_samples_they_are_held_against() -> None:
    """INGF grows with size: halves of 30 beside samples of 40 would differ by less."""
    texts = [f"word{n % 7} word{n % 11} word{n % 13}" for n in range(60)]
    found = describe_halves(texts, vectors, size=40, repeats=4, seed=0)
    assert found.ingf_2 is None
    assert found.reason == "60 texts are fewer than two samples of 40"
    texts = [f"{WORDS[n % 5]} {WORDS[n % 3]}" for n in range(60)]
    corpora = [corpus("a", texts), corpus("b", texts[:20])]
    sampling = Sampling(sample_sizes(corpora, None), 3, 0)
    for each in corpora:
        numbers = describe_corpus(each, vectors, sampling).fields["query"]
        assert numbers.sampled.size == numbers.halves.size == 10
        row, *_ = number_rows([describe_corpus(each, vectors, sampling)])
        assert row["APS, halves differ by"] == numbers.halves.aps


def named(name: str) -> CorpusRow:
    return CorpusRow(corpus=name, offline=False)


def test_the_papers_row_stands_beside_a_corpus_named_after_it() -> None:
    rows = published_rows([named("followir (2)"), named("demo")])
    assert rows == [
        {
            "corpus": "FollowIR (paper)",
            "groups": None,
            "instructions": 104,
            "words per instruction": 43.51,
            "queries": 104,
            "words per query": 11.44,
            "passages": 98_300,
            "words per passage": 122.69,
        }
    ]
    assert published_rows([named("demo")]) == []
