"""A job that is done shows what came out of it, not its last step as if it still ran."""

import pytest

from app.jobs.outcome import outcome, summary
from db.tables import Job

RESULTS = {
    "curate": ({"kept": 562, "generated": 602}, "562 of 602 groups kept"),
    "judge": ({"items": 1, "judge": "m"}, "1 item judged by m"),
    "train": (
        {"loss_first": 1.0299, "loss_last": 0.8607},
        "loss 1.030 → 0.861 (means of first, last steps)",
    ),
    "evaluate": ({"models": [1, 2], "benchmark": "b"}, "2 models on b"),
    "embed": ({"corpora": [{"corpus": "a"}, {"corpus": "b"}]}, "measured a, b"),
    "project": ({"points": 3934}, "map of 3,934 texts"),
    "export": ({"release_id": 1, "groups": 562}, "release 1: 562 groups"),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_is_described_in_one_line(kind: str) -> None:
    result, line = RESULTS[kind]
    assert outcome(kind, result) == line


@pytest.mark.parametrize("kind", [*RESULTS, "backup", "unknown"])
def test_a_result_of_another_version_has_no_line(kind: str) -> None:
    assert outcome(kind, {}) == ""
    assert outcome(kind, {"loss_first": None, "loss_last": None, "items": None, "judge": 1}) == ""


def test_only_a_job_that_is_done_shows_its_outcome() -> None:
    job = Job(kind="project", status="running", message="computing the map", result=None, config={})
    assert summary(job) == "computing the map"
    job.status, job.result = "done", {"points": 3}
    assert summary(job) == "map of 3 texts"
