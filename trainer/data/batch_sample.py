"""Texts of a batch as the model sees them: cut, with special tokens, packed where rows are."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trainer.data.batches import PASSAGES

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

MAX_TEXTS = 3


def sample_of(
    model: "SentenceTransformer",
    columns: Sequence[Mapping[str, "Tensor"]],
    tables: Mapping[str, "Tensor"],
    limit: int = MAX_TEXTS,
) -> dict[str, list[str]]:
    """The first matched and crossed queries and passages, decoded from their tokens, no padding.

    Packed rows hold both kinds of queries: they are shown whole, as `matched`.
    """
    queries, *others = columns
    ids, mask = queries["input_ids"], queries["attention_mask"]
    matched = int(tables["matched"]) if "matched" in tables else len(ids)

    def decoded(ids: "Tensor", mask: "Tensor") -> list[str]:
        rows = zip(ids[:limit], mask[:limit], strict=True)
        return [
            model.tokenizer.decode(row[kept.bool()].tolist(), skip_special_tokens=False)
            for row, kept in rows
        ]

    found = {
        "matched": decoded(ids[:matched], mask[:matched]),
        "crossed": decoded(ids[matched:], mask[matched:]),
    }
    if others:  # passages that are not trained are no column of a batch
        found[PASSAGES] = decoded(others[0]["input_ids"], others[0]["attention_mask"])
    return {name: texts for name, texts in found.items() if texts}
