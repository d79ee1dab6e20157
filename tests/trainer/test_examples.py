"""Which held-out groups show what a training changed: the rule, its ties and its empty cases."""

import numpy as np
import pytest

from db.shape import INF_IR
from trainer.data.groups import Group
from trainer.report.examples import MAX_EXAMPLES, choose_examples, first_of

P, N = "P+", "P1-"


def group(name: str, length: int = 10, *, same: bool = False) -> Group:
    """Texts in the order of a release: Q+, I+, P+, Q-, I-, P1-, P2-; `length` is that of P+."""
    passage = "p" * length
    return Group(name, ("q", "i", passage, "Q", "I", passage if same else "n", "m"), shape=INF_IR)


def scores(under_positive: str, under_negative: str) -> np.ndarray:
    """A matrix in which these passages are first for (I+,Q+) and (I-,Q+); "" is a tie."""
    found = np.zeros((3, 3))
    for row, first in ((0, under_positive), (1, under_negative)):
        found[row, 0], found[row, 1] = float(first == P), float(first == N)
    return found


FOLLOWS, FIXED, REVERSED = scores(P, N), scores(P, P), scores(N, P)


def test_which_passage_is_first_is_read_from_the_rows_of_both_instructions() -> None:
    assert first_of(np.array([[0.3, 0.2, 0.9], [0.1, 0.2, 0.9], [0.0, 0.0, 0.0]])) == (P, N)
    assert first_of(np.array([[0.2, 0.2, 0.0], [0.3, 0.1, 0.0], [0.9, 0.0, 0.0]])) == ("", P)


def test_a_score_that_is_not_a_number_ranks_nothing_first() -> None:
    assert first_of(np.full((3, 3), np.nan)) == ("", "")


def test_it_works_where_only_the_trained_model_changes_its_first_passage() -> None:
    groups = [group("both"), group("gained"), group("lost"), group("reversed before")]
    found = choose_examples(
        groups, [FOLLOWS, FIXED, FOLLOWS, REVERSED], [FOLLOWS, FOLLOWS, FIXED, FOLLOWS]
    )
    assert [each["group"] for each in found["works"]["examples"]] == ["gained"]
    assert [each["group"] for each in found["fails"]["examples"]] == ["lost"]
    assert (found["groups"], found["followed_before"], found["followed"]) == (4, 2, 3)
    (example,) = found["works"]["examples"]
    assert example["before"] == (P, P) and example["after"] == (P, N)
    assert example["texts"] == {"Q+": "q", "I+": "i", "I-": "I", P: "p" * 10, N: "n"}


def test_what_was_lost_is_counted_and_shown_next_to_what_was_gained() -> None:
    groups = [group("both"), group("gained"), group("lost"), group("reversed before"), group("no")]
    before = [FOLLOWS, FIXED, FOLLOWS, REVERSED, FIXED]
    found = choose_examples(groups, before, [FOLLOWS, FOLLOWS, FIXED, FOLLOWS, REVERSED])
    assert found["gained"] == 2 and found["lost"]["count"] == 1
    (example,) = found["lost"]["examples"]
    assert example["group"] == "lost" and example["before"] == (P, N) != example["after"]
    assert found["followed"] - found["followed_before"] == found["gained"] - 1
    assert [each["group"] for each in found["gains"]["examples"]] == ["gained", "reversed before"]
    assert [each["group"] for each in found["unchanged"]["examples"]] == ["both", "no"]
    assert choose_examples(groups[:2], before[:2], before[:2])["lost"] == {
        "count": 0,
        "examples": [],
    }


def test_a_base_model_that_ranks_two_passages_equal_ranks_neither_first() -> None:
    """No order under either instruction is no unchanged order, and a tie is no success."""
    groups = [group("tied base"), group("tied model")]
    found = choose_examples(groups, [scores("", ""), FIXED], [FOLLOWS, scores(P, "")])
    assert found["works"] == {"count": 0, "examples": []}
    assert [each["group"] for each in found["fails"]["examples"]] == ["tied model"]


def test_the_shortest_is_first_and_equal_lengths_keep_the_order_of_the_release() -> None:
    groups = [group("b", 5), group("a", 5), group("long", 9), group("short", 4)]
    found = choose_examples(groups, [FIXED] * 4, [FOLLOWS] * 4)
    names = [each["group"] for each in found["works"]["examples"]]
    assert names == ["short", "b", "a", "long"]


def test_only_failures_give_no_success_and_only_successes_no_failure() -> None:
    groups = [group("a"), group("b")]
    failed = choose_examples(groups, [FIXED] * 2, [REVERSED] * 2)
    assert (failed["works"]["count"], failed["fails"]["count"]) == (0, 2)
    worked = choose_examples(groups, [FIXED] * 2, [FOLLOWS] * 2)
    assert (worked["works"]["count"], worked["fails"]["count"]) == (2, 0)


def test_a_group_whose_two_passages_are_one_text_is_not_compared() -> None:
    found = choose_examples([group("same", same=True)], [FIXED], [FIXED])
    assert (found["groups"], found["fails"]["count"]) == (0, 0)
    assert choose_examples([], [], [])["groups"] == 0


def test_all_are_counted_and_a_few_are_kept() -> None:
    many = [group(str(number)) for number in range(MAX_EXAMPLES + 3)]
    found = choose_examples(many, [FIXED] * len(many), [FOLLOWS] * len(many))["works"]
    assert found["count"] == len(many) and len(found["examples"]) == MAX_EXAMPLES


def test_scores_of_other_groups_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        choose_examples([group("a"), group("b")], [FIXED], [FIXED])
