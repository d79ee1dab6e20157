"""Groups over the same pair in several runs of a release: one run's are kept, by a stated rule.

The same pair: query and positive passage are equal whatever their case and spacing, also where two
datasets contain it. Of the runs that have groups of it, the one with the best review wins
(approved, then edited, then without a review), then the one with a kept group before one with a
dropped group, then the run that was named first. Groups of one and the same run are never left out
here.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy.orm import Session

from analysis.text.splits import key_hash
from db.release.choice import pairs_of_groups

RULE = (
    "Where several runs have a group of the same pair (equal query and positive passage, whatever "
    "their case and spacing), the groups of one run are in the release: the best review first "
    "(approved, then edited), then kept before dropped, then the run that stands first."
)
REVIEWS = {"approve": 0, "edit": 1}
WITHOUT_REVIEW = 2


def without_duplicates(
    session: Session, ids_by_run: Mapping[int, "array[int]"]
) -> tuple["array[int]", dict[int, int]]:
    """The ids without those of losing runs, ascending; how many were left out, by run.

    ids_by_run: the chosen groups of every run, in the order of precedence.
    """
    best: dict[int, tuple[int, bool, int]] = {}
    for place, ids in enumerate(ids_by_run.values()):
        for _, key, rank in _ranked(session, ids):
            standing = (*rank, place)
            if key not in best or standing < best[key]:
                best[key] = standing
    found: array[int] = array("q")
    left_out: Counter[int] = Counter()
    for place, (run_id, ids) in enumerate(ids_by_run.items()):
        for group_id, key, _ in _ranked(session, ids):
            if best[key][2] == place:
                found.append(group_id)
            else:
                left_out[run_id] += 1
    return array("q", sorted(found)), {run_id: left_out[run_id] for run_id in ids_by_run}


def _ranked(session: Session, ids: Sequence[int]) -> Iterator[tuple[int, int, tuple[int, bool]]]:
    """(group, key of its pair, standing) of every group."""
    for batch in pairs_of_groups(session, ids):
        for each in batch:
            review = REVIEWS.get(each.review or "", WITHOUT_REVIEW)
            query, passage = (" ".join(text.lower().split()) for text in (each.query, each.passage))
            yield each.group_id, key_hash(f"{query}\0{passage}"), (review, each.verdict != "kept")
