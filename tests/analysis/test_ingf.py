import math
import statistics
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.text import ingf
from analysis.text.ingf import clean, inverse_ngram_frequency


def literal(texts: list[str], n: int) -> float | None:
    """The definition, word for word."""
    counts: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        words = text.replace("'", "").replace(".", "").replace(",", "").lower().split(" ")
        counts.update(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
    if len(counts) < 2 or len(set(counts.values())) == 1:
        return None
    return len(counts) / statistics.stdev(counts.values())


def test_ingf_worked_by_hand() -> None:
    # bigrams: "a b" 2, "b c" 1, "b d" 1: U = 3, mean 4/3, squares (4/9 + 1/9 + 1/9)/2 = 1/3
    two, three = inverse_ngram_frequency(["a b c", "A, b d."])
    assert two.value == pytest.approx(3 / math.sqrt(1 / 3))
    # trigrams "a b c" and "a b d", each once
    assert three.value is None
    assert "standard deviation is zero" in str(three.reason)


def test_the_cleaning_is_that_of_dqi() -> None:
    assert clean("Don't, U.S. café") == "dont us café"


def test_ngrams_do_not_cross_texts_and_two_spaces_make_an_empty_word() -> None:
    assert inverse_ngram_frequency(["a b", "b a", "a b"])[0].value == pytest.approx(
        2 / statistics.stdev([2, 1])
    )
    texts = ["a  b", "a  b", "a b"]
    assert inverse_ngram_frequency(texts)[0].value == pytest.approx(literal(texts, 2))


def test_too_little_to_count_is_undefined_with_the_reason() -> None:
    for texts in ([], [""], ["one"], ["one two"], ["one two", "one two"]):
        two, three = inverse_ngram_frequency(texts)
        assert two.value is None
        assert two.reason == "fewer than two different 2-grams"
        assert three.reason == "fewer than two different 3-grams"


corpora = st.lists(st.text("ab c.'é", max_size=12), max_size=12)


@given(corpora)
def test_ingf_is_the_definition_word_for_word(texts: list[str]) -> None:
    for n, found in zip((2, 3), inverse_ngram_frequency(texts), strict=True):
        expected = literal(texts, n)
        assert found.value == (None if expected is None else pytest.approx(expected, rel=1e-12))


@given(corpora, st.randoms(use_true_random=False))
def test_the_order_of_the_texts_does_not_matter(texts: list[str], rng) -> None:
    before = inverse_ngram_frequency(texts)
    rng.shuffle(texts)
    after = inverse_ngram_frequency(texts)
    assert [one.value for one in before] == pytest.approx([one.value for one in after])


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"the cat {n % 3} sat on the mat {n % 5}" for n in range(50)]
    whole = inverse_ngram_frequency(texts)
    monkeypatch.setattr(ingf, "TEXTS_AT_ONCE", 7)
    assert inverse_ngram_frequency(iter(texts)) == whole


def test_many_words_are_still_counted_exactly() -> None:
    # 3 million words: a trigram does not fit into 64 bits as words³, keys are ranked in between
    texts = [f"w{n} w{n + 1} w{n + 2}" for n in range(0, 30)] + ["w1 w2 w3"]
    tokens, lengths = ingf.number_tokens(texts)
    assert tokens.max() < 40
    found = ingf.inverse_frequency_of_tokens(tokens + 3_000_000, lengths)
    assert found[1].value == pytest.approx(literal(texts, 3))
