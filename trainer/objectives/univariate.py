"""Objective I (Eq. 6, 8–14): one cross-entropy per term, added up."""

from collections.abc import Sequence

import torch
from torch import Tensor


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
