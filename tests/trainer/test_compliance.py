"""SICR, WISE and paraphrase stability, by hand."""

from math import sqrt
from pathlib import Path

import pytest

from db.errors import BadInput
from db.shape import INF_IR
from trainer.data.groups import Group
from trainer.evaluate.benchmarks import held_out_benchmark
from trainer.evaluate.following import read_paraphrases, stability_by_group
from trainer.evaluate.measures.compliance import (
    Place,
    compliance,
    document_sicr,
    document_wise,
    place_of,
)
from trainer.evaluate.scoring import score_bm25
from trainer.settings.template import Template


@pytest.mark.parametrize(
    ("ranks", "scores", "value"),
    [
        ((3, 1, 5), (0.5, 0.6, 0.4), 1.0),
        ((3, 3, 5), (0.5, 0.6, 0.4), 0.0),  # the rank must improve
        ((3, 1, 3), (0.5, 0.6, 0.4), 0.0),  # the reversal must worsen it
        ((3, 1, 5), (0.5, 0.5, 0.4), 0.0),  # and so must the scores
        ((3, 1, 5), (0.5, 0.6, 0.5), 0.0),
        ((1, 1, 2), (0.5, 0.5, 0.4), 1.0),  # at rank 1 it may stay, with an equal score
        ((1, 1, 2), (0.5, 0.4, 0.3), 0.0),
        ((1, 1, 1), (0.5, 0.6, 0.4), 0.0),
        ((1, 2, 3), (0.5, 0.6, 0.4), 0.0),
    ],
)
def test_sicr_is_all_or_nothing(
    ranks: tuple[int, ...], scores: tuple[float, ...], value: float
) -> None:
    o, i, v = (Place(rank, score) for rank, score in zip(ranks, scores, strict=True))
    assert document_sicr(o, i, v) == value


@pytest.mark.parametrize(
    ("ranks", "applies", "value"),
    [
        ((3, 1, 5), 4, 1.0),  # first, from within the documents it applies to
        ((4, 1, 5), 4, 1 - sqrt(3) / 20),  # from beyond them
        ((9, 4, 30), 4, (1 - sqrt(5) / 20) / 2),
        ((4, 4, 5), 4, 1 / 2),  # it stays: the reversal alone moves
        ((20, 11, 21), 4, (1 - 3 / 20) / sqrt(11)),
        ((21, 1, 30), 4, 0.01),
        ((5, 8, 2), 4, -1.0),  # the instruction worsens it and the reversal improves it
        ((2, 8, 8), 4, -6 / 8),  # r_o <= r_i: (2 − 8)/8
        ((4, 4, 4), 4, 0.0),  # an ignored instruction
        ((4, 2, 1), 4, -3 / 4),  # (r_v − r_o)/r_o
        ((4, 2, 4), 4, 0.0),
    ],
)
def test_wise_by_hand(ranks: tuple[int, int, int], applies: int, value: float) -> None:
    assert document_wise(*ranks, applies) == pytest.approx(value)


def test_means_are_over_documents_and_a_missing_document_is_behind_all() -> None:
    """a: 2 → 1 → 2 (of one document: missing) is SICR 0; b: 1 → 2 → 1."""
    original, instructed, reverse = {"b": 2.0, "a": 1.0}, {"a": 3.0, "b": 1.0}, {"b": 2.0}
    assert place_of("a", reverse) == Place(2, float("-inf"))
    found = compliance(["a", "b"], original, instructed, reverse, applies=2)
    # a: r_v = r_o → (2 − 2)/2 = 0; b: r_o ≤ r_i → (1 − 2)/2
    assert found == {"sicr": 0.0, "wise": pytest.approx((0 - 0.5) / 2)}


GROUPS = [
    Group(
        f"{n}",
        (
            f"word{n} shared other{n}",
            f"first{n}",
            f"first{n} first{n} word{n} shared",
            f"unlike{n} shared",
            f"second{n}",
            f"second{n} second{n} word{n}",
            f"unlike{n} first{n}",
        ),
        shape=INF_IR,
    )
    for n in range(8)
]


def test_held_out_groups_have_sicr_and_wise_with_q_plus_alone_as_the_original() -> None:
    found = score_bm25(Template(), held_out_benchmark("words", GROUPS))
    assert set(found.per_query["g000000"]) >= {"sicr", "wise", "strict", "p-mrr"}
    assert found.metrics["sicr"] == pytest.approx(
        sum(found.per_query[f"g{n:06d}"]["sicr"] for n in range(8)) / 8
    )
    # P+ ranks first under I+ and falls behind P1- under I-
    assert found.metrics["instruction-flip"] == 1 and found.metrics["wise"] == 1
    assert "paraphrase-stability" not in found.metrics


def test_a_group_without_a_paraphrase_is_not_counted_and_ties_are_not_stable() -> None:
    benchmark = held_out_benchmark("words", GROUPS)
    same = {"first0": ["first0"], "first1": ["second1"], "second2": ["nothing"]}
    table = {f"first{n} ": [3.0, 2.0, 1.0] for n in range(8)} | {
        "second1 ": [1.0, 2.0, 3.0],
        "nothing ": [1.0, 1.0, 0.0],
        "second2 ": [1.0, 1.0, 0.0],
    }

    def score(texts: object, wanted: object) -> list[list[float]]:
        return [
            next(values for start, values in table.items() if text.startswith(start))
            for text in texts  # type: ignore[attr-defined]
        ]

    found = stability_by_group(benchmark, Template(), score, same)
    values = {group: of["paraphrase-stability"] for group, of in found.items()}
    assert values == {"g000000": 1.0, "g000001": 0.0, "g000002": 0.0}


def test_paraphrase_stability_is_the_mean_over_the_groups_that_have_one() -> None:
    benchmark = held_out_benchmark("words", GROUPS)
    found = score_bm25(Template(), benchmark, paraphrases={"first0": ["first0"]})
    assert found.metrics["paraphrase-stability"] in (0.0, 1.0)
    assert [name for name, of in found.per_query.items() if "paraphrase-stability" in of] == [
        "g000000"
    ]


def test_a_file_of_paraphrases_is_read_and_a_bad_line_named(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text(
        '{"instruction": "a", "paraphrase": "b"}\n{"instruction": "a", "paraphrase": "c"}\n'
    )
    assert read_paraphrases(file) == {"a": ["b", "c"]}
    file.write_text('{"instruction": "a"}\n')
    with pytest.raises(BadInput, match="line 1"):
        read_paraphrases(file)
