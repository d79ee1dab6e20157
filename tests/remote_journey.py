"""From pairs to a release by the remote client, as `inf-studio-client` has it, and nothing else.

    python -P tests/remote_journey.py URL PAIRS    with the token in INF_TOKEN

Its Python has that wheel and httpx with what that needs. Prints what it found as JSON.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import inf_studio as inf


@inf.judge("longest")
def longest(view: inf.ItemView) -> int:
    return max(range(len(view.candidates)), key=lambda place: len(view.candidates[place]))


def main(url: str, pairs: Path) -> dict[str, Any]:
    for name in dir(inf):
        getattr(inf, name)
    for refused in (inf.open, lambda: inf.load_model):
        try:
            refused()
        except (inf.Refused, AttributeError) as error:
            assert "inf-studio-client" in str(error), error
        else:
            raise AssertionError(refused)

    return journey(inf.connect(url, token=os.environ["INF_TOKEN"]), pairs)


def journey(studio: inf.Studio, pairs: Path) -> dict[str, Any]:
    """What every client does, whatever else is installed beside it."""
    rows = [json.loads(line) for line in pairs.read_text(encoding="utf-8").splitlines()]
    data = studio.datasets.create("remote", pairs=rows, source="our logs", licence="cc-by-4.0")
    assert data.pairs == len(rows), data.row
    recipe = inf.Recipe.builtin("offline")
    assert data.estimate(recipe, limit=20).pairs == 20
    try:
        data.curate(inf.Recipe.builtin("offlin"), provider="offline", limit=20)
    except inf.InfError as error:  # no built-in one has this name
        assert any(word in str(error) for word in ("'offlin'", "built-in recipe")), error
    else:
        raise AssertionError("a recipe that is not there")
    run = data.curate(recipe, provider="offline", limit=20)
    events = list(run.events())
    assert events[-1].status == "done" and events[-1].done == 20, events
    groups = run.wait().groups()
    assert len(groups) == 20 and {row["verdict"] for row in groups} <= {"kept", "dropped"}
    assert "<table>" in groups._repr_html_()
    names = ["simulated:1", "simulated:2"]
    study = run.studies.create(items=5, overlap=2, judges=[*names, longest])
    studio.call("studies change", id=study.id, status="closed")  # it hides no answer any more
    agreement = study.agreement()
    found = [row["judge"] for row in study.judgments()]  # that of the run's validator, too
    assert "Agreement" in repr(agreement), agreement
    assert [found.count(name) for name in (*names, longest.name)] == [study.items] * 3, found
    release = run.release()
    assert release.groups == sum(row["verdict"] == "kept" for row in groups)
    files = {path.name for path in release.download("release").iterdir()}
    assert {"README.md", "release.json"} <= files, files
    return {"run": run.id, "study": study.id, "release": release.id, "groups": release.groups}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], Path(sys.argv[2]))) + "\n")
