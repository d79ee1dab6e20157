import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.text.near_duplicates import jaccard, near_duplicate_keys, normal_form

SONG = (
    "The fourteenth season of the drama Grey's Anatomy was ordered on February 10, 2017, by the "
    "network and premiered on September 28, 2017, with a special two-hour episode."
)


def test_case_spacing_and_tokenisation_make_no_other_text() -> None:
    assert near_duplicate_keys([SONG, SONG.replace("'s", " 's").upper(), "Bees fly."]) == [0, 0, 2]


def test_a_changed_word_in_a_long_text_is_a_near_duplicate_and_another_topic_is_not() -> None:
    other = SONG.replace("special", "glorious")
    assert near_duplicate_keys([SONG, other, "A text about bees, honey and the summer."])[:2] == [
        0,
        0,
    ]
    assert len(set(near_duplicate_keys([SONG, "A text about bees and honey."]))) == 2


def test_jaccard_of_shingles_worked_by_hand() -> None:
    # abcdef: abcde, bcdef; abcdeg: abcde, bcdeg: one of three is shared
    assert jaccard("abcdef", "abcdeg") == 1 / 3
    assert jaccard("abc", "abc") == 1.0


def test_near_duplication_is_closed_transitively() -> None:
    words = [f"word{number}" for number in range(60)]
    chain = [" ".join(words[start : start + 50]) for start in (0, 4, 8, 10)]
    assert jaccard(normal_form(chain[0]), normal_form(chain[3])) < 0.7
    assert near_duplicate_keys(chain) == [0, 0, 0, 0]


def test_texts_without_letters_or_short_ones_are_themselves() -> None:
    assert near_duplicate_keys(["?!", "?!", "$$", "a", "A", ""]) == [0, 0, 2, 3, 3, 5]
    assert near_duplicate_keys([]) == []


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=12), st.randoms(use_true_random=False))
def test_the_clusters_do_not_depend_on_the_order(texts: list[str], rng: random.Random) -> None:
    order = list(range(len(texts)))
    rng.shuffle(order)
    keys = near_duplicate_keys(texts)
    shuffled = near_duplicate_keys([texts[place] for place in order])
    for a in range(len(order)):
        for b in range(len(order)):
            assert (shuffled[a] == shuffled[b]) == (keys[order[a]] == keys[order[b]])


def test_the_clusters_are_those_of_all_pairs_compared() -> None:
    rng = random.Random(3)
    base = [
        " ".join(rng.choices(["alpha", "beta", "gamma", "delta", "epsilon", "zeta"], k=25))
        for _ in "ab"
    ]
    texts = []
    for _ in range(60):
        words = rng.choice(base).split()
        for _ in range(rng.choice([0, 1, 2, 12])):
            words[rng.randrange(len(words))] = rng.choice(["eta", "theta", "iota", "kappa"])
        texts.append(" ".join(words))
    forms = [normal_form(text) for text in texts]
    label = list(range(len(texts)))
    for a in range(len(texts)):
        for b in range(a):
            if jaccard(forms[a], forms[b]) >= 0.7 and label[a] != label[b]:
                old, new = max(label[a], label[b]), min(label[a], label[b])
                label = [new if value == old else value for value in label]
    assert near_duplicate_keys(texts) == label


@pytest.mark.long
def test_the_bands_of_many_texts_take_little_memory() -> None:
    texts = [f"{number} text of {number * 7} words, {number**2}" for number in range(4_000)]
    tracemalloc.start()
    keys = near_duplicate_keys(texts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(keys) == len(texts)
    assert peak < 600 * len(texts)
