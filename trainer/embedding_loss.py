"""From embeddings to the loss: the scores that an objective reads, with equal texts masked.

Scores are cosines. With N triplets of a batch, anchor i has
  positive        s(p_i, iq_{i,i})
  P negatives     s(p_m, iq_{i,i})      m ≠ i
  I negatives     s(p_i, iq_{j,i})      the instructions the batch lists for i
  IQ negatives    s(p_i, iq_{k,k})      k ≠ i, the matched pairs (Eq. 10)

Masked (−inf): every negative that is a positive of the batch by its texts, that is, a pair
(instruction-query, passage) that some triplet has as its own. This covers the anchor's own text
standing in another triplet (rows share I+ between two triplets) and, which the paper does not
mention, one instruction-query with two right passages, or the reverse.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from sentence_transformers.base.losses import CachedLossMixin
from torch import Tensor, nn

from trainer.batches import NOWHERE
from trainer.objectives.multivariate import multivariate_loss
from trainer.objectives.names import Objective
from trainer.objectives.univariate import univariate_loss

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def scores_of_terms(
    objective: Objective, matched: Tensor, passages: Tensor, crossed: Tensor, tables: dict[str, Any]
) -> tuple[Tensor, list[Tensor]]:
    """(positive (N,), negatives for each term (N, M), −inf where masked).

    matched (U, d), passages (V, d), crossed (W, d): unit vectors of the different texts;
    tables: `matched_of` (N,), `passage_of` (N,), `crossed_of` (N, M) as `batches` builds them.
    """
    matched_of, passage_of = tables["matched_of"], tables["passage_of"]
    queries = torch.cat([matched, crossed])  # (U+W, d)
    is_positive = torch.zeros(len(queries), len(passages), dtype=torch.bool, device=matched.device)
    is_positive[matched_of, passage_of] = True
    grid = matched @ passages.T  # (U, V)
    positive = grid[matched_of, passage_of]  # (N,)
    negatives: list[Tensor] = []
    for term in objective.terms:
        if term == "P":  # (N, N): iq_{i,i} against p_m
            scores = grid[matched_of][:, passage_of]
            mask = is_positive[matched_of][:, passage_of]
        elif term == "IQ":  # (N, N): p_i against iq_{k,k}
            scores = grid.T[passage_of][:, matched_of]
            mask = is_positive.T[passage_of][:, matched_of]
        else:  # (N, M): p_i against iq_{j,i}
            crossed_of = tables["crossed_of"]
            places = crossed_of.clamp(min=0)
            own = passages[passage_of]  # (N, d)
            scores = torch.einsum("nd,nmd->nm", own, queries[places])
            mask = (crossed_of == NOWHERE) | is_positive[places, passage_of[:, None]]
        negatives.append(scores.masked_fill(mask, -torch.inf))
    return positive, negatives


class EmbeddingLoss(CachedLossMixin, nn.Module):
    """Embeds the columns of a batch and computes the objective.

    With `texts_at_once` > 0 the gradients of the embeddings are cached (GradCache): memory is
    that of so many texts, whatever the batch; the loss and its gradients are the same.
    """

    def __init__(
        self,
        model: "SentenceTransformer",
        objective: Objective,
        *,
        temperature: float,
        positive_as_printed: bool = False,
        texts_at_once: int = 0,
    ) -> None:
        super().__init__()
        self.model = model
        self.objective, self.temperature = objective, temperature
        self.positive_as_printed = positive_as_printed
        self.mini_batch_size = texts_at_once
        self.uses_gradient_cache = texts_at_once > 0

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: dict[str, Tensor]
    ) -> Tensor:
        columns = list(sentence_features)
        if self.uses_gradient_cache:
            return self.forward_cached(columns, labels)  # type: ignore[arg-type]
        return self.calculate_loss(
            [[self.model(column)["sentence_embedding"]] for column in columns], labels
        )

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Any = None, *, with_backward: bool = False
    ) -> Tensor:
        """The objective from the embeddings of the columns, `crossed` only where there is one."""
        columns = [nn.functional.normalize(torch.cat(parts).float(), dim=1) for parts in reps]
        matched, passages = columns[0], columns[1]
        crossed = columns[2] if len(columns) > 2 else matched[:0]
        positive, negatives = scores_of_terms(self.objective, matched, passages, crossed, labels)
        if self.objective.mode == "multi":
            loss = multivariate_loss(
                positive,
                negatives,
                self.temperature,
                positive_as_printed=self.positive_as_printed,
            )
        else:
            loss = univariate_loss(positive, negatives, self.temperature)
        if with_backward:
            loss.backward()
            loss = loss.detach()
        return loss
