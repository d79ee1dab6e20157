"""A teacher's scores beside an objective: by hand, against loops, in a training."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from trainer_jobs import config_for, taught_losses
from trainer_release import make_rows

from db.errors import BadInput
from db.shape import INF_IR
from db.store.store import Store
from trainer.data.batches import with_plain_rows
from trainer.data.groups import Group, group_key, group_of
from trainer.loop import fitting
from trainer.loop.embedding_loss import Teaching, taught_loss
from trainer.loop.packing_check import make_collator
from trainer.loop.teacher import teacher_scores
from trainer.model.backbone import load_backbone
from trainer.objectives.losses import teacher_loss
from trainer.settings.settings import parse_settings
from trainer.settings.template import Template

GROUPS: list[Group] = [group_of(row, shape=INF_IR) for row in make_rows(4)]
NAN = float("nan")
TEACHER_LOSSES = ("kl", "margin-mse")


def texts_of(model: Any, batch: dict[str, Any], column: str) -> list[str]:
    rows = zip(batch[f"{column}_input_ids"], batch[f"{column}_attention_mask"], strict=True)
    return [
        model.tokenizer.decode(ids[mask.bool()], skip_special_tokens=True) for ids, mask in rows
    ]


def test_both_losses_by_hand() -> None:
    """KL: p = (1/2, 1/2), q = (3/4, 1/4): 1/2 log(2/3) + 1/2 log 2 = 1/2 log(4/3).
    Margins 0 and log 3 apart by log 3."""
    student, teacher = torch.tensor([[math.log(3.0), 0.0]]), torch.zeros(1, 2)
    own = torch.tensor([0])
    assert teacher_loss("kl", student, teacher, own).item() == pytest.approx(0.5 * math.log(4 / 3))
    assert teacher_loss("margin-mse", student, teacher, own).item() == pytest.approx(
        math.log(3) ** 2
    )


@pytest.mark.parametrize("kind", TEACHER_LOSSES)
def test_they_equal_naive_loops(kind: str) -> None:
    torch.manual_seed(1)
    student, teacher = torch.randn(5, 3).double(), torch.randn(5, 3).double()
    own = torch.tensor([0, 1, 2, 0, 1])
    total = 0.0
    for s, t, right in zip(student.tolist(), teacher.tolist(), own.tolist(), strict=True):
        p, q = ([math.exp(x) / sum(map(math.exp, row)) for x in row] for row in (t, s))
        if kind == "kl":
            total += sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
        else:
            total += sum((s[right] - s[k] - t[right] + t[k]) ** 2 for k in range(3)) / 2
    assert teacher_loss(kind, student, teacher, own).item() == pytest.approx(total / 5)


@pytest.mark.parametrize("kind", TEACHER_LOSSES)
def test_a_constant_on_either_side_changes_nothing_and_agreement_costs_nothing(kind: str) -> None:
    torch.manual_seed(2)
    student, teacher, own = torch.randn(4, 3), torch.randn(4, 3), torch.tensor([0, 1, 2, 1])
    plain = teacher_loss(kind, student, teacher, own)
    assert teacher_loss(kind, student + 3, teacher - 5, own).item() == pytest.approx(
        plain.item(), rel=1e-4
    )
    assert teacher_loss(kind, teacher, teacher, own).item() == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("kind", TEACHER_LOSSES)
def test_their_gradients_are_right_and_unknown_scores_have_none(kind: str) -> None:
    torch.manual_seed(3)
    student = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    teacher = torch.randn(4, 3, dtype=torch.float64)
    teacher[1] = NAN
    own = torch.tensor([0, 1, 2, 0])
    assert torch.autograd.gradcheck(lambda s: teacher_loss(kind, s, teacher, own), (student,))
    teacher_loss(kind, student, teacher, own).backward()  # type: ignore[no-untyped-call]
    assert student.grad is not None and not student.grad[1].any() and student.grad[0].any()
    assert teacher_loss(kind, student, teacher * NAN, own).item() == 0


@pytest.mark.parametrize("objective", ["P,I,IQ:multi", "promptriever"])
def test_a_batch_gives_each_anchor_the_cosines_with_its_own_groups_passages(objective: str) -> None:
    settings = parse_settings(
        {"base_model": "tiny-random-bert", "objective": objective, "packing": "off"}
    )
    model: Any = load_backbone(settings)
    generator = torch.Generator().manual_seed(4)
    scores = {group_key(g): torch.randn(3, 3, generator=generator).tolist() for g in GROUPS[1:]}
    batch = make_collator(model, GROUPS, settings, teacher=scores)([g.row() for g in GROUPS])
    vector_of = {
        text: torch.tensor(model.encode(text))
        for group in GROUPS
        for instruction, query, passage in group.triplets()
        for text in (Template().apply(instruction, query), passage)
    }
    columns = [
        torch.tensor(model.encode(texts_of(model, batch, name))) for name in ("queries", "passages")
    ]
    found = taught_loss(columns, batch["label"], Teaching("margin-mse", 1.0, 2.0), 0.05)
    every = 3 if objective == "promptriever" else 1
    values = []
    for group in GROUPS[1:]:  # the teacher did not score the first
        triplets = group.triplets()
        for place in range(0, 3, every):
            instruction, query, _ = triplets[place]
            vector = vector_of[Template().apply(instruction, query)]
            cosines = [float(vector @ vector_of[p]) / 0.05 for *_, p in triplets]
            taught = [score / 2.0 for score in scores[group_key(group)][place]]
            gaps = [cosines[place] - cosines[k] - taught[place] + taught[k] for k in range(3)]
            values.append(sum(gap**2 for gap in gaps) / 2)
    assert found.item() == pytest.approx(sum(values) / len(values), rel=1e-3)


def test_scores_are_computed_once_and_kept(tmp_path: Path) -> None:
    read: list[tuple[str, str]] = []

    def score(pairs: list[tuple[str, str]]) -> list[float]:
        read.extend(pairs)
        return [float(len(query) - len(passage)) for query, passage in pairs]

    file = tmp_path / "work" / "teacher.json"
    found = teacher_scores(GROUPS[:2], Template(), score, file)
    assert len(read) == 18
    group = GROUPS[1]
    question = Template().apply(group.text("I-"), group.text("Q+"))
    wanted = float(len(question) - len(group.text("P2-")))
    assert found[group_key(group)][1][2] == wanted
    assert teacher_scores(GROUPS[:3], Template(), score, file).keys() > found.keys()
    assert len(read) == 27
    (plain,) = with_plain_rows([group], 0.999999)
    assert group_key(plain) not in found


@pytest.mark.parametrize("kind", TEACHER_LOSSES)
def test_a_training_with_a_teacher_reports_its_loss_and_comes_nearer_to_it(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It prefers what gives a length, whatever the instruction: not what the objective teaches."""
    monkeypatch.setattr(
        fitting,
        "load_reranker",
        lambda name: lambda pairs: [3.0 * ("metres long" in text) for _, text in pairs],
    )
    given = {"teacher": "monot5:named", "teacher_loss": kind, "teacher_weight": "50"}
    given |= {"dropout": "0", "learning_rate": "1e-3", "rows_per_batch": "8"}
    config = config_for(tmp_path, **given, max_steps="12")
    taught = taught_losses(sqlite_store, config)
    assert len(taught) == 12 and taught[-1] < 0.8 * taught[0]


def test_a_teacher_that_is_no_reranker_is_refused() -> None:
    with pytest.raises(BadInput, match="give a reranker as cross-encoder, monot5, flan-t5"):
        parse_settings({"teacher": "all-MiniLM"})
