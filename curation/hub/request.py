"""What a push to the Hub and a pull from it take: the requests, and the configs of their jobs."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import field_validator, model_validator

from db.errors import BadInput
from db.requests import Request, absolute, option


class PushStart(Request):
    """A push of a release (as a dataset) or of a checkpoint (as a model)."""

    release_id: int | None = option(None, "The release to push.", names=())
    checkpoint_id: int | None = option(None, "The checkpoint to push.", names=())
    repo: str = option(
        ..., "Repository; created if missing.", title="Repository", metavar="USER/NAME"
    )
    public: bool = option(
        False,
        "Make a new repository public; default: private.",
        title="Make a new repository public",
    )
    dry_run: bool = option(False, "Only show what would change.")
    pull_request: bool = option(False, "Push as a pull request.")
    branch: str | None = option(None, "Push to this branch; created if missing.")
    replace: bool = option(False, "Allow overwriting the contents of the repository.")

    @field_validator("repo", "branch")
    @classmethod
    def _stripped(cls, name: str | None) -> str | None:
        return name and name.strip()

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.release_id is None) == (self.checkpoint_id is None):
            raise BadInput("give either a release or a checkpoint", code="request_invalid")
        if self.pull_request + bool(self.branch) + self.replace > 1:
            raise BadInput(
                "give at most one of pull request, branch and replace", code="request_invalid"
            )
        if self.repo.count("/") != 1 or not all(self.repo.split("/")):
            raise BadInput(
                f"{self.repo!r} is no name of one",
                "a repository is named USER/NAME",
                code="repository_name_invalid",
            )
        return self


class DatasetPull(Request):
    """An import of a dataset of the Hub, or of a folder."""

    repo: str = option(
        ..., "A dataset of the Hub, a folder or a URL.", names=(), metavar="USER/NAME"
    )
    name: str = option(..., "Name of the dataset; created if missing.", names=("--dataset",))
    revision: str | None = option(None, "Branch, tag or commit; default: main.")
    licence: str = option("", "Default: the licence of the card.")
    skip_bad: bool = option(False, "Skip bad rows and list them.")
    layout: Literal["groups", "pairs", "promptriever", "followir", "triplets"] | None = option(
        None, "Default: found by the columns."
    )
    columns: Mapping[str, str] = option(
        {}, "Map a column; repeatable.", names=("--column",), metavar="OURS=THEIRS"
    )
    split: str | None = option(None, "Only files whose name starts with it, as train.")
    limit: int | None = option(None, "Maximum number of pairs.", ge=1)
    without_negatives: bool = option(False, "Leave out negative passages.")

    @model_validator(mode="before")
    @classmethod
    def _of_before(cls, given: Any) -> Any:
        """Earlier configs had how to read the rows under `wanted`."""
        if not isinstance(given, dict) or "wanted" not in given:
            return given
        rest = {name: value for name, value in given.items() if name != "wanted"}
        wanted = dict(given["wanted"] or {})
        rest["without_negatives"] = not wanted.pop("negatives", True)
        return rest | wanted | {"licence": rest.get("licence") or ""}

    @field_validator("repo")
    @classmethod
    def _absolute(cls, repo: str) -> str:
        return absolute(repo) if is_folder(repo) else repo


def is_folder(given: str) -> bool:
    """Whether this names a folder (by `./`, `/`, `~` or a URL), not a repository of the Hub."""
    return "://" in given or given.startswith((".", "/", "~"))
