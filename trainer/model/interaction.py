"""Interaction II: instruction and query encoded apart, then joined by cross-attention (Eq. 4).

A text of a query is "instruction␟query" (the unit separator, U+001F, is the template); a text
without it (a passage, a query alone) is pooled as by any SentenceTransformer. Each different
instruction and each different query of a batch goes through the transformer once, so the N²
instruction-queries of the I term cost 2N encodings. At inference the states of instructions are
remembered: an instruction used again is not encoded again.

Differs from the paper. Eq. 4 as printed is over pooled vectors, where the softmax of a 1 × 1 matrix
is 1 and the instruction drops out; it is taken over tokens (definitions 2). W_i, W_q1 and W_q2
start as identities (the paper does not say): the untrained model then mixes the query's own token
states, in the space of the passages. A prefix stands before both texts.
"""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers.sentence_transformer.modules import Transformer
from torch import Tensor, nn

from trainer.settings.template import SEPARATOR

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

FILE = "interaction.safetensors"
MATRICES = ("w_i", "w_q1", "w_q2")
REMEMBERED = 1024


def cross_attend(
    instruction: Tensor, instruction_mask: Tensor, query: Tensor, query_mask: Tensor, value: Tensor
) -> Tensor:
    """iq (B, d) = mean over instruction tokens of softmax(K_I K_Qᵀ / √d) V_Q.

    instruction (B, L_I, d) = H_I W_i, query (B, L_Q, d) = H_Q W_q1, value (B, L_Q, d) = H_Q W_q2;
    masks (B, L) are 1 at tokens and 0 at padding, which is −inf in the softmax and left out of the
    mean. Every row needs a token on both sides.
    """
    scores = instruction @ query.transpose(1, 2) / instruction.shape[-1] ** 0.5  # (B, L_I, L_Q)
    scores = scores.masked_fill(query_mask[:, None] == 0, -torch.inf)
    read = scores.softmax(dim=-1) @ value  # (B, L_I, d)
    weights = instruction_mask.to(read.dtype)[:, :, None]
    joined: Tensor = (read * weights).sum(dim=1) / weights.sum(dim=1)
    return joined


class CrossAttentionTransformer(Transformer):
    """A Transformer whose token states of "instruction␟query" are the one vector iq.

    What follows (pooling of any kind, normalisation) leaves that vector as it is.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add_interaction()

    def add_interaction(self) -> None:
        """The three matrices, as identities."""
        size = self.get_embedding_dimension()
        for name in MATRICES:
            matrix = nn.Linear(size, size, bias=False)
            nn.init.eye_(matrix.weight)
            setattr(self, name, matrix.to(self.model.device, self.model.dtype))
        self.states: OrderedDict[bytes, Tensor] = OrderedDict()

    def train(self, mode: bool = True) -> Self:
        """Training changes the weights: what was remembered is forgotten."""
        if mode:
            self.states.clear()
        return super().train(mode)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self.states.clear()
        super()._load_from_state_dict(*args, **kwargs)

    def preprocess(  # type: ignore[override]  # texts alone, no images or messages
        self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Tokens of the queries and, where there are any, of their instructions.

        `instruction_ids` and `instruction_mask` are (B, 1, L_I), so that cutting a batch by rows
        (gradient caching) takes them along and does not take them for the queries' tokens.
        """
        if kwargs.get("task") == "document":
            return super().preprocess(inputs, prompt=prompt, **kwargs)
        parts = [text.partition(SEPARATOR) for text in inputs]
        features = super().preprocess(
            [query if separator else whole for whole, separator, query in parts],
            prompt=prompt,
            **kwargs,
        )
        features.pop("prompt_length", None)
        if any(separator for _, separator, _ in parts):
            instructions = super().preprocess(
                [instruction if separator else "" for instruction, separator, _ in parts],
                prompt=prompt,
                **kwargs,
            )
            has = torch.tensor([bool(separator) for _, separator, _ in parts])
            mask = instructions["attention_mask"] * has[:, None]
            features["instruction_ids"] = instructions["input_ids"][:, None]
            features["instruction_mask"] = mask[:, None]
        return features

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Token states; of a pair the vector iq at the first place, the rest masked."""
        if "instruction_ids" not in features:
            found = super().forward(features, **kwargs)
            if self.training:  # DDP waits for every weight in every call
                for name in MATRICES:
                    for weights in getattr(self, name).parameters():
                        found["token_embeddings"] = found["token_embeddings"] + 0.0 * weights.sum()
            return found
        mask = features["attention_mask"]  # (B, L_Q)
        ids, rows = _different(features["input_ids"], mask)
        different = self._encode(*ids)  # (U, L_Q, d)
        states = different[rows]  # (B, L_Q, d)
        instruction_mask = features["instruction_mask"][:, 0]  # (B, L_I)
        pairs = (instruction_mask.any(dim=1) & mask.any(dim=1)).nonzero()[
            :, 0
        ]  # places of the pairs
        if len(pairs):
            instructions, owners = _different(
                features["instruction_ids"][pairs, 0], instruction_mask[pairs]
            )
            known, known_mask = self._instructions(*instructions)
            joined = cross_attend(
                self.w_i(known)[owners],
                known_mask[owners],
                self.w_q1(different)[rows[pairs]],
                mask[pairs],
                self.w_q2(different)[rows[pairs]],
            )
            alone = states.new_zeros((len(pairs), *states.shape[1:]))
            alone[:, 0] = joined.to(states.dtype)
            states, mask = states.index_put((pairs,), alone), mask.clone()
            mask[pairs] = 0
            mask[pairs, 0] = 1
        return {"token_embeddings": states, "attention_mask": mask}

    def _encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        features = {"input_ids": ids, "attention_mask": mask, "modality": "text"}
        found: Tensor = super().forward(features)["token_embeddings"]
        return found

    def _instructions(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """States and mask of instructions; remembered ones are not encoded again."""
        if self.training or torch.is_grad_enabled():
            return self._encode(ids, mask), mask
        keys = [row[on].cpu().numpy().tobytes() for row, on in zip(ids, mask.bool(), strict=True)]
        new = torch.tensor([n for n, key in enumerate(keys) if key not in self.states])
        if len(new):
            new = new.to(ids.device)
            encoded = self._encode(ids[new], mask[new])
            for place, row in zip(new.tolist(), encoded, strict=True):
                self.states[keys[place]] = row[mask[place].bool()]
        rows = [self.states[key] for key in keys]
        for key in keys:
            self.states.move_to_end(key)
        while len(self.states) > REMEMBERED:
            self.states.popitem(last=False)
        padded = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        lengths = torch.tensor([len(row) for row in rows], device=ids.device)
        places = torch.arange(padded.shape[1], device=ids.device)
        return padded, (places < lengths[:, None]).to(mask.dtype)

    def save(
        self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any
    ) -> None:
        """The transformer as any, and the three matrices next to it, as safetensors."""
        super().save(output_path, *args, safe_serialization=safe_serialization, **kwargs)
        matrices = {name: getattr(self, name).weight.detach().cpu().clone() for name in MATRICES}
        save_file(matrices, Path(output_path) / FILE)

    @classmethod
    def load(cls, model_name_or_path: str, *args: Any, **kwargs: Any) -> Self:
        """A saved one; a plain transformer without the file starts with identities."""
        loaded = super().load(model_name_or_path, *args, **kwargs)
        wanted = ("subfolder", "token", "cache_folder", "revision", "local_files_only")
        found = cls.load_file_path(
            model_name_or_path,
            filename=FILE,
            **{name: kwargs[name] for name in wanted if name in kwargs},
        )
        if found is not None:
            for name, weight in load_file(found).items():
                matrix = getattr(loaded, name)
                with torch.no_grad():
                    matrix.weight.copy_(weight.to(matrix.weight))
        return loaded


def attach_interaction(model: "SentenceTransformer") -> None:
    """Give a model of the usual kind Interaction II; one that has it keeps its own."""
    transformer: Any = model[0]
    if isinstance(transformer, CrossAttentionTransformer):
        return
    transformer.__class__ = CrossAttentionTransformer
    transformer.add_interaction()


def _different(ids: Tensor, mask: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """The different rows (ids, mask), and which of them each row is."""
    rows, places = torch.unique(torch.cat([ids, mask], dim=1), dim=0, return_inverse=True)
    width = ids.shape[1]
    return (rows[:, :width], rows[:, width:]), places
