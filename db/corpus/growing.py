"""Which pairs more groups could be grown from: those of chosen groups, and chosen ones."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.errors import BadInput
from db.tables import Dataset, Group, Pair

BATCH = 900  # ids per statement


class Growable(NamedTuple):
    """Pairs of one dataset by whether some run has kept a group of them; `elsewhere`: how many of
    the chosen pairs are of other datasets."""

    dataset: str
    without_kept: tuple[int, ...]
    with_kept: tuple[int, ...]
    elsewhere: int


def pairs_to_grow(
    session: Session, *, group_ids: Sequence[int], pair_ids: Sequence[int]
) -> Growable:
    """The pairs of these groups and these pairs, of the dataset that has most of them."""
    chosen = set(pair_ids)
    for part in _parts(group_ids):
        chosen |= set(session.scalars(select(Group.pair_id).where(Group.id.in_(part))))
    of_dataset: dict[int, int] = {}
    kept: set[int] = set()
    for part in _parts(sorted(chosen)):
        rows = session.execute(select(Pair.id, Pair.dataset_id).where(Pair.id.in_(part)))
        of_dataset.update((pair_id, dataset_id) for pair_id, dataset_id in rows)
        of_kept = select(Group.pair_id).where(Group.pair_id.in_(part), Group.verdict == "kept")
        kept |= set(session.scalars(of_kept))
    if not of_dataset:
        return Growable("", (), (), 0)
    dataset_id = Counter(of_dataset.values()).most_common(1)[0][0]
    mine = sorted(pair for pair, dataset in of_dataset.items() if dataset == dataset_id)
    return Growable(
        session.get_one(Dataset, dataset_id).name,
        tuple(pair for pair in mine if pair not in kept),
        tuple(pair for pair in mine if pair in kept),
        len(of_dataset) - len(mine),
    )


def query_ids_of(session: Session, dataset: str, pair_ids: Collection[int]) -> list[str]:
    """The ids in their source of those of the pairs that are of this dataset.

    Raises BadInput where none of them is.
    """
    query = select(Pair.external_id).join(Dataset, Dataset.id == Pair.dataset_id)
    query = query.where(Dataset.name == dataset, Pair.id.in_(pair_ids)).order_by(Pair.id)
    found = list(session.scalars(query))
    if not found:
        raise BadInput(
            f"no pair of dataset {dataset!r} is chosen",
            "choose others on the map, or all pairs",
            code="pairs_none_chosen",
        )
    return found


def were_grown(session: Session, pair_ids: Collection[int]) -> bool:
    """Whether some run has finished a group of one of the pairs."""
    query = select(Group.id).where(Group.pair_id.in_(pair_ids), Group.verdict.is_not(None))
    return session.scalar(query.limit(1)) is not None


def _parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]
