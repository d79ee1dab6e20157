"""The metrics of a job as a test reads them: every point, by name and step."""

from typing import NamedTuple

from sqlalchemy.orm import Session

from db.jobs import jobs

ALL = 1_000_000  # a series up to this length is not thinned


class Point(NamedTuple):
    name: str
    step: int
    value: float


def metric_points(session: Session, job_id: int) -> list[Point]:
    """All points of a job, by name and step."""
    series = jobs.metric_series(session, [job_id], max_points=ALL).get(job_id, {})
    return [
        Point(name, step, value)
        for name, points in sorted(series.items())
        for step, value in points
    ]
