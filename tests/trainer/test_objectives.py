"""The objectives: by hand, against a naive triple loop, invariances, gradcheck, edges."""

import math

import pytest
import torch
from torch import Tensor

from db.shape import INF_IR
from trainer.data.batches import build_batch
from trainer.data.groups import Group, group_of
from trainer.loop.embedding_loss import scores_of_terms
from trainer.objectives.losses import multivariate_loss, univariate_loss
from trainer.objectives.names import OBJECTIVES, Objective
from trainer.settings.template import Template

TEMPLATE = Template()


def loss_of(
    objective: Objective, positive: Tensor, negatives: list[Tensor], *, printed: bool = False
) -> Tensor:
    if objective.mode == "multi":
        return multivariate_loss(positive, negatives, 0.05, positive_as_printed=printed)
    return univariate_loss(positive, negatives, 0.05)


def make_group(number: int, **changes: str) -> Group:
    texts = {
        "query_positive": f"q{number}",
        "instruction_positive": f"i{number}",
        "document_positive": f"p{number}",
        "query_negative": f"q-{number}",
        "instruction_negative": f"i-{number}",
        "hard_negative_document_1": f"p1-{number}",
        "hard_negative_document_2": f"p2-{number}",
    }
    return group_of(texts | changes, group_id=str(number), shape=INF_IR)


def unit_vectors(texts: list[str], dtype: torch.dtype = torch.float64) -> Tensor:
    """A unit vector that depends on the text alone."""
    rows = []
    for text in texts:
        generator = torch.Generator().manual_seed(sum(text.encode()) * 31 + len(text))
        rows.append(torch.randn(8, generator=generator, dtype=dtype))
    vectors = torch.stack(rows) if rows else torch.zeros(0, 8, dtype=dtype)
    return torch.nn.functional.normalize(vectors, dim=1)


def computed(objective: Objective, groups: list[Group], *, printed: bool = False) -> float:
    """The loss by way of the batch with its index tables."""
    batch = build_batch(groups, TEMPLATE, objective)
    tables = {
        "matched_of": torch.tensor(batch.matched_of),
        "passage_of": torch.tensor(batch.passage_of),
        "crossed_of": torch.tensor(batch.crossed_of),
    }
    positive, negatives = scores_of_terms(
        objective,
        unit_vectors(batch.queries),
        unit_vectors(batch.passages),
        tables,
    )
    return float(loss_of(objective, positive, negatives, printed=printed))


def naive(objective: Objective, groups: list[Group], *, printed: bool = False) -> float:
    """Eq. 6–21 written out: loops over anchors, terms and candidates, every text encoded anew."""
    triplets = [triplet for group in groups for triplet in group.triplets()]
    own_pairs = {(f"{i} {q}", p) for i, q, p in triplets}

    def score(instruction: str, query: str, passage: str) -> float:
        text = f"{instruction} {query}"
        return math.exp(float(unit_vectors([text])[0] @ unit_vectors([passage])[0]) / 0.05)

    total = 0.0
    for own_i, own_q, own_p in triplets:
        positive = score(own_i, own_q, own_p)
        sums = []
        for term in objective.terms:
            negatives = 0.0
            for i, q, p in triplets:
                candidate = {
                    "P": (own_i, own_q, p),
                    "I": (i, own_q, own_p),
                    "IQ": (i, q, own_p),
                }[term]
                if (f"{candidate[0]} {candidate[1]}", candidate[2]) not in own_pairs:
                    negatives += score(*candidate)
            sums.append(negatives)
        if objective.mode == "uni":
            total += sum(-math.log(positive / (positive + negatives)) for negatives in sums)
        else:
            counted = positive * (len(sums) if printed else 1)
            total += -math.log(positive / (counted + sum(sums)))
    return total / len(triplets)


ROWS = [
    [make_group(1)],
    [make_group(1), make_group(2), make_group(3)],
    # an instruction, a query and a passage shared across rows; a row given twice
    [make_group(1), make_group(2, instruction_positive="i1"), make_group(3, query_positive="q1")],
    [make_group(1), make_group(2, document_positive="p1"), make_group(1)],
    [make_group(1), make_group(2, instruction_positive="i1", query_positive="q1")],
]


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("rows", ROWS, ids=range(len(ROWS)))
def test_every_objective_equals_the_naive_triple_loop(name: str, rows: list[Group]) -> None:
    objective = OBJECTIVES[name]
    assert computed(objective, rows) == pytest.approx(naive(objective, rows), abs=1e-9)
    if objective.mode == "multi":
        by_tables = computed(objective, rows, printed=True)
        assert by_tables == pytest.approx(naive(objective, rows, printed=True), abs=1e-9)


def test_values_worked_by_hand() -> None:
    # One anchor with s = ln 2 · τ, so e^{s/τ} = 2; P negatives 1 and 3, an I negative 4.
    tau = 0.05
    positive = torch.tensor([tau * math.log(2)], dtype=torch.float64)
    of_p = torch.tensor([[0.0, tau * math.log(3)]], dtype=torch.float64)
    of_i = torch.tensor([[tau * math.log(4), -torch.inf]], dtype=torch.float64)
    # P alone: −ln(2 / (2+1+3)) = ln 3
    assert float(univariate_loss(positive, [of_p], tau)) == pytest.approx(math.log(3))
    assert float(multivariate_loss(positive, [of_p], tau)) == pytest.approx(math.log(3))
    # uni P,I: ln 3 + −ln(2 / (2+4)) = 2 ln 3
    assert float(univariate_loss(positive, [of_p, of_i], tau)) == pytest.approx(2 * math.log(3))
    # multi P,I: −ln(2 / (2+1+3+4)) = ln 5; as printed the positive counts twice: ln 6
    assert float(multivariate_loss(positive, [of_p, of_i], tau)) == pytest.approx(math.log(5))
    printed = multivariate_loss(positive, [of_p, of_i], tau, positive_as_printed=True)
    assert float(printed) == pytest.approx(math.log(6))


# One anchor, e^{s/τ} = 2 for the positive; its negatives sum to 4 (P: 1 + 3), 6 (I) and 10 (IQ).
# uni: the sum of ln((2 + Σ) / 2) over the terms, ln 3, ln 4, ln 6; multi: ln((2 + all sums) / 2).
BY_HAND = {
    "P": 3,
    "I": 4,
    "IQ": 6,
    "P,I:uni": 3 * 4,
    "P,IQ:uni": 3 * 6,
    "I,IQ:uni": 4 * 6,
    "P,I,IQ:uni": 3 * 4 * 6,
    "P,I:multi": (2 + 4 + 6) / 2,
    "P,IQ:multi": (2 + 4 + 10) / 2,
    "I,IQ:multi": (2 + 6 + 10) / 2,
    "P,I,IQ:multi": (2 + 4 + 6 + 10) / 2,
}


def test_each_objective_worked_by_hand() -> None:
    assert BY_HAND.keys() == OBJECTIVES.keys()
    exponentials = {"P": [1.0, 3.0], "I": [6.0, 0.0], "IQ": [4.0, 6.0]}
    for name, objective in OBJECTIVES.items():
        positive = 0.05 * torch.tensor([2.0], dtype=torch.float64).log()
        negatives = [
            0.05 * torch.tensor([exponentials[term]], dtype=torch.float64).log()
            for term in objective.terms
        ]
        found = float(loss_of(objective, positive, negatives))
        assert found == pytest.approx(math.log(BY_HAND[name])), name


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_order_of_rows_does_not_matter(name: str) -> None:
    rows = ROWS[2]
    there, back = computed(OBJECTIVES[name], rows), computed(OBJECTIVES[name], rows[::-1])
    assert there == pytest.approx(back, abs=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_adding_a_constant_to_all_scores_changes_nothing(name: str) -> None:
    torch.manual_seed(1)
    positive = torch.randn(4, dtype=torch.float64)
    negatives = [torch.randn(4, 3, dtype=torch.float64) for _ in OBJECTIVES[name].terms]
    plain = loss_of(OBJECTIVES[name], positive, negatives)
    shifted = loss_of(OBJECTIVES[name], positive + 0.3, [n + 0.3 for n in negatives])
    assert float(shifted) == pytest.approx(float(plain), abs=1e-9)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients_are_right(name: str) -> None:
    torch.manual_seed(2)
    objective = OBJECTIVES[name]
    positive = (torch.randn(3, dtype=torch.float64) / 20).requires_grad_()
    negatives = [
        (torch.randn(3, 4, dtype=torch.float64) / 20).requires_grad_() for _ in objective.terms
    ]
    assert torch.autograd.gradcheck(
        lambda p, *n: loss_of(objective, p, list(n)), (positive, *negatives)
    )


@pytest.mark.parametrize("name", OBJECTIVES)
def test_masked_negatives_add_nothing_and_get_no_gradient(name: str) -> None:
    objective = OBJECTIVES[name]
    positive = torch.tensor([0.2, 0.1], requires_grad=True)
    raw = [torch.full((2, 3), 0.5, requires_grad=True) for _ in objective.terms]
    loss = loss_of(
        objective,
        positive,
        [scores.masked_fill(torch.ones(2, 3, dtype=torch.bool), -torch.inf) for scores in raw],
    )
    loss.backward()
    assert float(loss.detach()) == pytest.approx(0.0, abs=1e-6)
    assert all(scores.grad is not None and not scores.grad.any() for scores in raw)
    assert positive.grad is not None and positive.grad.isfinite().all()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_equal_texts_give_no_loss(name: str) -> None:
    same = dict.fromkeys(make_group(1).row(), "x")
    rows = [group_of(same, group_id=str(number), shape=INF_IR) for number in range(3)]
    assert computed(OBJECTIVES[name], rows) == pytest.approx(0.0, abs=1e-9)
