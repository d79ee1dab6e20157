"""What type checkers know of the Python door; mypy reads this file, and nothing runs it.

A name that is no key, or a wrong one of a row, is an error: each is ignored here by its code, and
an ignored line without an error fails.
"""

from typing import assert_type

import inf_studio as inf
from inf_studio.client import Run


def of_a_run(run: Run) -> None:
    """Attributes, rows of lists, and what calls return."""
    assert_type(run.status, str)
    assert_type(run.budget_usd, float | None)
    assert_type(run.wait().kept, int)
    assert_type(run.groups()[0]["verdict"], str | None)
    assert_type(run.groups()[:2][0]["id"], int)
    _ = run.statuss  # type: ignore[attr-defined]
    _ = run.groups()[0]["verdicts"]  # type: ignore[typeddict-item]
    study = run.studies.create(items=1, overlap=1)
    assert_type(study.agreement().kappa, float | None)
    assert_type(study.agreement().interval, tuple[float, float] | None)
    assert_type(study.judges[0]["judge"], str)
    assert_type(study.judgments()[0]["choice"], str)
    release = run.release()
    assert_type(release.groups, int | None)
    assert_type(release.train().wait().model.path, str)
    assert_type(inf.evaluate([], release).compare().method, str)


def of_a_studio(studio: inf.Studio) -> None:
    """What lists and gets return."""
    data = studio.datasets.get(1)
    assert_type(data.estimate().usd, float | None)
    assert_type(data.list_pairs()[0]["query"], str)
    assert_type(studio.jobs.list()[0]["status"], str)
    assert_type(studio.releases.get(1).path, str)
