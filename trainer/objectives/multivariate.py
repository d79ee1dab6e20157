"""Objective II (Eq. 7, 15–21): one softmax over the union of all terms' negatives."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor


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
