"""What imports report: as the commands print it, a job stores it and an upload is answered."""

from db.errors import BadRow
from db.rows import Row


class FilesImported(Row):
    """What was imported into a dataset, and what was there; rows that were skipped, and why."""

    dataset_id: int
    dataset: str
    imported: int
    unchanged: int
    skipped: int
    bad_rows: tuple[BadRow, ...]
    notices: tuple[str, ...]


class PairsImported(FilesImported):
    """An import of pairs."""

    imported_passages: int
    imported_negatives: int
    unchanged_passages: int


class GroupsImported(FilesImported):
    """An import of groups, as a run."""

    run_id: int


class ImportPreview(Row):
    """The effect of an import: its first rows, their number, and the rows that would be refused."""

    dataset: str
    preview: tuple[dict[str, str], ...]
    pairs: int
    passages: int
    bad_rows: tuple[BadRow, ...]
    notices: tuple[str, ...]


class FromHub(Row):
    """From which commit; the layout of its rows, and how many were left out, by reason."""

    repo: str
    commit: str
    licence: str
    layout: str
    left_out: dict[str, int]


class PairsPulled(PairsImported, FromHub):
    """Pairs of a dataset of the Hub."""

    run_id: None = None


class GroupsPulled(GroupsImported, FromHub):
    """Groups of a dataset of the Hub."""
