"""Attention by parts equals attention under the mask: outputs and gradients."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from trainer.model.packing import PADDING, PREFIX, tree_mask
from trainer.model.tree_attention import tree_attention, tree_layout

ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.lists(st.integers(1, 4), min_size=1, max_size=4)),
    min_size=1,
    max_size=3,
)


def unneeded(dtype: torch.dtype) -> torch.Tensor:
    raise AssertionError("attention by parts builds no dense mask")


def segments_of(rows: list[tuple[int, list[int]]]) -> torch.Tensor:
    """`segment_ids` of rows given as (length of the prefix, lengths of the segments)."""
    rows = [
        [PREFIX] * prefix + [n for n, size in enumerate(sizes, 1) for _ in range(size)]
        for prefix, sizes in rows
    ]
    longest = max(map(len, rows))
    return torch.tensor([row + [PADDING] * (longest - len(row)) for row in rows])


@settings(deadline=None, max_examples=60)
@given(rows=ROWS, groups=st.sampled_from([1, 2, 4]), seed=st.integers(0, 1000))
def test_by_parts_equals_under_the_mask(
    rows: list[tuple[int, list[int]]], groups: int, seed: int
) -> None:
    torch.manual_seed(seed)
    heads, size, segments = 4, 3, segments_of(rows)
    states = [
        torch.randn(*segments.shape, count, size, dtype=torch.float64).transpose(1, 2)
        for count in (heads, groups, groups)
    ]
    real = segments != PADDING
    towards = torch.randn(*segments.shape, heads, size, dtype=torch.float64) * real[..., None, None]

    def run(by_parts: bool) -> list[torch.Tensor]:
        query, key, value = (state.clone().requires_grad_() for state in states)
        if by_parts:
            layout = tree_layout(segments, PREFIX, PADDING, unneeded)
            found, _ = tree_attention(torch.nn.Module(), query, key, value, None, tree=layout)
        else:
            repeated = (state.repeat_interleave(heads // groups, 1) for state in (key, value))
            mask = tree_mask(segments, torch.float64)
            found = scaled_dot_product_attention(query, *repeated, attn_mask=mask).transpose(1, 2)
        found.backward(towards)
        return [found[real], *(state.grad for state in (query, key, value))]

    for one, other in zip(run(True), run(False), strict=True):
        assert torch.allclose(one, other, atol=1e-12)


def test_the_saving_by_hand() -> None:
    # a row of 2 + 3 × 4 = 14 tokens: 196 scores under a mask; by parts 3 × 4 × (2 + 4) + 2² = 76
    assert tree_layout(segments_of([(2, [4, 4, 4])]), PREFIX, PADDING, unneeded).saved == 196 / 76
