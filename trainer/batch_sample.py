"""Texts of a batch as the model sees them: cut, with special tokens, packed where rows are."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trainer.batches import CROSSED, MATCHED, PASSAGES

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

MOST = 3
NAMES = (MATCHED, PASSAGES, CROSSED)


def sample_of(
    model: "SentenceTransformer", columns: Sequence[Mapping[str, "Tensor"]], most: int = MOST
) -> dict[str, list[str]]:
    """The first rows of every column of a batch, decoded from their tokens without the padding."""
    found: dict[str, list[str]] = {}
    for name, column in zip(NAMES, columns, strict=False):
        rows = zip(column["input_ids"][:most], column["attention_mask"][:most], strict=True)
        found[name] = [
            model.tokenizer.decode(ids[mask.bool()].tolist(), skip_special_tokens=False)
            for ids, mask in rows
        ]
    return found
