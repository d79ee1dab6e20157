"""Who wrote and judged, for a release of several runs: every run is checked, none is assumed."""

from trainer.report.origins import circular_origins, origin_rows, origins_of
from trainer.settings.settings import TrainSettings

SHA = "a" * 64


def manifest(judge: dict[str, object] | None) -> dict[str, object]:
    def run(number: int, judged: dict[str, object] | None) -> dict[str, object]:
        models: dict[str, object] = {"negatives": {"model": "writer", "sha256": None}}
        return {"run_id": number, "models": models | ({"validation": judged} if judged else {})}

    return {"runs": [run(1, {"model": "other", "sha256": "b" * 64}), run(2, judge)]}


def test_a_writer_that_judged_in_the_second_run_is_found() -> None:
    origins = origins_of(TrainSettings(), manifest({"model": "writer", "sha256": None}))
    assert any("the model of negatives also validated" in one for one in circular_origins(origins))
    rows = dict(origin_rows(origins))
    assert rows["Judged (validation), run 1"].startswith("other")
    assert rows["Judged (validation), run 2"].startswith("writer")
    assert "Base" in rows


def test_a_run_without_a_named_judge_is_shown_as_such() -> None:
    rows = dict(origin_rows(origins_of(TrainSettings(), manifest(None))))
    assert rows["Judged (validation), run 2"] == "not stated by the release"
