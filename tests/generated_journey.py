"""From pairs to a release by a client that a generator made of the OpenAPI document alone.

    python tests/generated_journey.py URL PAIRS    with the folder of `generated` on PYTHONPATH

Its Python has that client's own requirements and nothing of ours; INF_TOKEN is the token.
"""

import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from generated import AuthenticatedClient
from generated.api.datasets import datasets_import, datasets_list
from generated.api.groups import groups_list
from generated.api.jobs import jobs_show
from generated.api.releases import releases_create, releases_list, releases_show
from generated.api.runs import runs_create, runs_estimate, runs_show
from generated.api.studies import studies_agreement, studies_change, studies_create
from generated.models.problem import Problem
from generated.models.releases_create_release_wanted import ReleasesCreateReleaseWanted
from generated.models.runs_create_run_start import RunsCreateRunStart
from generated.models.runs_estimate_run_start import RunsEstimateRunStart
from generated.models.studies_change_study_change import StudiesChangeStudyChange
from generated.models.studies_create_study_plan import StudiesCreateStudyPlan
from generated.types import File


def given(answer: Any) -> Any:
    """The answer. Raises for a problem, and for what the document does not describe."""
    if answer is None or isinstance(answer, Problem):
        raise SystemExit(f"refused: {answer}")
    return answer


def over(client: AuthenticatedClient, job_id: int) -> None:
    until = time.monotonic() + 300
    while (job := given(jobs_show.sync(job_id, client=client))).status in ("queued", "running"):
        assert time.monotonic() < until, job
        time.sleep(0.3)
    assert job.status == "done", job


def journey(client: AuthenticatedClient, pairs: Path) -> dict[str, Any]:
    body = File(payload=io.BytesIO(pairs.read_bytes()), file_name=pairs.name)
    about = {"name": "made", "source": "our logs", "licence": "cc-by-4.0"}
    report = given(datasets_import.sync(client=client, body=body, **about))
    assert [row.name for row in given(datasets_list.sync(client=client)).data] == ["made"]
    plan = {"dataset": "made", "provider": "offline", "limit": 20}
    estimate = given(runs_estimate.sync(client=client, body=RunsEstimateRunStart(**plan)))
    started = given(
        runs_create.sync(client=client, body=RunsCreateRunStart(**plan), idempotency_key="once")
    )
    over(client, started.job_id)
    run = given(runs_show.sync(started.run_id, client=client))
    groups = given(groups_list.sync(run.id, client=client, limit=100))
    wanted = StudiesCreateStudyPlan(dataset="made", run_id=run.id, items=5, overlap=2)
    study = given(studies_create.sync(client=client, body=wanted))
    changed = studies_change.sync_detailed(
        study.id, client=client, body=StudiesChangeStudyChange(overlap=3), if_match="*"
    )
    assert changed.status_code == 200, changed
    given(studies_agreement.sync(study.id, client=client))
    release = ReleasesCreateReleaseWanted(out="made-one", runs=[run.id])
    over(client, given(releases_create.sync(client=client, body=release)).job_id)
    (row,) = given(releases_list.sync(client=client)).data
    shown = given(releases_show.sync(row.id, client=client))
    return {
        "imported": report.to_dict(),
        "estimated": estimate.to_dict(),
        "run": run.id,
        "groups": groups.total,
        "study": study.id,
        "release": shown.to_dict(),
    }


if __name__ == "__main__":
    address, path = sys.argv[1:]
    by_token = AuthenticatedClient(f"{address}/api/v1", os.environ["INF_TOKEN"])
    print(json.dumps(journey(by_token, Path(path))))  # noqa: T201 - what the test reads
    unknown = AuthenticatedClient(f"{address}/api/v1", "inf_" + "x" * 43)
    assert isinstance(datasets_list.sync(client=unknown), Problem)
