"""What can be watched of a training: each term's loss, tokens per second, a batch, probe items."""

import re
from pathlib import Path

import pytest
from trainer_jobs import claim, config_for

from db.jobs import jobs
from db.store.store import Store
from trainer.data.release_files import read_release
from trainer.evaluate.benchmarks import held_out_benchmark
from trainer.evaluate.following import INSTRUCTION_FLIP
from trainer.launch.here import train
from trainer.report.held_out_scores import choose_probes, describe_probes, probe_ranks


def test_a_training_shows_its_terms_its_speed_a_batch_its_probes_and_its_examples(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """With the univariate objective the loss is the sum of its terms' (Eq. 6)."""
    config = config_for(tmp_path, objective="P,I:uni", max_steps="3", evaluate_steps="1")
    handle = claim(sqlite_store, config)
    held_out = train(handle)["held_out"]
    with sqlite_store.read() as session:
        found = jobs.metric_series(session, [handle.id])[handle.id]
        shown = jobs.get_job(session, handle.id).shown
    for place in range(3):
        terms = found["loss/P"][place][1] + found["loss/I"][place][1]
        assert found["loss"][place][1] == pytest.approx(terms, abs=1e-3)
    assert [step for step, _ in found["tokens_per_second"]] == [1, 2, 3]
    assert all(value > 0 for _, value in found["tokens_per_second"])
    probes = shown["probes"]
    assert len(probes) == 2  # a fifth of ten groups is held out
    for number, probe in enumerate(probes):
        for name in ("asked", "other"):
            points = found[f"probe/{number}/{name}"]
            assert [step for step, _ in points] == [0, 1, 2, 3]
            assert all(1 <= rank <= probe["passages"] for _, rank in points)
    texts = shown["batch"]
    assert set(texts) == {"matched", "passages", "crossed"}
    assert all(0 < len(rows) <= 3 for rows in texts.values())
    assert "bridge" in " ".join(texts["passages"]) and texts["passages"][0].startswith("<s>")
    assert not any("<pad>" in text for rows in texts.values() for text in rows)
    examples = shown["examples"]  # they agree with the scores
    assert examples["groups"] == held_out["groups"] == 2
    for when, name in (("before", "followed_before"), ("after", "followed")):
        assert examples[name] == pytest.approx(2 * held_out[when][INSTRUCTION_FLIP])
    assert examples["fails"]["count"] == 2 - examples["followed"]
    for each in examples["fails"]["examples"]:
        assert "bridge" in each["texts"]["Q+"] and len(each["before"]) == 2


def test_every_step_reports_progress_and_remaining_time(
    sqlite_store: Store, tmp_path: Path
) -> None:
    handle = claim(sqlite_store, config_for(tmp_path, max_steps="3", held_out="0"))
    reports: list[tuple[int, int | None, str]] = []
    handle.report = lambda *words: reports.append(words)  # type: ignore[assignment]
    train(handle)
    with sqlite_store.read() as session:  # without held-out groups there is no example
        assert "examples" not in jobs.get_job(session, handle.id).shown
    steps = [(done, total) for done, total, words in reports if "left" in words]
    assert steps == [(1, 3), (2, 3), (3, 3)]
    for *_, words in reports:
        assert "left" not in words or re.fullmatch(r"loss \d+\.\d+ · about \d+ s left", words)


def test_an_objective_of_one_term_has_no_losses_of_terms(
    sqlite_store: Store, tmp_path: Path
) -> None:
    handle = claim(sqlite_store, config_for(tmp_path, objective="P", max_steps="1"))
    train(handle)
    with sqlite_store.read() as session:
        found = jobs.metric_series(session, [handle.id])[handle.id]
    assert not [name for name in found if name.startswith("loss/")]


def test_probes_are_spread_evenly_and_reported_with_their_ranks(tmp_path: Path) -> None:
    """Of ten held-out groups four are followed: 0, 2, 5 and 7."""
    from trainer_release import write_release

    groups = read_release(write_release(tmp_path / "release", 10)).groups
    benchmark = held_out_benchmark("bridges", groups)
    probes = choose_probes(benchmark)
    assert probes == ["g000000", "g000002", "g000005", "g000007"]
    described = describe_probes(benchmark, probes)
    assert [probe["passage"] for probe in described] == [
        groups[place].text("P+") for place in (0, 2, 5, 7)
    ]
    document = benchmark.changed_documents["g000002"][0]
    ranks = {
        "g000002-positive": {document: 1},
        "g000002-instruction-negative": {document: 7},
    }
    assert probe_ranks(benchmark, ["g000002"], ranks) == {
        "probe/0/asked": 1.0,
        "probe/0/other": 7.0,
    }
    assert choose_probes(held_out_benchmark("none", [])) == []
