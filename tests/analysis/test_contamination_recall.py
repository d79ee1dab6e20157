"""The contamination check finds edited and paraphrased questions; see docs/contamination.md."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from analysis.embed.embedding import encode
from analysis.embed.model_source import DEFAULT_MODEL
from analysis.files.corpora import Corpus
from analysis.found.texts import ParaphrasedBy
from analysis.text.folding import letters, words
from analysis.text.overlap import edit_share, overlaps
from analysis.text.paraphrases import THRESHOLD, paraphrase_pairs
from analysis.text.sharing import (
    MEASURED,
    MEASURED_PARAPHRASES,
    NOT_FOUND,
    Paraphrases,
    describe_contamination,
    what_is_found,
)
from db.corpus.texts import CorpusText
from db.shape import INF_IR

ROOT = Path(__file__).resolve().parents[2]
# by its path: with bench/ on the path its analysis.py would replace the package
_spec = importlib.util.spec_from_file_location("contamination", ROOT / "bench" / "contamination.py")
assert _spec is not None and _spec.loader is not None
bench = sys.modules["contamination"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(bench)


def query(text: str) -> CorpusText:
    return CorpusText("query", "positive", text)


@pytest.mark.parametrize("name", list(bench.EDITS))
def test_nineteen_of_twenty_lightly_edited_questions_are_found(name: str) -> None:
    questions = [row["query"] for row in bench.pairs()]
    share, wrong = bench.recall(questions, "query", bench.EDITS[name])
    assert share >= 0.95
    assert wrong <= 3


@pytest.mark.parametrize("name", ["one word changed", "every 5th word changed"])
def test_edited_passages_are_found(name: str) -> None:
    share, _ = bench.recall(bench.passages()[:150], "passage", bench.EDITS[name])
    assert share >= 0.95


def test_real_questions_are_found_after_edits(real_data: Path) -> None:
    questions = [text for _, text in bench.real_questions(real_data)][::15]
    for name, edit in bench.EDITS.items():
        assert bench.recall(questions, "query", edit)[0] >= 0.95, name


def test_look_alike_letters_full_width_and_invisible_marks_are_folded() -> None:
    assert words("Раris") == words("paris")  # the first two letters are Cyrillic
    assert letters("\uff28\uff41\uff4d\u200blet") == "hamlet"
    assert words("Café") == words("cafe")
    assert words("Москва") == words("МОСКВА")  # Cyrillic still equals itself


@pytest.mark.long
def test_heavier_edits_are_found_and_clean_texts_hardly(real_data: Path) -> None:
    """1,000 real texts each, among 1,000 clean ones of other articles or questions."""
    found = {name: rest for name, *rest in bench.heavy(real_data)}
    assert len(found) == 3
    for name, (count, share, wrong, false) in found.items():
        assert count == 1000 and share >= 0.9, name
        assert share * count / (share * count + wrong + false) >= 0.95, name
    shown = [(each.recall, each.precision) for each in MEASURED]
    assert shown == [
        (round(share, 3), round(bench.precision(count, share, wrong, false), 3))
        for count, share, wrong, false in found.values()
    ]


@pytest.mark.long  # 1,600 questions and 2,000 passages through the model
def test_the_shown_recall_and_precision_of_paraphrases_are_those_measured(real_data: Path) -> None:
    ((_, share, wrong, false, passages),) = bench.paraphrase_precision(real_data, [THRESHOLD])
    measured = round(bench.precision(len(bench.pairs()), share, wrong, false), 2)
    assert (round(share, 2), measured) == (
        round(MEASURED_PARAPHRASES.recall, 2),
        round(MEASURED_PARAPHRASES.precision, 2),
    )
    assert passages > 0  # why passages are not compared so: none of these is a paraphrase


@pytest.mark.parametrize("threshold", [None, THRESHOLD, 0.9])
def test_a_comparison_names_what_it_finds_and_what_it_cannot(threshold: float | None) -> None:
    paraphrases = threshold and ParaphrasedBy(model=DEFAULT_MODEL, threshold=threshold)
    found, missed = what_is_found(paraphrases or None).split("Not found: ")
    assert "98.4% (precision 99.8%)" in found
    assert ("paraphrased questions" in found) == (threshold == THRESHOLD)
    assert ("paraphrased questions" in missed) == (threshold is None)
    assert all(each in missed for each in NOT_FOUND)


def test_an_edit_keeps_most_words_and_a_content_word() -> None:
    assert edit_share("when to plant garlic cloves", "when to plant onion cloves") == 0.8
    assert edit_share("when to plant garlic cloves", "when to eat onion cloves") is None
    eight = "when is it best to plant garlic cloves"
    assert edit_share(eight, "when is it time to eat garlic cloves") == 0.75
    assert edit_share(eight, "when is it time to eat onion cloves") is None
    assert edit_share("what is it", "what is that") is None  # no content word stays
    assert edit_share("who wrote hamlet", "who wrote hamlte") is not None  # letters


def test_the_first_list_goes_through_in_blocks_with_the_same_result(monkeypatch) -> None:
    questions = [query(row["query"]) for row in bench.pairs()[:60]]
    whole = overlaps(questions, questions)
    monkeypatch.setattr("analysis.text.overlap.BLOCK", 7)
    assert overlaps(questions, questions) == whole
    assert len(whole) >= 60


@pytest.mark.long  # 600 questions through the model
def test_four_of_five_frozen_paraphrases_are_found_and_hardly_another_pair() -> None:
    rows = bench.pairs()
    assert len(rows) >= 300
    ours, theirs = (encode([row[name] for row in rows]) for name in ("paraphrase", "query"))
    found = [(a, b) for a, b, _ in paraphrase_pairs(ours, theirs)]
    right = sum(a == b for a, b in found)
    assert right / len(rows) >= 0.8
    assert right / len(found) >= 0.95


def test_a_dense_neighbourhood_needs_a_closer_pair() -> None:
    """Eleven questions at cosine 0.9 of each other are a template; two alone at 0.9 a paraphrase.

    In the template: 2 · 0.9 - 0.9 - 0.9 = 0. Alone: our 10 nearest are one at 0.9 and nine missing
    ones, (0.9 + 9 · 0.45) / 10 = 0.495; theirs ten missing ones, 0.45: 1.8 - 0.495 - 0.45 = 0.855.
    """
    many = 12
    cosines = np.full((many, many), 0.9) + 0.1 * np.eye(many)
    vectors = np.linalg.cholesky(cosines)
    template = list(paraphrase_pairs(vectors[:1], vectors[1:], THRESHOLD))
    assert template == []
    ((_, _, score),) = paraphrase_pairs(vectors[:1], vectors[1:2], THRESHOLD)
    assert score == pytest.approx(0.855)


def test_paraphrases_are_reported_with_model_and_threshold_within_their_field() -> None:
    rows = bench.pairs()[:40]
    ours = Corpus(
        "mine",
        "dataset",
        [CorpusText("query", "positive", row["paraphrase"], n) for n, row in enumerate(rows)],
        shape=INF_IR,
    )
    theirs = Corpus("eval", "published", [query(row["query"]) for row in rows], shape=INF_IR)
    how = Paraphrases(encode, "mini", THRESHOLD)
    found = describe_contamination([ours], [theirs], how)
    assert found.paraphrases == ParaphrasedBy(model="mini", threshold=THRESHOLD)
    assert found.how["paraphrase"] >= 30
    assert len(found.groups) >= 32
    without = describe_contamination([ours], [theirs])
    assert without.paraphrases is None and "paraphrase" not in without.how
    other = Corpus(
        "eval", "published", [CorpusText("instruction", "positive", rows[0]["query"])], shape=INF_IR
    )
    assert describe_contamination([ours], [other], how).overlapping == 0


def test_the_frozen_paraphrases_are_of_our_own_questions() -> None:
    files = (
        "tests/data/first_demo/pairs.jsonl",
        "curation/demo/pairs.jsonl",
        "trainer/probe/natural.jsonl",
    )
    own = {
        json.loads(line)["query"]
        for file in files
        for line in (ROOT / file).read_text(encoding="utf-8").splitlines()
    }
    assert {row["query"] for row in bench.pairs()} <= own
