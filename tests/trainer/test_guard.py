"""Choosing weights and stopping by the natural probe and by ordinary retrieval."""

from pathlib import Path
from typing import Any

import pytest
from job_metrics import metric_points
from trainer_folders import write_beir
from trainer_jobs import claim, config_for, fit_few
from trainer_release import write_release

from db.errors import BadInput
from db.store.store import Store
from trainer.data.release_files import read_release
from trainer.data.splitting import Groups
from trainer.launch.here import train
from trainer.model.backbone import load_backbone
from trainer.probe import natural
from trainer.report.held_out_scores import HeldOutScores
from trainer.settings.settings import parse_settings


def run(tmp_path: Path, curves: list[dict[str, float]], below: list[bool], **given: str) -> Any:
    """A training whose evaluations are given; returns its result."""
    few = {"base_model": "tiny-random-bert", "rows_per_batch": "4", "evaluate_steps": "1"}
    settings = parse_settings(few | {"max_steps": "4", "precision": "fp32"} | given)
    scores, falls = iter(curves), iter(below)
    return fit_few(
        tmp_path,
        settings,
        evaluate=lambda _: next(scores),
        is_below_guard=lambda _: next(falls),
    )


def test_the_best_weights_are_the_best_within_the_guard(tmp_path: Path) -> None:
    curves = [{"strict": value} for value in (0.2, 0.9, 0.3, 0.8)]
    result = run(tmp_path, curves, [False, True, False, True], best_by="strict")
    assert result["best_step"] == 3


def test_where_all_fall_below_the_guard_the_best_of_them_is_kept(tmp_path: Path) -> None:
    curves = [{"strict": value} for value in (0.2, 0.9, 0.3, 0.8)]
    assert run(tmp_path, curves, [True] * 4, best_by="strict")["best_step"] == 2


def test_patience_counts_on_the_probe_and_on_the_guard_without_held_out_groups(
    tmp_path: Path,
) -> None:
    for name in ("natural-flip", "guard-ndcg@10"):
        curves = [{name: value} for value in (0.5, 0.4, 0.3, 0.9)]
        given = {"best_by": name, "patience": "2", "held_out": "0", "guard": str(tmp_path)}
        result = run(tmp_path / name, curves, [False] * 4, **given)
        assert (result["steps"], result["best_step"]) == (3, 1)


def test_a_training_scores_its_guard_before_during_and_after(
    sqlite_store: Store, tmp_path: Path
) -> None:
    folder = write_beir(tmp_path / "plain")
    given = {"guard": str(folder), "evaluate_steps": "1", "max_steps": "2"}
    handle = claim(sqlite_store, config_for(tmp_path, **given, best_by="guard-ndcg@10"))
    result = train(handle)
    with sqlite_store.read() as session:
        points = metric_points(session, handle.id)
    curve = {point.step: point.value for point in points if point.name == "guard-ndcg@10"}
    assert sorted(curve) == [0, 1, 2]
    assert result["guard"]["benchmark"] == "plain"
    assert result["guard"]["ndcg@10"]["before"] == curve[0]


def test_a_fall_is_measured_from_the_base_model(tmp_path: Path) -> None:
    release = read_release(write_release(tmp_path / "release", 8))
    given = {"guard": str(write_beir(tmp_path / "plain")), "guard_drop": "0.1"}
    settings = parse_settings({"held_out": "0", "natural_probe": "off", **given})
    scores = HeldOutScores(settings, Groups(release, release.groups, []), check=lambda: None)
    assert not scores.is_below_guard({"guard-ndcg@10": 0.0})  # the base was not scored
    scores.guard_scores["before"] = 0.7
    assert scores.is_below_guard({"guard-ndcg@10": 0.59})
    assert not scores.is_below_guard({"guard-ndcg@10": 0.61})
    assert not scores.is_below_guard({})


def test_the_probe_is_scored_between_steps_only_where_it_chooses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = read_release(write_release(tmp_path / "release", 8))
    groups = Groups(release, release.groups, [])
    found = natural.ProbeScores(1, {"natural-flip": 0.5, "natural-first": 0.25}, {})
    monkeypatch.setattr(natural, "score_natural_probe", lambda *_, **__: found)
    for best_by, wanted in (("last", {}), ("natural-flip", found.metrics)):
        settings = parse_settings(
            {"held_out": "0", "best_by": best_by, "evaluate_steps": "1"}
            if wanted
            else {"held_out": "0"}
        )
        scores = HeldOutScores(settings, groups, check=lambda: None)
        assert (
            scores.score_now(load_backbone(parse_settings({"base_model": "tiny-random-bert"})))
            == wanted
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"best_by": "guard-ndcg@10", "evaluate_steps": "1"}, "give guard=FOLDER"),
        (
            {"best_by": "natural-flip", "evaluate_steps": "1", "natural_probe": "off"},
            "natural_probe=on",
        ),
        ({"best_by": "strict", "evaluate_steps": "1", "held_out": "0"}, "held-out groups"),
    ],
)
def test_a_choice_without_its_measure_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_settings(given)
