import json
from pathlib import Path

import bm25s
import numpy as np
import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from analysis.text.bm25 import LANGUAGES, Bm25, Bm25InParts, tokens_of
from db.errors import BadInput

TEXTS = ["Hamlet was written by Shakespeare", "Bees make honey in summer", "A honey cake recipe"]


def test_the_text_that_shares_the_words_comes_first() -> None:
    places, scores = Bm25(TEXTS).top(["who wrote Hamlet by Shakespeare", "honey cake"], 2)
    assert places[0, 0] == 0
    assert places[1].tolist() == [2, 1]
    assert scores[1, 0] > scores[1, 1] > 0


def test_asking_for_more_than_there_is_gives_what_there_is() -> None:
    places, scores = Bm25(TEXTS).top(["honey"], 10)
    assert places.shape == scores.shape == (1, 3)


def test_a_query_without_known_words_gets_scores_of_zero() -> None:
    _, scores = Bm25(TEXTS).top(["zzz", ""], 3)
    assert (scores == 0).all()


def test_texts_of_stop_words_and_no_texts_do_not_break_it() -> None:
    assert Bm25(["the", "a"]).top(["the"], 5)[0].shape == (1, 2)
    assert Bm25([]).top(["the"], 5)[0].shape == (1, 0)
    assert Bm25(TEXTS).top([], 2)[0].shape == (0, 2)


def test_a_language_without_a_stemmer_keeps_words_as_they_are() -> None:
    assert tokens_of(["The bridges of it"], "none") == [["the", "bridges", "of", "it"]]
    assert "no stemmer" in Bm25(TEXTS, "none").convention


WORDS = st.sampled_from(["ape", "bee", "bee", "cat", "dog", "the", "elk"])
SOME_TEXTS = st.lists(WORDS).map(" ".join)


@given(st.lists(st.lists(SOME_TEXTS, max_size=5), max_size=4), st.lists(SOME_TEXTS, max_size=4))
def test_scores_in_parts_are_those_of_bm25s_over_all_texts(
    parts: list[list[str]], queries: list[str]
) -> None:
    index = Bm25InParts(queries)
    for part in parts:
        index.count(part)
    found = [np.concatenate(of) for of in zip(*map(index.scores, parts), strict=True)]
    whole = Bm25([text for part in parts for text in part])
    for query, scores in zip(queries, found, strict=False):
        assert scores.dtype == np.float32 and np.array_equal(scores, whole.scores(query))
    assert len(found) == (len(queries) if parts else 0)


def by_bm25s(texts: list[str], language: str) -> list[list[str]]:
    return bm25s.tokenize(
        texts,
        stopwords=language,
        stemmer=Stemmer.Stemmer(language),
        return_ids=False,
        show_progress=False,
    )


def test_tokens_are_those_of_bm25s_with_its_stemmer() -> None:
    texts = ["The bridges were being widened", "Röntgen , of Germany , won the prizes", "", "a I"]
    assert tokens_of(texts) == by_bm25s(texts, "english")
    assert tokens_of(["bridges widened"]) == [["bridg", "widen"]]
    assert tokens_of(["die Brücken der Stadt"], "de") == by_bm25s(
        ["die Brücken der Stadt"], "german"
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_its_stop_words_and_stemmer(language: str) -> None:
    assert len(tokens_of(["Lorem ipsum 42"], language)[0]) == 3


def test_a_language_without_a_stemmer_is_refused_and_the_convention_is_stated() -> None:
    with pytest.raises(BadInput, match="'xx'"):
        Bm25(TEXTS, "xx")
    assert "language de" in Bm25(TEXTS, "de").convention


def test_another_form_of_a_word_is_found() -> None:
    places, scores = Bm25(["a bridge of stone", "a house of wood"]).top(["stones for bridges"], 1)
    assert places[0, 0] == 0 and scores[0, 0] > 0


@pytest.mark.long
def test_on_real_questions_stemming_finds_more(real_data: Path) -> None:
    folder = real_data / "google_queries"
    passages = [json.loads(line) for line in (folder / "passages.jsonl").read_text().splitlines()]
    pairs = [json.loads(line) for line in (folder / "pairs.jsonl").read_text().splitlines()]
    texts = [passage["text"] for passage in passages]
    questions = [pair["query"] for pair in pairs if pair["source"] == pairs[0]["source"]]
    assert tokens_of(texts) == by_bm25s(texts, "english")
    ours, _ = Bm25(texts).top(questions, 10)
    index = bm25s.BM25()
    index.index(
        bm25s.tokenize(texts, stopwords="en", return_ids=False, show_progress=False),
        show_progress=False,
    )
    unstemmed, _ = index.retrieve(
        bm25s.tokenize(questions, stopwords="en", return_ids=False, show_progress=False),
        k=10,
        show_progress=False,
    )
    place = {passage["passage_id"]: number for number, passage in enumerate(passages)}
    right = [place[pair["passage_id"]] for pair in pairs if pair["source"] == pairs[0]["source"]]
    wanted = np.array(right)[:, None]
    with_stems, without = (
        float((found == wanted).any(axis=1).mean()) for found in (ours, unstemmed)
    )
    assert with_stems > without + 0.01


def test_the_best_texts_for_a_query_have_ties_by_place() -> None:
    """Also where a tie straddles the last of them, and among texts without a word of the query."""
    texts = ["bees hum", "honey cake", "bees hum", "tea", "bees hum", "honey honey", "bees hum"]
    index = Bm25(texts)
    assert index.best("bees", 2) == [0, 2]
    assert index.best("bees", 5) == [0, 2, 4, 6, 1]
    assert index.best("honey", 3)[:2] in ([1, 5], [5, 1]) and index.best("honey", 3)[2] == 0
    assert index.best("zzz", 3) == [0, 1, 2]
    assert index.best("bees", 99) == [0, 2, 4, 6, 1, 3, 5] and index.best("bees", 0) == []
    assert Bm25([]).best("bees", 3) == []


def test_the_best_texts_are_those_of_top_where_no_scores_are_equal() -> None:
    texts = [" ".join(["honey"] * number + ["tea"] * (9 - number)) for number in range(1, 9)]
    index = Bm25(texts)
    places, scores = index.top(["honey"], 5)
    assert len(set(scores[0].tolist())) == 5
    assert index.best("honey", 5) == places[0].tolist()
