"""What a push to the Hub takes: the request, and the config of its job."""

from typing import Self

from pydantic import model_validator

from db.errors import BadInput
from db.requests import Request, option


class PushStart(Request):
    """A push of a release (as a dataset) or of a checkpoint (as a model)."""

    release_id: int | None = option(None, "The release to push.", names=("--release",))
    checkpoint_id: int | None = option(None, "The checkpoint to push.", names=("--checkpoint",))
    repo: str = option(..., "Repository; created if missing.", metavar="USER/NAME")
    public: bool = option(False, "Make a new repository public; default: private.")
    dry_run: bool = option(False, "Only show what would change.")
    pull_request: bool = option(False, "Push as a pull request.")
    branch: str | None = option(None, "Push to this branch; created if missing.")
    replace: bool = option(False, "Allow overwriting the contents of the repository.")

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.release_id is None) == (self.checkpoint_id is None):
            raise BadInput("give either a release or a checkpoint", code="bad_request")
        if self.pull_request + bool(self.branch) + self.replace > 1:
            raise BadInput(
                "give at most one of pull request, branch and replace", code="bad_request"
            )
        if self.repo.count("/") != 1 or not all(self.repo.split("/")):
            raise BadInput(
                f"{self.repo!r}: a repository is named USER/NAME", code="repository_named_user_name"
            )
        return self
