"""Prefix-shared packing: instruction-queries of one instruction are encoded as one row.

With the I term every instruction of a batch is read with many queries. A causal model with the
instruction first computes the same states for it every time, so one row holds it once:

    row j:       [ I_j ... | Q_1 ...      | Q_2 ...      | ... ]
    positions:     0 … p-1 | p, p+1, …    | p, p+1, …    |
    may look at:   itself  | I_j, itself  | I_j, itself  |      (causal within each)

The embedding of (I_j, Q_k) is the state of the last token of Q_k, exactly as if the text stood
alone. What is shared is the longest common *token* prefix of the tokenised texts, so nothing
depends on whether a tokenizer splits "I Q" as it splits "I" and " Q".

Note: the mask must always be given. transformers reads positions that restart
without a mask as packed sequences of another kind. A KV cache is not used: with gradient
checkpointing transformers drops it with no more than a warning, and the embeddings are wrong.

The last layer's MLP is computed for the tokens alone whose states are read.
Of a packed row only the last token of each segment becomes an embedding. Attention still needs
every token (its keys and values), but what the last layer's MLP makes of the others goes nowhere:
it is not computed, and their states leave the layer without it. With few layers that is much of
the work (a fifth, with four), with many little.

The layer is transformers' own, so this is done by hooks that stand while it computes. With
gradient checkpointing every layer is computed again in the backward pass, when the hooks are gone:
nothing is left out then.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from torch import Tensor, nn

from trainer.model import tree_attention
from trainer.model.tree_attention import tree_layout


@contextmanager
def read_tokens_alone(backbone: Any, read: Tensor) -> Iterator[None]:
    """Within it the last layer's MLP computes the tokens `read` (rows, length); the rest gets 0."""
    layers = getattr(backbone, "layers", None)
    mlp = getattr(layers[-1], "mlp", None) if layers else None
    if not isinstance(mlp, nn.Module) or backbone.is_activation_checkpointing:
        yield
        return

    def take(_: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (args[0][read][None], *args[1:])  # (1, tokens read, d)

    def put_back(_: nn.Module, args: Any, output: Tensor) -> Tensor:
        states = output.new_zeros(*read.shape, output.shape[-1])
        return states.index_put((read,), output[0])

    hooks = [mlp.register_forward_pre_hook(take), mlp.register_forward_hook(put_back)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


PADDING, PREFIX = -1, 0
SEGMENTS = "segment_ids"
MAX_ROW_TOKENS = 4096


@dataclass(frozen=True)
class PackedRows:
    """Rows of tokens; order[n] is the text whose embedding comes out at place n."""

    input_ids: list[list[int]]
    segment_ids: list[list[int]]
    position_ids: list[list[int]]
    order: list[int]


def pack_rows(
    texts: Sequence[Sequence[int]], owners: Sequence[int], longest_row: int = MAX_ROW_TOKENS
) -> PackedRows:
    """Pack tokenised texts (instruction and query) that have the same owner (instruction).

    A row ends where the next text would make it longer than `longest_row` tokens.
    """
    by_owner: dict[int, list[int]] = {}
    for place, owner in enumerate(owners):
        by_owner.setdefault(owner, []).append(place)
    packed = PackedRows([], [], [], [])
    for places in by_owner.values():
        shared = _common_prefix([texts[place] for place in places])
        room = 0
        for place in places:
            rest = texts[place][shared:]
            if len(rest) > room:
                packed.input_ids.append(list(texts[place][:shared]))
                packed.segment_ids.append([PREFIX] * shared)
                packed.position_ids.append(list(range(shared)))
                room = max(longest_row - shared, len(rest))
            number = packed.segment_ids[-1][-1] + 1 if packed.segment_ids[-1] else 1
            packed.input_ids[-1].extend(rest)
            packed.segment_ids[-1].extend([number] * len(rest))
            packed.position_ids[-1].extend(range(shared, shared + len(rest)))
            packed.order.append(place)
            room -= len(rest)
    return packed


def as_features(packed: PackedRows, pad_token_id: int) -> dict[str, Tensor]:
    """The rows as tensors (rows, longest), padded on the right."""
    width = max(len(row) for row in packed.input_ids)

    def pad(rows: list[list[int]], value: int) -> Tensor:
        return torch.tensor([row + [value] * (width - len(row)) for row in rows])

    segments = pad(packed.segment_ids, PADDING)
    return {
        "input_ids": pad(packed.input_ids, pad_token_id),
        "attention_mask": (segments != PADDING).long(),
        "position_ids": pad(packed.position_ids, 0),
        SEGMENTS: segments,
    }


def tree_mask(segments: Tensor, dtype: torch.dtype) -> Tensor:
    """(rows, 1, length, length), added to attention scores: 0 may look, the least number may not.

    A token sees itself and what comes before it in the prefix and in its own segment.
    """
    length = segments.shape[1]
    before = torch.ones(length, length, dtype=torch.bool, device=segments.device).tril()
    own = segments[:, :, None] == segments[:, None, :]
    prefix = (segments == PREFIX)[:, None, :]
    itself = torch.eye(length, dtype=torch.bool, device=segments.device)
    allowed = (before & (own | prefix)) | itself
    mask = torch.zeros(allowed.shape, dtype=dtype, device=segments.device)
    return mask.masked_fill(~allowed, torch.finfo(dtype).min)[:, None]


def last_of_segments(segments: Tensor) -> Tensor:
    """(rows, length): True at the last token of every segment but the prefix."""
    after = torch.nn.functional.pad(segments[:, 1:], (0, 1), value=PADDING)
    return (segments > PREFIX) & (segments != after)


class PackingSentenceTransformer(SentenceTransformer):
    """A SentenceTransformer whose `forward` also takes packed rows.

    The packed path lies inside `forward` so that a wrapper (DDP, FSDP) sees it. A saved model
    names only its modules, so it loads as the plain class: at inference nothing is packed.
    """

    def forward(self, input: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        if SEGMENTS not in input:
            return super().forward(input, **kwargs)
        backbone: Any = self[0].model
        segments = input[SEGMENTS]
        read = last_of_segments(segments)
        with read_tokens_alone(backbone, read):
            states = backbone(
                input_ids=input["input_ids"],
                position_ids=input["position_ids"],
                use_cache=False,
                **self._who_sees_whom(segments),
            ).last_hidden_state  # (rows, length, d)
        features = {"sentence_embedding": states[read]}  # (texts, d)
        for module in list(self)[2:]:
            features = module(features)
        return features

    def _who_sees_whom(self, segments: Tensor) -> dict[str, Any]:
        """The mask, or the layout where attention is computed by it at less cost.

        With a layout the dense mask (rows × length²) is not built; a mask of four axes must be
        given all the same, or transformers would make one of the positions.
        """
        backbone: Any = self[0].model
        if backbone.config._attn_implementation == tree_attention.NAME:
            layout = tree_layout(segments, PREFIX, PADDING, partial(tree_mask, segments))
            if layout.saved >= tree_attention.MIN_SAVED:
                seen = torch.zeros(1, 1, 1, 1, dtype=backbone.dtype, device=segments.device)
                return {"attention_mask": seen, "tree": layout}
        return {"attention_mask": tree_mask(segments, backbone.dtype)}


def can_pack(model: SentenceTransformer) -> bool:
    """Whether the model is a causal transformer with last-token pooling.

    Not where it looks back through a window that a query can be longer than: only the flat path
    keeps to it, and the first batch may be too short to show that.
    """
    transformer: Any = model[0]
    if type(transformer) is not Transformer or len(model) < 2:  # Interaction II shares nothing
        return False
    pooling, window = model[1], getattr(transformer.config, "sliding_window", None)
    longest = transformer.query_length or model.max_seq_length
    return (
        (window is None or longest is None or longest <= window)
        and is_causal(transformer.config.model_type)
        and isinstance(pooling, Pooling)
        and pooling.pooling_mode in ("lasttoken", ("lasttoken",))
    )


def is_causal(model_type: str) -> bool:
    """Whether transformers knows the architecture as a decoder (and not as a masked model)."""
    from transformers.models.auto import modeling_auto

    return (
        model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        and model_type not in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    )


def enable_packing(model: SentenceTransformer) -> None:
    """Let the model take packed rows as well as plain ones."""
    model.__class__ = PackingSentenceTransformer
    backbone: Any = model[0].model
    if backbone.config._attn_implementation == "sdpa":
        backbone.set_attn_implementation(tree_attention.NAME)


def _common_prefix(texts: Sequence[Sequence[int]]) -> int:
    """How many tokens all texts begin with, leaving each at least one of its own."""
    longest = min(len(text) for text in texts) - 1
    first = texts[0]
    for place in range(longest):
        if any(text[place] != first[place] for text in texts):
            return place
    return max(longest, 0)
