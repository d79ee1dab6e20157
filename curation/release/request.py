"""What a release is made of: the request of an export, and the config of its job."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import field_validator, model_validator

from analysis.files.storage import place_of
from db.requests import Request, option


class ReleasePlan(Request):
    """A release: which groups of which runs, in which splits and files."""

    datasets: tuple[str, ...] = option(
        (),
        "Name of the dataset; repeatable: one release of several.",
        names=("--dataset",),
    )
    out: str = option(..., "A new folder for the release, or a URL as s3://BUCKET/FOLDER.")
    format: Literal["parquet", "jsonl", "csv"] = option("parquet", "Format of the files.")
    runs: tuple[int, ...] = option(
        (),
        "Default: the latest finished run of each dataset; repeatable.",
        names=("--run",),
    )
    reviews: Literal["not-rejected", "approved"] = option(
        "not-rejected",
        "Groups that no person rejected, reviewed or not; or only those that a person approved.",
    )
    include_dropped: bool = option(
        False, "Include dropped groups, with the drop reason.", title="Include dropped groups"
    )
    study_id: int | None = option(
        None, "Only groups that have items in this study.", names=("--study",), title="Study"
    )
    sources: tuple[str, ...] = option((), "Only pairs of this source.", names=("--source",))
    languages: tuple[str, ...] = option((), "Only this language.", names=("--language",))
    split_by: Literal["train", "dataset", "source"] = option(
        "train", "Name splits train and test, or after the dataset or each source."
    )
    held_out: float = option(
        0.0,
        "Share of groups in held-out splits, which share no text with the others.",
        title="Held-out share",
        ge=0,
        lt=1,
    )
    held_out_by: Literal["text", "source"] = option(
        "text", "Hold out groups by themselves, or whole sources.", title="Held out by"
    )
    seed: int = option(0, "Seed of the sampling.")
    configs: tuple[Literal["default", "provenance", "triplets", "judgments"], ...] = option(
        (),
        "Only these configurations (default is always included); repeatable. Default: all.",
        names=("--config",),
        title="Configurations",
    )
    views: tuple[Literal["sentence-transformers", "tevatron", "promptriever"], ...] = option(
        (),
        "Add a configuration in the format of another trainer.",
        names=("--view",),
        title="Also export for",
    )
    balance: Literal["none", "source"] = option(
        "none",
        "Sample as many groups of every source as the rarest source has.",
        title="Groups per source",
    )
    groups_per_part: int = option(
        50_000,
        "An interrupted export resumes after the last complete file.",
        names=("--groups-per-file",),
        title="Groups per file",
        ge=1,
    )
    accept_licences: bool = option(
        False,
        "Allow mixing licences with incompatible terms.",
        title="I am permitted to combine these licences",
    )
    leave_out_contaminated: bool = option(
        False,
        "Leave out groups that overlap with evaluation sets (`analyses contamination`).",
        title="Exclude overlaps with evaluation sets",
    )
    name: str = option("", "Title on the card; default: the dataset's name.")

    @model_validator(mode="before")
    @classmethod
    def _earlier(cls, given: Any) -> Any:
        """A config of an earlier version named one `dataset`, and its `run_id`."""
        if not isinstance(given, Mapping) or not given.keys() & {"dataset", "run_id"}:
            return given
        read = {key: value for key, value in given.items() if key not in ("dataset", "run_id")}
        named, run_id = given.get("dataset"), given.get("run_id")
        return {
            "datasets": (named,) if named is not None else (),
            "runs": (run_id,) if run_id is not None else (),
            **read,
        }

    @field_validator("out")
    @classmethod
    def _place(cls, out: str) -> str:
        """A folder as an absolute path: the job may run elsewhere."""
        return str(place_of(out))
