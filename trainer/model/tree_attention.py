"""Attention over packed rows at the cost of the texts alone.

In a packed row (`trainer.model.packing`) a token looks at the row's prefix and at its own segment,
a small part of the row. Attention under a mask computes the whole square of the row and throws most
of it away; here a segment's scores are those with the prefix and those within the segment, under
one softmax, and the prefix is computed by itself: with m segments of s tokens

    m s (p + s) + p²   instead of   (p + m s)²   scores a row.

Where that is more than a third of the scores (short rows, very uneven segments) the mask is used:
it is about as fast there and takes less memory (`bench/training.py --only parts`).

It is registered with transformers as an attention implementation that is exactly `sdpa` for every
batch that brings no layout, and for layers that want more than scores and a mask (soft caps,
sinks, biases). Heads that share a key (grouped queries) stand as one block of questions, so keys
and values are never repeated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import dropout as drop
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "prefix_tree"
MIN_SAVED = 3.0  # scores under a mask for each score by parts
BEYOND = ("softcap", "s_aux", "position_bias")  # what only transformers' own function knows


@dataclass(frozen=True)
class TreeLayout:
    """Where the parts of packed rows lie: of `rows` rows of `length` tokens.

    width: p, the longest prefix; unseen (rows, p): beyond the row's own prefix (None: nowhere);
    segments (rows, m, s): the column of each token of each segment, 0 where there is none;
    mask: the dense mask of the same rows in a number type, for layers that cannot go by parts;
    own (rows, length): whether a token is of a segment; within (rows, length): its place among
    the row's segments (m × s) if it is, else its place in the prefix, 0 for padding.
    """

    width: int
    unseen: Tensor | None
    segments: Tensor
    own: Tensor
    within: Tensor
    mask: Callable[[torch.dtype], Tensor]

    @property
    def saved(self) -> float:
        """Scores of a row under a mask for each score of it by parts."""
        each, longest = self.segments[0].numel(), self.segments.shape[2]
        return self.own.shape[1] ** 2 / (each * (self.width + longest) + self.width**2)

    def places(self, groups: int) -> Tensor:
        """(rows, groups, m, s): where states (rows, length, groups) hold each segment's tokens."""
        rows, length = self.own.shape
        row = torch.arange(rows, device=self.own.device)[:, None, None, None]
        group = torch.arange(groups, device=self.own.device)[:, None, None]
        return (row * length + self.segments[:, None]) * groups + group

    def sources(self, groups: int) -> Tensor:
        """(rows, length, groups): where a token's state lies among the states of the parts.

        These are the prefixes (rows, p, groups) and then the segments (rows, groups, m, s).
        """
        rows = len(self.own)
        row = torch.arange(rows, device=self.own.device)[:, None, None]
        group = torch.arange(groups, device=self.own.device)
        within, each = self.within[:, :, None], self.segments[0].numel()
        of_segment = (rows * self.width + row * each) * groups + group * each + within
        return torch.where(
            self.own[:, :, None], of_segment, (row * self.width + within) * groups + group
        )


def tree_layout(
    segments: Tensor, prefix: int, padding: int, mask: Callable[[torch.dtype], Tensor]
) -> TreeLayout:
    """The layout of `segment_ids` (rows, length): the prefix first, then numbered segments."""
    rows, length = segments.shape
    shared, own = segments == prefix, segments > prefix
    number = (segments - prefix - 1).clamp(min=0)
    count = torch.zeros(
        rows, max(int(segments.max()) - prefix, 1), dtype=torch.long, device=segments.device
    ).scatter_add_(1, number, own.long())  # (rows, m): tokens of each segment
    longest = int(count.max())
    before = shared.sum(1, keepdim=True)  # (rows, 1)
    width = int(before.max())
    start = count.cumsum(1) - count + before  # (rows, m): segments follow one another
    offsets = torch.arange(longest, device=segments.device)
    column = torch.arange(length, device=segments.device).expand(rows, length)
    within = torch.where(own, number * longest + column - start.gather(1, number), column)
    return TreeLayout(
        width=width,
        unseen=None if bool((before == width).all()) else ~shared[:, :width],
        segments=torch.where(offsets < count[:, :, None], start[:, :, None] + offsets, 0),
        own=own,
        within=within.masked_fill(segments == padding, 0),
        mask=mask,
    )


def tree_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    tree: TreeLayout | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """transformers' attention function: (rows, heads, length, d) → (rows, length, heads, d)."""
    if tree is None or any(kwargs.get(name) is not None for name in BEYOND):
        if tree is not None:  # the mask that came masks nothing
            attention_mask = tree.mask(query.dtype)
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
    rows, heads, length, _ = query.shape
    groups, width = key.shape[1], tree.width  # groups: heads with keys of their own
    several, count = heads // groups, tree.segments.shape[1]
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    dropout = dropout if module.training else 0.0
    places = tree.places(groups)

    def of_segments(states: Tensor) -> Tensor:  # (rows, groups, m, s, heads of a group × d)
        flat = states.transpose(1, 2).reshape(rows * length * groups, -1)
        return flat.index_select(0, places.flatten()).view(*places.shape, -1)

    asking = (of_segments(query) * scale).unflatten(4, (several, -1)).flatten(3, 4)
    key_own, value_own = of_segments(key), of_segments(value)  # (rows, groups, m, s, d)
    key_shared, value_shared = key[:, :, :width], value[:, :, :width]  # (rows, groups, p, d)
    shared = (asking.flatten(2, 3) @ key_shared.transpose(2, 3)).unflatten(2, (count, -1))
    if tree.unseen is not None:
        unseen = tree.unseen[:, None, None, None]
        shared = shared.masked_fill(unseen, torch.finfo(shared.dtype).min)
    within = asking @ key_own.transpose(3, 4)  # (rows, groups, m, s × several, s)
    after = torch.ones(places.shape[3], places.shape[3], dtype=torch.bool, device=query.device)
    after = after.triu(1).repeat_interleave(several, 0)
    within = within.masked_fill(after, torch.finfo(within.dtype).min)
    scores = torch.cat([shared, within], 4)
    precise = torch.promote_types(scores.dtype, torch.float32)
    weights = scores.softmax(4, dtype=precise).to(value.dtype)
    weights = drop(weights, dropout)
    of_shared = (weights[..., :width].flatten(2, 3) @ value_shared).unflatten(2, (count, -1))
    seen = of_shared + weights[..., width:] @ value_own  # (rows, groups, m, s × several, d)

    prefix = scaled_dot_product_attention(
        query[:, :, :width],
        key_shared,
        value_shared,
        is_causal=True,
        dropout_p=dropout,
        scale=scale,
        enable_gqa=several > 1,
    ).transpose(1, 2)  # (rows, p, heads, d)
    size = several * value.shape[3]
    parts = torch.cat([prefix.reshape(-1, size), seen.reshape(-1, size)])
    found = parts.index_select(0, tree.sources(groups).flatten())
    return found.view(rows, length, heads, -1), None


AttentionInterface.register(NAME, tree_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
