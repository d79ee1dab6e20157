"""What a job of judging is asked for, as commands, pages and the job's handler share it."""

from typing import Self

from pydantic import model_validator

from db.errors import BadInput
from db.requests import Request, option


class JudgeStart(Request):
    """Let a model answer what it has not judged of a study, or of all groups of a run.

    Without a judge the run's validator judges its edited groups, or the one of `group_id`.
    """

    study_id: int | None = option(None, "A study.", names=("--study",))
    run_id: int | None = option(
        None, "Instead of a study: every group of this run.", names=("--run",)
    )
    judge: str | None = option(None, "The judge; none: the run's validator.")
    group_id: int | None = option(None, "Only this edited group.", names=("--group",))

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.study_id is None) == (self.run_id is None):
            raise BadInput("judging is of a study or of a run", "name one", code="study_or_run")
        if self.judge is None and self.run_id is None:
            raise BadInput("no judge", "name one (`studies judge`)", code="no_judge")
        return self
