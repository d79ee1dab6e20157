from analysis.text.bm25 import Bm25

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
