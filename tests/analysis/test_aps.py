import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from analysis.embed.embedding import encode
from analysis.text import diversity
from analysis.text.diversity import ApsSum, average_pairwise_similarity

vectors = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 12), st.integers(1, 5)),
    elements=st.floats(-10, 10, allow_subnormal=False).map(lambda x: round(x, 3)),
).filter(lambda array: bool((np.linalg.norm(array, axis=1) > 0).all()))


def all_pairs(array: np.ndarray) -> float:
    """The definition: a double loop over pairs."""
    cosines = [
        array[i] @ array[j] / np.linalg.norm(array[i]) / np.linalg.norm(array[j])
        for i in range(len(array))
        for j in range(i)
    ]
    return float(np.mean(cosines))


def test_the_published_value_of_three_vectors() -> None:
    # cosines 0, 0.7071, 0.7071: their mean is 0.4714045
    found = average_pairwise_similarity(np.array([[1, 0], [0, 1], [1, 1]]))
    assert found.value == pytest.approx(0.4714045, abs=1e-7)


@given(vectors)
def test_the_closed_form_is_the_double_loop(array: np.ndarray) -> None:
    assert average_pairwise_similarity(array).value == pytest.approx(all_pairs(array), abs=1e-12)


@given(vectors, st.randoms(use_true_random=False))
def test_order_length_and_blocks_do_not_matter(array: np.ndarray, rng) -> None:
    order = list(range(len(array)))
    rng.shuffle(order)
    expected = pytest.approx(average_pairwise_similarity(array).value, abs=1e-12)
    assert average_pairwise_similarity(array[order] * 7.5).value == expected
    assert average_pairwise_similarity(row[None, :] for row in array).value == expected


def test_equal_texts_have_a_similarity_of_one_and_opposite_ones_of_minus_one() -> None:
    assert average_pairwise_similarity(np.ones((9, 4))).value == pytest.approx(1.0)
    assert average_pairwise_similarity(np.array([[1.0], [-1.0]])).value == -1.0


def test_one_text_no_text_and_a_zero_vector_are_undefined() -> None:
    assert average_pairwise_similarity(np.zeros((0, 3))).reason == "fewer than two texts"
    assert average_pairwise_similarity(np.ones((1, 3))).value is None
    assert "length zero" in str(average_pairwise_similarity(np.array([[1.0], [0.0]])).reason)


def test_a_stream_in_blocks_is_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diversity, "BLOCK", 3)
    array = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
    total = ApsSum()
    for start in range(0, 20, 7):
        total.add(array[start : start + 7])
    assert total.measure().value == pytest.approx(all_pairs(array.astype(float)), abs=1e-12)


def test_aps_of_real_vectors_is_the_mean_of_the_cosine_matrix() -> None:
    array = encode(["A cat sat.", "Dogs run fast.", "The cat is sitting.", "Stocks fell today."])
    cosines = array @ array.T
    assert average_pairwise_similarity(array).value == pytest.approx(
        float(cosines[np.triu_indices(4, 1)].mean()), abs=1e-6
    )
