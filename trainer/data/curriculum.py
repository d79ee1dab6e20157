"""The order of groups under a curriculum: those the validator was most sure of come first."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from sentence_transformers.base.sampler import SetEpochMixin
from torch.utils.data import BatchSampler

from trainer.data.groups import Group


class ConfidentFirst(SetEpochMixin, BatchSampler):
    """Batches of places. The first epoch goes from the most to the least confident group, later
    ones are in random order; equal confidences too, and groups without one come last.

    The order depends on seed and epoch alone, so a training that goes on after a kill finds it.
    """

    def __init__(self, groups: Sequence[Group], batch_size: int, seed: int) -> None:
        self.confidence = [group.confidence for group in groups]
        met: Counter[tuple[str, ...]] = Counter()
        self.copy: list[int] = []
        for group in groups:
            self.copy.append(met[group.texts])
            met[group.texts] += 1
        self.batch_size, self.seed, self.epoch = batch_size, seed, 0

    def __iter__(self) -> Iterator[list[int]]:
        order = list(range(len(self.confidence)))
        random.Random(f"{self.seed} {self.epoch}").shuffle(order)
        if self.epoch == 0:
            order.sort(key=lambda place: (self.copy[place], _doubt(self.confidence[place])))
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size]

    def __len__(self) -> int:
        return -(-len(self.confidence) // self.batch_size)


def _doubt(confidence: float | None) -> tuple[bool, float]:
    return confidence is None, -(confidence or 0.0)
