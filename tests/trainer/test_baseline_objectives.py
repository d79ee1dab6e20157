"""The objectives to compare with: sentence-transformers' own loss, and Promptriever's."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor
from trainer_jobs import claim, config_for

from db.shape import INF_IR
from db.store.store import Store
from trainer.data.batches import NOWHERE, build_batch
from trainer.data.groups import Group, group_of
from trainer.launch.here import train
from trainer.loop.embedding_loss import objective_loss, scores_of_terms
from trainer.objectives.losses import univariate_loss
from trainer.objectives.names import BASELINES, OBJECTIVES, Objective, parse_objective
from trainer.settings.template import Template

ROLES = ("q", "i", "p", "q-", "i-", "p1-", "p2-")
MNRL, PROMPTRIEVER = BASELINES["mnrl"], BASELINES["promptriever"]


def make_group(number: int, **changes: str) -> Group:
    names = list(Group("", ROLES, shape=INF_IR).row())
    texts = {name: f"{role}{number}" for name, role in zip(names, ROLES, strict=True)}
    return group_of(texts | changes, group_id=str(number), shape=INF_IR)


ROWS = [
    [make_group(1)],
    [make_group(1), make_group(2), make_group(3)],
    [make_group(1), make_group(2, instruction_positive="i1"), make_group(1)],
    # another row's (I-,Q+) is this row's (I+,Q+): its passage is right for both
    [make_group(1), make_group(2, instruction_negative="i1", query_positive="q1")],
    [make_group(1), make_group(2, hard_negative_document_1="p1")],
]


def unit_vector(text: str) -> Tensor:
    generator = torch.Generator().manual_seed(sum(text.encode()) * 31 + len(text))
    return torch.nn.functional.normalize(
        torch.randn(8, generator=generator, dtype=torch.float32), dim=0
    )


def columns_of(texts: list[str]) -> Tensor:
    return torch.stack([unit_vector(text) for text in texts])


def computed(objective: Objective, rows: list[Group], temperature: float = 0.05) -> float:
    batch = build_batch(rows, Template(), objective)
    tables = {
        "matched_of": torch.tensor(batch.matched_of),
        "passage_of": torch.tensor(batch.passage_of),
    }
    columns = [columns_of(batch.queries), columns_of(batch.passages)]
    return float(objective_loss(objective, columns, tables, temperature))


def naive(rows: list[Group], *, anchors: int, masked: bool) -> float:
    """Loops: the first `anchors` triplets of every row against every passage of the batch."""
    triplets = [triplet for row in rows for triplet in row.triplets()]
    own_pairs = {(f"{i} {q}", p) for i, q, p in triplets}
    losses = []
    for row in rows:
        for number, (i, q, own) in enumerate(row.triplets()):
            if number >= anchors:
                continue
            text = f"{i} {q}"
            up = math.exp(float(unit_vector(text) @ unit_vector(own)) / 0.05)
            total = up
            left_out = False
            for _, _, passage in triplets:
                if masked and (text, passage) in own_pairs:
                    continue
                if not masked and passage == own and not left_out:
                    left_out = True  # the positive itself; an equal one elsewhere is a negative
                    continue
                total += math.exp(float(unit_vector(text) @ unit_vector(passage)) / 0.05)
            losses.append(-math.log(up / total))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("rows", ROWS, ids=range(len(ROWS)))
def test_the_baselines_equal_naive_loops(rows: list[Group]) -> None:
    assert computed(MNRL, rows) == pytest.approx(naive(rows, anchors=3, masked=False), abs=2e-5)
    assert computed(PROMPTRIEVER, rows) == pytest.approx(
        naive(rows, anchors=1, masked=True), abs=2e-5
    )


def test_mnrl_is_l_p_where_no_text_stands_twice() -> None:
    assert computed(MNRL, ROWS[1]) == pytest.approx(computed(OBJECTIVES["P"], ROWS[1]), abs=2e-5)
    assert computed(MNRL, ROWS[2]) > computed(OBJECTIVES["P"], ROWS[2]) + 1e-3


def test_promptriever_by_hand() -> None:
    """One row, two dimensions, τ = 1/ln 2 so that e^{s/τ} = 2^s.

    (I+,Q+) = P+ = (1,0): s+ = 1; P1- = (0,1): 0; P2- = (−1,0): −1.
    ℓ = −ln(2 / (2 + 1 + ½)) = ln 1.75. MNRL adds the other two anchors: (I-,Q+) = (0,1) with
    scores 0, 1 (its own), 0: −ln(2/4) = ln 2, and (I+,Q-) = (−1,0) with −1, 0, 1: ln 1.75.
    """
    tau = 1 / math.log(2)
    passages = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    tables = {
        "matched_of": torch.tensor([0, NOWHERE, NOWHERE]),
        "passage_of": torch.tensor([0, 1, 2]),
    }
    loss = objective_loss(PROMPTRIEVER, [passages[:1], passages], tables, tau)
    assert float(loss) == pytest.approx(math.log(1.75), abs=1e-6)
    tables["matched_of"] = torch.tensor([0, 1, 2])
    loss = objective_loss(MNRL, [passages, passages], tables, tau)
    wanted = (2 * math.log(1.75) + math.log(2)) / 3
    assert float(loss) == pytest.approx(wanted, abs=1e-6)


def test_promptriever_embeds_only_its_anchors() -> None:
    batch = build_batch(ROWS[1], Template(), PROMPTRIEVER)
    assert batch.queries == ["i1 q1", "i2 q2", "i3 q3"] and batch.matched == 3
    assert batch.matched_of == [0, -1, -1, 1, -1, -1, 2, -1, -1]
    assert len(batch.passages) == 9


def test_promptrievers_gradients_are_right() -> None:
    torch.manual_seed(3)
    batch = build_batch(ROWS[3], Template(), PROMPTRIEVER)
    tables = {
        "matched_of": torch.tensor(batch.matched_of),
        "passage_of": torch.tensor(batch.passage_of),
    }
    matched = torch.randn(len(batch.queries), 4, dtype=torch.float64, requires_grad=True)
    passages = torch.randn(len(batch.passages), 4, dtype=torch.float64, requires_grad=True)

    def loss(one: Tensor, other: Tensor) -> Tensor:
        positive, negatives = scores_of_terms(PROMPTRIEVER, one, other, tables)
        return univariate_loss(positive, negatives, 1.0)

    assert torch.autograd.gradcheck(loss, (matched, passages))


def test_where_all_texts_are_equal_promptriever_has_nothing_to_contrast() -> None:
    same = dict.fromkeys(make_group(1).row(), "x")
    assert computed(PROMPTRIEVER, [group_of(same, shape=INF_IR)] * 2) == pytest.approx(
        0.0, abs=1e-6
    )


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("texts_at_once", ["0", "2"])
def test_the_baselines_train(
    sqlite_store: Store, tmp_path: Path, name: str, texts_at_once: str
) -> None:
    assert parse_objective(name).label
    given = {"objective": name, "max_steps": "2", "held_out": "0", "texts_at_once": texts_at_once}
    result = train(claim(sqlite_store, config_for(tmp_path, **given)))
    assert result["steps"] == 2 and result["loss_last"] > 0
