"""sentence-transformers' MultipleNegativesRankingLoss over the pairs (iq_{i,i}, p_i).

It is ℓ_P without our masks: an equal text of another triplet counts as a negative.
"""

from typing import Any

import torch
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import Tensor, nn


def mnrl_loss(anchors: Tensor, positives: Tensor, temperature: float) -> Tensor:
    """The stock loss of anchors (N, d) and positives (N, d), unit vectors, row for row."""
    no_model: Any = nn.Identity()  # the embeddings are given
    stock = MultipleNegativesRankingLoss(no_model, scale=1 / temperature)
    return stock.compute_loss_from_embeddings([anchors, positives], torch.empty(0))
