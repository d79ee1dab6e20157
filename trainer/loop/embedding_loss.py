"""From embeddings to the loss: the scores that an objective reads, with equal texts masked.

Scores are cosines. With N triplets of a batch, anchor i has
  positive        s(p_i, iq_{i,i})
  P negatives     s(p_m, iq_{i,i})      m ≠ i, and the passages mined for the batch's groups
  I negatives     s(p_i, iq_{j,i})      the instructions the batch lists for i
  IQ negatives    s(p_i, iq_{k,k})      k ≠ i, the matched pairs (Eq. 10)

Masked (−inf): every negative that is a positive of the batch by its texts, that is, a pair
(instruction-query, passage) that some triplet has as its own. This covers the anchor's own text
standing in another triplet (rows share I+ between two triplets) and, which the paper does not
mention, one instruction-query with two right passages, or the reverse.

Baselines (`trainer.objectives.names`) read the same scores, or have a loss of their own.
promptriever (Weller et al. 2025): the anchors are (I+,Q+) alone, their passage P+, and P1- is the
instance's instruction negative: it answers Q+ but not under I+. P2- (for Q-) stands for their mined
hard negative; with them all passages of the batch are negatives. One softmax,
ℓ = −E log(e^{s+/τ} / Σ_p e^{s_p/τ}), equal texts masked. Instructions are not contrasted: (I-,Q+)
is no anchor. Differs from theirs: they also train on queries without an instruction, here that is
the setting `standard_share`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from sentence_transformers.base.losses import CachedLossMixin
from torch import Tensor, nn

from db.modules import load
from db.shape import Shape
from trainer.data.batches import NOWHERE
from trainer.objectives.losses import multivariate_loss, teacher_loss, univariate_loss
from trainer.objectives.names import Objective

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def scores_of_terms(
    objective: Objective, queries: Tensor, passages: Tensor, tables: dict[str, Any]
) -> tuple[Tensor, list[Tensor]]:
    """(positive (A,), negatives for each term (A, M), −inf where masked), of A anchors.

    queries (U, d), passages (V, d): unit vectors of the different texts, passages of the batch or
    of the whole training (`trainer.data.passage_pool`);
    tables: `matched_of` (N,), `passage_of` (N,), `crossed_of` (N, M), `mined_of` (mined,) or
    `others_of` (negatives of P), `text_of_right` and `right_of` as `batches` builds them.
    A = N, but for promptriever: there (I+,Q+), the first of a row's three triplets, is the anchor.
    """
    matched_of, passage_of = tables["matched_of"], tables["passage_of"]
    is_positive = torch.zeros(len(queries), len(passages), dtype=torch.bool, device=queries.device)
    known = matched_of != NOWHERE
    is_positive[matched_of[known], passage_of[known]] = True
    if "right_of" in tables:
        is_positive[tables["text_of_right"], tables["right_of"]] = True
    every = objective.anchor_every
    query_of, own_of = matched_of[::every], passage_of[::every]  # (A,)
    anchors, own = queries[query_of], passages[own_of]  # (A, d)
    positive = (anchors * own).sum(dim=1)  # (A,)
    negatives: list[Tensor] = []
    for term in objective.terms:
        if term == "P":  # (A, N + mined), or (A, negatives of the pool): iq_{i,i} against p_m
            others = passage_of
            if "mined_of" in tables:
                others = torch.cat([passage_of, tables["mined_of"]])
            elif "others_of" in tables:
                others = tables["others_of"]
            scores = (anchors @ passages.T)[:, others]
            mask = is_positive[query_of][:, others]
        elif term == "IQ":  # (A, N): p_i against iq_{k,k}
            scores = own @ queries[matched_of].T
            mask = is_positive.T[own_of][:, matched_of]
        else:  # (A, M): p_i against iq_{j,i}
            crossed_of = tables["crossed_of"]
            places = crossed_of.clamp(min=0)
            scores = torch.einsum("nd,nmd->nm", own, queries[places])
            mask = (crossed_of == NOWHERE) | is_positive[places, own_of[:, None]]
        negatives.append(scores.masked_fill(mask, -torch.inf))
    return positive, negatives


def objective_loss(
    objective: Objective,
    columns: Sequence[Tensor],
    tables: dict[str, Any],
    temperature: float,
    *,
    positive_as_printed: bool = False,
    of_terms: dict[str, Tensor] | None = None,
) -> Tensor:
    """The objective of the embeddings: columns queries (U, d) and passages (V, d).

    of_terms: receives each term's univariate loss, detached, where there are several terms.
    """
    unit = [nn.functional.normalize(column.float(), dim=1) for column in columns]
    queries, passages = unit
    if objective.baseline and objective.baseline.loss:
        own_loss = load(objective.baseline.loss)
        every = objective.anchor_every
        anchors = queries[tables["matched_of"][::every]]
        found: Tensor = own_loss(anchors, passages[tables["passage_of"][::every]], temperature)
        return found
    positive, negatives = scores_of_terms(objective, queries, passages, tables)
    if of_terms is not None and len(negatives) > 1:
        for term, scores in zip(objective.terms, negatives, strict=True):
            of_terms[term] = univariate_loss(positive.detach(), [scores.detach()], temperature)
    if objective.mode == "multi":
        return multivariate_loss(
            positive, negatives, temperature, positive_as_printed=positive_as_printed
        )
    return univariate_loss(positive, negatives, temperature)


@dataclass(frozen=True)
class Teaching:
    """How a teacher's scores are taught: the loss, its weight, what divides the scores."""

    kind: str = "kl"
    weight: float = 1.0
    temperature: float = 1.0


NO_TEACHING = Teaching()


def taught_loss(
    columns: Sequence[Tensor], tables: dict[str, Any], teaching: Teaching, temperature: float
) -> Tensor:
    """The teacher's loss over the anchors that the objective embeds; tables["teacher"] (N, S)."""
    scores, own, known = own_group_scores(columns, tables, tables["teacher"].shape[1])
    student = scores / temperature
    teacher = tables["teacher"][known].to(student) / teaching.temperature
    return teacher_loss(teaching.kind, student, teacher, own)


def own_group_scores(
    columns: Sequence[Tensor], tables: dict[str, Any], count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Cosines of the anchors that are embedded with their group's passages.

    Returns (scores (A, S), which of the S each anchor's own is (A,), the anchors among the N
    triplets (N,) as a mask); S = count scenarios, N = S × groups.
    """
    queries, passages = (nn.functional.normalize(each.float(), dim=1) for each in columns)
    matched_of = tables["matched_of"]
    of_group = tables["passage_of"].view(-1, count).repeat_interleave(count, dim=0)  # (N, S)
    known = matched_of != NOWHERE
    own = torch.arange(len(matched_of), device=matched_of.device) % count
    anchors = queries[matched_of[known]]
    return torch.einsum("ad,asd->as", anchors, passages[of_group[known]]), own[known], known


def group_loss(
    columns: Sequence[Tensor],
    tables: dict[str, Any],
    temperature: float,
    count: int,
) -> Tensor:
    """Mean cross-entropy of each anchor's own passage among its group's: −log softmax(s/τ)."""
    scores, own, _ = own_group_scores(columns, tables, count)
    return nn.functional.cross_entropy(scores / temperature, own)


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
        sizes: tuple[int, ...] = (),
        teaching: Teaching = NO_TEACHING,
        group_weight: float = 0.0,
        frozen: Tensor | None = None,
        shape: Shape,
    ) -> None:
        """sizes: the loss is the mean over the whole vectors and their first `sizes` numbers.
        frozen: the vectors (V, d) of all passages, where a batch has no column of them.
        """
        super().__init__()
        self.group_weight = group_weight
        self.frozen: Tensor | None
        self.register_buffer("frozen", frozen, persistent=False)
        self.model = model
        self.objective, self.temperature = objective.for_shape(shape), temperature
        self.scenarios = len(shape.roles)
        self.positive_as_printed = positive_as_printed
        self.sizes, self.teaching = sizes, teaching
        self.mini_batch_size = texts_at_once
        self.uses_gradient_cache = texts_at_once > 0
        self.of_terms: dict[str, Tensor] = {}  # of the last step
        self.tokens: Tensor | None = None  # of the last step, in this process
        self.value: Tensor | None = None  # of the last step
        self.on_first: Callable[[Sequence[dict[str, Tensor]], dict[str, Tensor]], None] | None = (
            None
        )

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: dict[str, Tensor]
    ) -> Tensor:
        columns = list(sentence_features)
        tokens = torch.stack([column["attention_mask"].sum() for column in columns]).sum()
        # Several batches make one step where gradients are accumulated.
        self.tokens = tokens if self.tokens is None else self.tokens + tokens
        if self.on_first is not None:
            self.on_first(columns, labels)
            self.on_first = None
        if self.uses_gradient_cache:
            loss = self.forward_cached(columns, labels)  # type: ignore[arg-type]
        else:
            loss = self.calculate_loss(
                [[self.model(column)["sentence_embedding"]] for column in columns], labels
            )
        self.value = loss.detach()
        return loss

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Any = None, *, with_backward: bool = False
    ) -> Tensor:
        """The objective from the embeddings of the two columns."""
        columns = [torch.cat(parts) for parts in reps]
        if "rows_of" in labels:  # several processes, each with its share of the texts
            rows_of = labels["rows_of"].tolist()
            columns = [gather(own, rows) for own, rows in zip(columns, rows_of, strict=True)]
        if self.frozen is not None:
            columns.append(self.frozen)
        loss = self._objective(columns, labels, self.of_terms)
        if self.sizes:
            parts = [
                self._objective([column[:, :size] for column in columns], labels)
                for size in self.sizes
            ]
            loss = torch.stack([loss, *parts]).mean()
        if "teacher" in labels:
            taught = taught_loss(columns, labels, self.teaching, self.temperature)
            self.of_terms["teacher"] = taught.detach()
            loss = loss + self.teaching.weight * taught
        if self.group_weight:
            own = group_loss(columns, labels, self.temperature, self.scenarios)
            self.of_terms["group"] = own.detach()
            loss = loss + self.group_weight * own
        if with_backward:
            loss.backward()
            loss = loss.detach()
        return loss

    def _objective(
        self,
        columns: list[Tensor],
        tables: dict[str, Any],
        of_terms: dict[str, Tensor] | None = None,
    ) -> Tensor:
        return objective_loss(
            self.objective,
            columns,
            tables,
            self.temperature,
            positive_as_printed=self.positive_as_printed,
            of_terms=of_terms,
        )


# A collated batch as the loss takes it, for steps outside the trainer's loop.
def columns_of(
    batch: Mapping[str, Any], device: torch.device
) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    """(the columns queries and passages, the tables), tensors on the device."""
    tables = {name: table.to(device) for name, table in batch["label"].items()}
    columns: dict[str, dict[str, Any]] = {}
    for key, value in batch.items():
        if key == "label":
            continue
        column, _, name = key.partition("_")
        is_tensor = isinstance(value, Tensor)
        columns.setdefault(column, {})[name] = value.to(device) if is_tensor else value
    return list(columns.values()), tables


# Embeddings of all processes in each of them, with gradients.
#
# Every process computes the whole loss from the gathered embeddings (N, d), so each already holds
# the gradient of all of them: backward takes this process's own rows, and no message is sent. They
# are multiplied by the number of processes, because DDP and FSDP divide the sum of the processes'
# weight gradients by it.
class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor) -> Tensor:
        parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, own)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        count = dist.get_world_size()
        return gradient.chunk(count)[dist.get_rank()] * count


def gather(embeddings: Tensor, rows: int) -> Tensor:
    """(texts of this process, d) → (processes × rows, d); shares are filled up with zeros."""
    own = embeddings[:rows]
    filled = torch.nn.functional.pad(own, (0, 0, 0, rows - len(own)))
    gathered: Tensor = _Gather.apply(filled.contiguous())  # type: ignore[no-untyped-call]
    return gathered
