"""The passages of a training whose passages are not trained: vectors once, negatives for all.

With `trained_side=query` the base model embeds every training passage before the first step, and
those of a corpus of which negatives are mined. The loss reads these vectors instead of a column of
the batch, so each of them can be a negative of each anchor at the cost of one product.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trainer.data.groups import Group, plain
from trainer.settings.template import Template

if TYPE_CHECKING:
    from torch import Tensor

ALL = -1


@dataclass(frozen=True)
class PassagePool:
    """vectors (V, d), of unit length; place_of: each passage's row; right_of: the rows of the
    passages that are right for a text made by the template, in any training group; negatives: the
    rows that are negatives of every anchor, besides those of its batch."""

    vectors: "Tensor"
    place_of: Mapping[str, int]
    right_of: Mapping[str, Sequence[int]]
    negatives: frozenset[int]


def new_passages(corpus: Sequence[str], own: Sequence[str]) -> list[str]:
    """The passages of a corpus, sorted, but for those that are own ones in other letters."""
    known = set(map(plain, own))
    return sorted(text for text in set(corpus) if plain(text) not in known)


def pool_passages(
    groups: Sequence[Group],
    template: Template,
    encode: Callable[[Sequence[str]], np.ndarray],
    negatives: int,
    seed: int,
    corpus: Sequence[str] = (),
) -> PassagePool:
    """The different passages of the groups and of a corpus, embedded by `encode` (texts → unit
    vectors).

    negatives: how many of the groups', chosen by the seed, are negatives of all anchors; ALL: each.
    """
    import torch

    triplets = [triplet for group in groups for triplet in group.triplets()]
    own = sorted({passage for *_, passage in triplets})
    passages = [*own, *new_passages(corpus, own)]
    place_of = {passage: place for place, passage in enumerate(passages)}
    right_of: dict[str, set[int]] = {}
    for instruction, query, passage in triplets:
        right_of.setdefault(template.apply(instruction, query), set()).add(place_of[passage])
    count = len(own) if negatives == ALL else min(negatives, len(own))
    return PassagePool(
        torch.from_numpy(np.ascontiguousarray(encode(passages), dtype=np.float32)),
        place_of,
        {text: sorted(places) for text, places in right_of.items()},
        frozenset(random.Random(seed).sample(range(len(own)), count)),
    )
