"""Language models of this machine as judges: answers by hand, on tiny models."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Ran
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select
from study_world import make_world
from tiny_language_models import write_decoder, write_t5

from analysis.embed.language_model import load_language_model
from curation.judges.judge import ItemView
from curation.judges.local_model import LocalJudge, length_limit
from curation.judges.registry import judge_named
from curation.recipe.prompt import FOLDER
from db.errors import BadInput
from db.store.store import Store
from db.tables import Judge, Judgment

VIEW = ItemView("In English.", "what is tea", ("a leaf", "a drink from leaves", "un thé"))
VOCABULARY = 261  # five marks and the bytes


def choose(folder: Path, way: str, view: ItemView = VIEW) -> Any:
    (choice,) = LocalJudge(f"{folder}:{way}").choose([view])
    return choice


def log_p(logit: float, *others: float) -> float:
    """log P of a token among these and tokens of logit 0, VOCABULARY in all."""
    rest = VOCABULARY - 1 - len(others)
    return logit - math.log(math.exp(logit) + sum(map(math.exp, others)) + rest)


def test_the_letter_with_the_highest_probability_is_the_answer(tmp_path: Path) -> None:
    folder = write_decoder(tmp_path, logits={"A": 1.0, "C": 2.0})
    choice = choose(folder, "listwise")
    assert choice.position == 2
    by_hand = [log_p(1.0, 2.0), log_p(0.0, 1.0, 2.0), log_p(2.0, 1.0), log_p(0.0, 1.0, 2.0)]
    assert choice.detail["log_probabilities"] == pytest.approx(by_hand, abs=1e-3)
    assert len(choice.detail["weights"]) == 16 and len(choice.detail["prompt"]) == 16


def test_the_letter_after_the_last_passage_is_none_of_them(tmp_path: Path) -> None:
    folder = write_decoder(tmp_path, "llama", logits={"D": 3.0, "A": 1.0, "E": 9.0})
    assert choose(folder, "listwise").position is None
    four = ItemView("i", "q", ("a", "b", "c", "d"))
    assert choose(folder, "listwise", four).position is None  # E now, and D is the fourth
    assert choose(folder, "listwise", ItemView("i", "q", ("a", "b"))).position == 0


def test_pointwise_is_true_against_false_and_one_half_is_enough(tmp_path: Path) -> None:
    # Bytes: "true", "True", "yes", "Yes" begin with t T y Y, the others with f F n N. With t = 2:
    # log((e^2 + 3) / 4) = 0.9540, so P(true) = sigmoid(0.9540).
    right = write_decoder(tmp_path / "right", logits={"t": 2.0})
    value = 1 / (1 + 4 / (math.exp(2) + 3))
    choice = choose(right, "pointwise")
    assert (choice.position, choice.detail["relevant"]) == (0, pytest.approx([value] * 3, abs=1e-4))
    even = write_decoder(tmp_path / "even", "llama", logits={})
    assert choose(even, "pointwise").detail["relevant"] == [0.5, 0.5, 0.5]
    assert choose(even, "pointwise").position == 0
    wrong = write_decoder(tmp_path / "wrong", logits={"n": 0.5})
    assert choose(wrong, "pointwise").position is None


@pytest.mark.parametrize("architecture", ["qwen2", "llama"])
def test_random_weights_answer_as_a_plain_forward_pass_says(
    architecture: str, tmp_path: Path
) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = write_decoder(tmp_path, architecture, tied=architecture == "qwen2", chat=True)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
    prompts = FOLDER
    text = (prompts / "judge_pointwise.md").read_text().strip()
    by_hand = []
    for passage in VIEW.candidates:
        filled = text.replace("{query}", VIEW.query).replace("{instruction}", VIEW.instruction)
        asked = "<s>" + filled.replace("{passage}", passage) + "</s>!"
        logits = model(**tokenizer(asked, return_tensors="pt")).logits[0, -1].double()
        true, false = (
            torch.logsumexp(logits[[tokenizer.get_vocab()[letter] for letter in letters]], 0)
            for letters in ("tTyY", "fFnN")
        )
        by_hand.append(torch.sigmoid(true - false).item())
    choice = choose(folder, "pointwise")
    assert choice.detail["relevant"] == pytest.approx(by_hand, abs=1e-4)
    assert len(set(choice.detail["relevant"])) == 3  # it does depend on the passage
    best = int(np.argmax(by_hand))
    assert choice.position == (best if by_hand[best] >= 0.5 else None)


def test_an_encoder_decoder_answers_with_its_first_word(tmp_path: Path) -> None:
    import torch
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    folder = write_t5(tmp_path)
    choice = choose(folder, "listwise")
    judge = LocalJudge(str(folder))
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = T5ForConditionalGeneration.from_pretrained(folder).eval()
    features = tokenizer(judge._question(VIEW, VIEW.candidates), return_tensors="pt")
    logits = model(**features, decoder_input_ids=torch.tensor([[0]])).logits[0, 0].double()
    wanted = logits.log_softmax(0)[[tokenizer.get_vocab()[letter] for letter in "ABCD"]]
    assert choice.detail["log_probabilities"] == pytest.approx(wanted.tolist(), abs=1e-3)
    assert choose(folder, "pointwise").detail["relevant"][0] == pytest.approx(0.5, abs=0.4)


def test_a_models_own_marks_in_a_passage_are_text(tmp_path: Path) -> None:
    model = load_language_model(str(write_decoder(tmp_path, chat=True)))
    tokens = model.prompt_tokens("a </s> b <s>")
    marks = model.tokens("<s></s>")
    assert [token for token in tokens if token in marks] == marks  # those of the chat form only


def test_long_passages_are_cut_and_the_question_never(tmp_path: Path) -> None:
    judge = LocalJudge(str(write_decoder(tmp_path, positions=1600)))
    view = ItemView("short", "why", ("x" * 5000, "y" * 3, "z" * 5000))
    prompt = judge._fit(view, view.candidates)
    assert prompt is not None and 1500 < len(prompt) <= 1600
    text = judge._model._tokenizer.decode(prompt)
    assert "Query: why" in text and "<passage B>\nyyy\n" in text and text.endswith("Answer:")
    assert abs(text.count("x") - text.count("z")) < 10
    too_long = ItemView("i" * 2600, "why", ("a", "b"))
    (choice,) = judge.choose([too_long])
    assert choice.unusable == "too_long"
    (choice,) = judge.choose([ItemView("i", "q", ("a",) * 26)])
    assert choice.unusable == "too_many_candidates"


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(0, 300))
def test_texts_are_cut_to_the_largest_common_length_that_fits(
    lengths: list[int], room: int
) -> None:
    most = length_limit(lengths, room)
    assert sum(min(length, most) for length in lengths) <= room
    if most < max(lengths):
        assert sum(min(length, most + 1) for length in lengths) > room


def test_what_is_no_model_that_answers_is_refused(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    folder = write_decoder(tmp_path / "whole")
    AutoModelForCausalLM.from_pretrained(folder).model.save_pretrained(tmp_path / "whole")
    with pytest.raises(BadInput, match=r"no weights for lm_head\.weight"):
        choose(folder, "listwise")
    pickled = write_decoder(tmp_path / "pickled")
    (pickled / "model.safetensors").unlink()
    torch.save({}, pickled / "pytorch_model.bin")
    with pytest.raises(BadInput, match="weights are safetensors"):
        choose(pickled, "listwise")
    with pytest.raises(BadInput, match="no model folder '/nowhere'"):
        LocalJudge("/nowhere:pointwise").choose([VIEW])
    with pytest.raises(BadInput, match="no model is named"):
        LocalJudge(":pointwise")


def test_code_that_comes_with_a_model_is_not_run(tmp_path: Path) -> None:
    folder, ran = write_decoder(tmp_path / "model"), tmp_path / "ran"
    (folder / "mine.py").write_text(f"from pathlib import Path\nPath({str(ran)!r}).touch()\n")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.C", "AutoModel": "mine.M"}}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match="needs no code of its own"):
        choose(folder, "listwise")
    assert not ran.exists()


def test_the_way_stands_after_the_model(sqlite_store: Store) -> None:
    names = ["transformers:a/b", "transformers:a/b:pointwise", "transformers:/c:d:listwise"]
    judges = [judge_named(name, sqlite_store) for name in names]
    assert [judge.name for judge in judges] == [
        "transformers:a/b:listwise",
        "transformers:a/b:pointwise",
        "transformers:/c:d:listwise",
    ]
    assert [judge.model for judge in judges] == ["a/b", "a/b", "/c:d"]


def test_a_local_model_judges_a_study_from_the_command_line(
    sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    make_world(sqlite_store, 4)
    assert inf("study", "create", "--dataset", "world", "--items", 3, "--overlap", 1).code == 0
    folder = write_decoder(tmp_path / "model", logits={"B": 3.0})
    judged = inf("study", "judge", "--study", 1, "--judge", f"transformers:{folder}", "--json")
    assert judged.code == 0, judged.err
    assert (judged.json["judged"], judged.json["none"], judged.json["offline"]) == (3, 0, False)
    with sqlite_store.read() as session:
        judge = session.scalars(select(Judge)).one()
        assert (judge.kind, judge.provider, judge.model) == ("model", "transformers", str(folder))
        for judgment in session.scalars(select(Judgment)):
            assert judgment.choice == judgment.order_shown[1]
