"""The losses over scores: Objectives I and II (Eq. 6 to 21), and a teacher's."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import Tensor, nn


def univariate_loss(positive: Tensor, negatives: Sequence[Tensor], temperature: float) -> Tensor:
    """Mean over anchors of the sum over terms of −log softmax of the positive.

    positive: (n,) the score of each anchor's matched pair.
    negatives: for each term (n, m) the scores of its negatives, −inf where there is none (masked).
    Eq. 6: ℓ = −E_i Σ_t log( e^{s_i/τ} / (e^{s_i/τ} + Σ_m e^{s_{i,m}/τ}) ).

    Differs from the paper: the temperature τ, which its equations do not print (0.05 in its code).
    An anchor with every negative masked adds 0.
    """
    positive = positive / temperature
    terms = [
        torch.logsumexp(torch.cat([positive[:, None], scores / temperature], dim=1), dim=1)
        - positive
        for scores in negatives
    ]
    return torch.stack(terms).sum(dim=0).mean()


def multivariate_loss(
    positive: Tensor,
    negatives: Sequence[Tensor],
    temperature: float,
    *,
    positive_as_printed: bool = False,
) -> Tensor:
    """Mean over anchors of −log of the positive's share among the negatives of all terms.

    positive: (n,) the score of each anchor's matched pair.
    negatives: for each term (n, m) the scores of its negatives, −inf where there is none (masked).
    ℓ = −E_i log( e^{s_i/τ} / (c·e^{s_i/τ} + Σ_t Σ_m e^{s_{i,t,m}/τ}) ).

    Differs from the paper: the temperature τ, which its equations do not print; and c = 1, the
    positive counted once as in the released code. Eq. 7 as printed sums it with every term, so
    c = number of terms there (`positive_as_printed`); its loss is then at least log c.
    """
    positive = positive / temperature
    counted = positive + (math.log(len(negatives)) if positive_as_printed else 0.0)
    union = torch.cat([counted[:, None], *(scores / temperature for scores in negatives)], dim=1)
    return (torch.logsumexp(union, dim=1) - positive).mean()


def teacher_loss(kind: str, student: Tensor, teacher: Tensor, own: Tensor) -> Tensor:
    """A teacher's scores over a group's passages, taught together with an objective.

    student, teacher (n, k) scores of the same passages; own (n,): which of them is right.

    For anchor i (an instruction and a query) the group has three passages, one of them its own.
    Student scores s are cosines over the temperature τ, teacher scores t are a reranker's over its
    own temperature. Both losses are means over anchors; an anchor whose teacher scores are NaN (a
    plain row: the teacher was asked with the instruction) is left out, and with none left the loss
    is 0.

        KL: Σ_k p_k (log p_k − log q_k),  p = softmax(t), q = softmax(s)   (Hinton et al. 2015)
        margin-MSE: mean over k ≠ own of ((s_own − s_k) − (t_own − t_k))²   (Hofstätter et al. 2020)

    Differs from margin-MSE as published: there the student's scores are dot products without
    bounds, here cosines are divided by τ, so that a margin may be as large as a teacher's.
    """
    known = ~teacher.isnan().any(dim=1)  # (n,)
    if not known.any():
        return student.sum() * 0.0
    student, teacher, own = student[known], teacher[known], own[known]
    if kind == "kl":
        wanted = torch.log_softmax(teacher, dim=1)
        return (wanted.exp() * (wanted - torch.log_softmax(student, dim=1))).sum(dim=1).mean()
    margins = [scores.gather(1, own[:, None]) - scores for scores in (student, teacher)]
    squares = (margins[0] - margins[1]) ** 2  # 0 at the own passage
    return (squares.sum(dim=1) / (student.shape[1] - 1)).mean()


# sentence-transformers' MultipleNegativesRankingLoss over the pairs (iq_{i,i}, p_i).
#
# It is ℓ_P without our masks: an equal text of another triplet counts as a negative.
def mnrl_loss(anchors: Tensor, positives: Tensor, temperature: float) -> Tensor:
    """The stock loss of anchors (N, d) and positives (N, d), unit vectors, row for row."""
    no_model: Any = nn.Identity()  # the embeddings are given
    stock = MultipleNegativesRankingLoss(no_model, scale=1 / temperature)
    return stock.compute_loss_from_embeddings([anchors, positives], torch.empty(0))
