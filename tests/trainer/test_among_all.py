"""What ranks all held-out passages: by hand, and against loops over a matrix of scores."""

import math
from typing import Any

import numpy as np
import pytest

from db.shape import INF_IR
from trainer.data.groups import Group
from trainer.evaluate.benchmarks import held_out_benchmark
from trainer.evaluate.following import bm25_following
from trainer.evaluate.intervals import about_questions, following_means
from trainer.evaluate.scoring import score_model
from trainer.settings.template import Template

COUNT = 12
JOINED = Template("{instruction}|{query}")


class Drawn:
    """A vector for every text, drawn once; few values, so that equal scores are frequent."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.of: dict[str, np.ndarray] = {}

    def encode_query(self, texts: list[str], **_: Any) -> np.ndarray:
        for text in texts:
            if text not in self.of:
                self.of[text] = self.draw.integers(0, 3, 4).astype(np.float32)
        return np.stack([self.of[text] for text in texts])

    encode_document = encode_query


def groups() -> list[Group]:
    signs = ("Q+", "I+", "P+", "Q-", "I-", "P1-", "P2-")
    return [
        Group(str(n), tuple(f"{sign} of {n}" for sign in signs), shape=INF_IR) for n in range(COUNT)
    ]


def by_loops(model: Drawn, group: Group, passages: list[str]) -> float:
    firsts = 0
    for instruction, query, own in group.triplets():
        asked = model.of[f"{instruction}|{query}"]
        scores = {passage: float(asked @ model.of[passage]) for passage in passages}
        firsts += all(scores[own] > of for name, of in scores.items() if name != own)
    return firsts / 3


@pytest.mark.parametrize("seed", range(4))
def test_right_first_is_what_a_loop_over_all_passages_finds(seed: int) -> None:
    model: Any = Drawn(seed)
    benchmark = held_out_benchmark("drawn", groups())
    scores = score_model(model, JOINED, benchmark)
    passages = [group.text(sign) for group in groups() for sign in ("P+", "P1-", "P2-")]
    wanted = [by_loops(model, group, passages) for group in groups()]
    found = [scores.per_query[key]["right-first"] for key in benchmark.groups]
    assert found == pytest.approx(wanted)
    assert scores.metrics["right-first"] == pytest.approx(np.mean(wanted))


class Words:
    """Counts of words; documents too."""

    def __init__(self, words: list[str]) -> None:
        self.places = {word: place for place, word in enumerate(words)}

    def encode_query(self, texts: list[str], **_: Any) -> np.ndarray:
        rows = np.zeros((len(texts), len(self.places)), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.replace("|", " ").split():
                row[self.places[word]] += 1
        return rows

    encode_document = encode_query


def word_groups() -> list[Group]:
    """P+ and P1- hold the word of Q+, P2- that of Q-; every passage its instruction's."""
    return [
        Group(
            str(n),
            (
                *(f"q{n}", f"i{n}", f"q{n} i{n}"),
                *(f"r{n}", f"j{n}", f"q{n} j{n}", f"r{n} i{n}"),
            ),
            shape=INF_IR,
        )
        for n in range(5)
    ]


def test_by_hand_a_perfect_reader_is_first_and_both_answers_of_a_query_count() -> None:
    words = Words([f"{letter}{n}" for letter in "qirj" for n in range(5)])
    scores = score_model(words, JOINED, held_out_benchmark("words", word_groups()))  # type: ignore[arg-type]
    assert scores.metrics["right-first"] == 1
    assert scores.metrics["plain-ndcg@10"] == 1, "P+ and P1- both answer Q+"
    # the query alone cannot tell P+ from P1-; of r{n} there is one passage
    assert scores.metrics["query-alone:right-first"] == pytest.approx(1 / 3)
    # i{n} is in two passages of every group, j{n} in one
    assert scores.metrics["instruction-alone:right-first"] == pytest.approx(1 / 3)
    assert "query-alone:plain-ndcg@10" not in scores.metrics


def test_one_of_two_answers_in_front_of_ten_others_has_its_part_of_the_gain() -> None:
    class Blind(Words):
        """Sees P1- of the first group nowhere."""

        def encode_document(self, texts: list[str], **_: Any) -> np.ndarray:
            rows = self.encode_query(texts)
            rows[[text == "q0 j0" for text in texts]] = -1
            return rows

    words = Blind([f"{letter}{n}" for letter in "qirj" for n in range(5)])
    benchmark = held_out_benchmark("words", word_groups())
    scores = score_model(words, JOINED, benchmark)  # type: ignore[arg-type]
    one_found = pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert scores.per_query[next(iter(benchmark.groups))]["plain-ndcg@10"] == one_found


def test_bm25_has_them_too_and_they_have_intervals() -> None:
    benchmark = held_out_benchmark("words", word_groups())
    found = bm25_following(benchmark, Template())
    assert found["right-first"] == 1 and found["plain-ndcg@10"] == 1
    words = Words([f"{letter}{n}" for letter in "qirj" for n in range(5)])
    scores = score_model(words, JOINED, benchmark)  # type: ignore[arg-type]
    means = following_means(scores.per_query, about_questions(benchmark))
    assert means["right-first"].value == 1 and means["plain-ndcg@10"].value == 1
