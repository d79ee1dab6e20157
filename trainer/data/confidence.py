"""How sure the validator was of each group of a release, for a curriculum.

Read from the release's `provenance` files: `confidence` (the least share of votes, or margin of
scores, over the group's scenarios), or where there is none the share of all judgments that chose
the passage that was meant.
"""

from dataclasses import replace

from db.errors import BadInput
from trainer.data.groups import Group
from trainer.data.release_files import SUFFIXES, ReleaseData, rows_of_file


def confidence_of(release: ReleaseData) -> dict[str, float]:
    """{group id: confidence} of the groups that have one. Raises BadInput where none has."""
    folder = release.path / "provenance"
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    found: dict[str, float] = {}
    for file in files:
        if file.suffix not in SUFFIXES:
            continue
        for _, row in rows_of_file(file, file.relative_to(release.path)):
            confidence, judged = row.get("confidence"), row.get("judgments")
            if confidence is None and judged:
                confidence = (row.get("judgments_as_meant") or 0) / judged
            if confidence is not None and row.get("group_id") is not None:
                found[str(row["group_id"])] = float(confidence)
    if not found:
        raise BadInput(
            f"curriculum needs judgments, and {release.path} has none in `provenance/`: export it "
            "with the configuration provenance from a validated run, or give curriculum=off"
        )
    return found


def with_confidence(groups: list[Group], release: ReleaseData) -> list[Group]:
    """The groups, each with its confidence where the release has one."""
    found = confidence_of(release)
    return [replace(group, confidence=found.get(group.group_id)) for group in groups]
