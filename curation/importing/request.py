"""What an import takes: the request, and the config of its job."""

from collections.abc import Mapping
from typing import Any

from pydantic import field_validator

from db.requests import Request, option, options_of


class DatasetImport(Request):
    """An import of pairs and passages, or of finished groups, into a dataset."""

    name: str = option("", "Name of the dataset; created if missing.", names=("--dataset",))
    pairs: str | None = option(
        None,
        "Columns query_id, query, passage_id, passage; a file, a pattern ('train-*') or a folder.",
        title="Or: pairs on the server",
        metavar="FILE",
        path="path",
    )
    passages: str | None = option(
        None,
        "Columns passage_id, text, title; as `pairs=`.",
        title="Or: passages on the server",
        metavar="FILE",
        path="path",
    )
    layout: str | None = option(
        None,
        "Read `pairs=` as a format of `datasets convert`.",
        names=("--as",),
        title="Format of the pairs",
        metavar="FORMAT",
    )
    split: str | None = option(None, "The part of a folder to take: test, dev or train.")
    columns: Mapping[str, str] = option(
        {},
        "Map a column (for one file: pairs.OURS=THEIRS); repeatable.",
        names=("--column",),
        metavar="OURS=THEIRS",
    )
    usual_columns: bool = option(False, "Map usual names (question, answer, …).")
    groups: tuple[str, ...] = option(
        (),
        "Instead of pairs: finished groups with InF-IR's seven columns; repeatable.",
        metavar="FILE",
        path="path",
    )
    source: str = option("", "Origin of the texts.")
    licence: str = option("", "Licence of the texts, e.g. cc-by-sa-3.0.")
    skip_bad: bool = option(
        False, "Skip bad rows and list them.", title="Skip bad rows and import the rest"
    )

    @field_validator("name", "source", "licence")
    @classmethod
    def _stripped(cls, text: str) -> str:
        return text.strip()

    @field_validator("split")
    @classmethod
    def _or_none(cls, split: str | None) -> str | None:
        return (split or "").strip() or None

    @field_validator("pairs", "passages", mode="before")
    @classmethod
    def _or_no_file(cls, given: str | None) -> str | None:
        return given or None

    @property
    def of_pairs(self) -> list[str]:
        """The options that were given and are of pairs alone."""
        names = ("columns", "usual_columns", "split", "layout", "passages")
        return [options_of(type(self), name)[0] for name in names if getattr(self, name)]

    @property
    def read_by(self) -> dict[str, Any]:
        """How files of pairs are read, as `import_dataset` takes it."""
        return self.model_dump(include={"columns", "layout", "split", "usual_columns"})
