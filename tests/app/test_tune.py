"""Searches of settings: the space, suggestions from the jobs there are, going on, the guard."""

from typing import Any

import pytest

from db.errors import BadInput, Refused
from db.jobs import jobs
from db.store.store import Store
from db.tables import Job
from trainer.launch.request import TrainSearch, TrainStart
from trainer.launch.tuning import next_params, ranked, read_trials, run_search
from trainer.settings.search import MEASURES, parse_space, value_of

SPACE = ("learning_rate=1e-6..1e-2:log", "rows_per_batch=2..32", "objective=P,mnrl")


def search_of(*space: str, **given: Any) -> TrainSearch:
    facts: dict[str, Any] = {"name": "a", "release": "1", "search": space or SPACE}
    return TrainSearch.read(facts | given)


def result_of(value: float | None, **more: Any) -> dict[str, Any]:
    return {"held_out": {"after": {"strict": value}}, **more}


class Cluster:
    """Runs queued trainings when the search waits: a value from their settings, or a failure."""

    def __init__(self, store: Store, score: Any) -> None:
        self.store, self.score = store, score
        self.launched: list[TrainStart] = []
        self.most_open = 0

    def launch(self, wanted: TrainStart) -> int:
        self.launched.append(wanted)
        with self.store.write() as session:
            job = jobs.enqueue_job(session, "train", wanted.config(), started_by="test")
            session.commit()
            return job.id

    def end_one(self) -> None:
        with self.store.write() as session:
            waiting = jobs.list_jobs(session, kind="train", statuses=("queued",))
            self.most_open = max(self.most_open, len(waiting))
            job = session.get(Job, min(each.id for each in waiting))
            assert job is not None
            result = self.score(job.config["settings"])
            job.status = "failed" if result is None else "done"
            job.result, job.error = result, "out of memory" if result is None else None
            session.commit()

    def run(self, search: TrainSearch, trials: int, parallel: int = 1) -> list[Any]:
        search = search.model_copy(update={"trials": trials, "parallel": parallel})
        return run_search(
            search, read=lambda: self.trials(search), launch=self.launch, wait=self.end_one
        )

    def trials(self, search: TrainSearch) -> list[Any]:
        with self.store.read() as session:
            return read_trials(session, search)


def near_3e_4(settings: dict[str, Any]) -> dict[str, Any]:
    import math

    return result_of(1 - abs(math.log10(float(settings["learning_rate"]) / 3e-4)) / 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rate", "give KEY=VALUE,VALUE or KEY=LOW..HIGH"),
        ("learning_rate=", "give KEY=VALUE,VALUE or KEY=LOW..HIGH"),
        ("learning_rat=1,2", "did you mean 'learning_rate'"),
        ("learning_rate=1e-4", "at least two different values"),
        ("learning_rate=1e-4,0.0001", "at least two different values"),
        ("learning_rate=1e-3..1e-5", "must rise"),
        ("warmup=0..1:log", "above 0"),
        ("learning_rate=0,1", "learning_rate=0.0: it must be more than 0"),
        ("learning_rate=a..b", "a number is needed"),
        ("rows_per_batch=0..4", "rows_per_batch=0"),
        ("objective=P..I", "objective is not a number"),
        ("objective=P,Q", "objective"),
    ],
)
def test_a_space_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_space([text])


def test_a_search_needs_a_setting_and_each_once() -> None:
    with pytest.raises(BadInput, match="needs a setting to vary"):
        parse_space([])
    with pytest.raises(BadInput, match="given twice"):
        parse_space(["seed=1,2", "seed=3,4"])


def test_suggestions_stay_in_the_space_and_are_of_the_settings_types(sqlite_store: Store) -> None:
    cluster = Cluster(sqlite_store, near_3e_4)
    for trial in cluster.run(search_of(), trials=12):
        params = trial.params
        assert 1e-6 <= params["learning_rate"] <= 1e-2
        assert 2 <= params["rows_per_batch"] <= 32 and isinstance(params["rows_per_batch"], int)
        assert params["objective"] in ("P", "mnrl")
    numbers = [each.tune.number for each in cluster.launched if each.tune]
    assert numbers == list(range(1, 13))


def test_a_search_finds_what_is_good_and_ranks_it_first(sqlite_store: Store) -> None:
    found = Cluster(sqlite_store, near_3e_4).run(search_of(SPACE[0]), trials=25)
    best = ranked(found)[0]
    assert 1e-4 < best.params["learning_rate"] < 1e-3
    later = [trial.value for trial in found[15:]]
    first = [trial.value for trial in found[:5]]
    assert sum(later) / len(later) > sum(first) / len(first)


def test_a_search_that_is_stopped_goes_on_as_if_it_had_not_been(sqlite_store: Store) -> None:
    whole = Cluster(sqlite_store, near_3e_4).run(search_of(name="whole"), trials=9)
    cluster = Cluster(sqlite_store, near_3e_4)
    for trials in (3, 4, 9, 9, 2):
        parts = cluster.run(search_of(name="parts"), trials=trials)
    assert [trial.params for trial in parts] == [trial.params for trial in whole]
    assert len(cluster.launched) == 9


def test_at_most_so_many_trainings_are_open_and_they_differ(sqlite_store: Store) -> None:
    cluster = Cluster(sqlite_store, near_3e_4)
    found = cluster.run(search_of(SPACE[0]), trials=7, parallel=3)
    assert cluster.most_open == 3
    assert len({trial.params["learning_rate"] for trial in found}) == 7


def test_a_failed_training_counts_is_not_repeated_and_comes_last(sqlite_store: Store) -> None:
    cluster = Cluster(
        sqlite_store, lambda given: None if given["objective"] == "mnrl" else result_of(0.5)
    )
    found = ranked(cluster.run(search_of(SPACE[2]), trials=6))
    assert len(cluster.launched) == 6
    values = [trial.value for trial in found]
    assert values == sorted(values, key=lambda value: value is None)
    assert found[-1].error == "out of memory" or None not in values


def test_settings_that_conflict_are_not_launched(sqlite_store: Store) -> None:
    search = search_of("objective=P,mnrl", "mined_negatives=0,2")
    found = Cluster(sqlite_store, lambda _: result_of(0.5)).run(search, trials=12)
    assert {("mnrl", 2)}.isdisjoint(
        (trial.params["objective"], trial.params["mined_negatives"]) for trial in found
    )
    impossible = search_of("mined_negatives=1,2", settings={"objective": "mnrl"})
    with pytest.raises(BadInput, match="suggestions were all refused, the last because: mined"):
        next_params(impossible, [])


def test_a_name_is_one_search(sqlite_store: Store) -> None:
    cluster = Cluster(sqlite_store, near_3e_4)
    cluster.run(search_of(), trials=1)
    for other in (
        search_of(SPACE[0]),
        search_of(release="2"),
        search_of(settings={"epochs": "1"}),
        search_of(measure="query-flip"),
    ):
        with pytest.raises(Refused, match="is the name of another search"):
            cluster.run(other, trials=2)
    cluster.launch(TrainStart(release="1", sweep="table 3"))
    with pytest.raises(Refused, match="is the name of another search"):
        cluster.trials(search_of(name="table 3"))
    assert len(cluster.launched) == 2


def test_a_trial_below_the_guard_comes_after_every_other() -> None:
    guard = {"guard": {"ndcg@10": {"before": 0.5, "after": 0.4}}}
    assert value_of(result_of(0.9, **guard), "strict", 0.2) == 0.9
    below = value_of(result_of(0.9, **guard), "strict", 0.05)
    worst = value_of(result_of(0.0), "strict", 0.05)
    assert below is not None and worst is not None and below < worst
    assert value_of(result_of(None), "strict", 1.0) is None
    assert value_of({"natural_probe": {"after": {"natural-flip": 0.3}}}, "natural-flip", 1) == 0.3
    assert value_of(result_of(0.9, **guard), "guard-ndcg@10", 1.0) == 0.4
    assert "last" not in MEASURES and "strict" in MEASURES


def test_the_command_reports_the_best_and_how_to_train_it(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    from click.testing import CliRunner

    from app.cli import trainings as command
    from trainer.launch import tuning

    cluster = Cluster(sqlite_store, near_3e_4)
    monkeypatch.setattr(command, "queued", lambda actor, kind, wanted: cluster.launch(wanted))
    monkeypatch.setattr(tuning.time, "sleep", lambda seconds: cluster.end_one())
    given = ["--release", "1", "--name", "x", "--search", SPACE[0], "epochs=1"]
    ran = CliRunner().invoke(command.tune, [*given, "--trials", "3"])
    assert ran.exit_code == 0, ran.output
    assert "best: inf trainings create --release 1 --out DIR epochs=1 learning_rate=" in ran.output
    assert "selected on the groups held out" in ran.output
    again = CliRunner().invoke(command.tune, [*given, "--trials", "3", "--json"])
    found = json.loads(again.stdout)
    assert len(found["trials"]) == 3 == len(cluster.launched)
    assert found["best_settings"]["epochs"] == "1"
    for wrong, message in (
        (["learning_rate=1e-5"], "is given and searched"),
        (["--measure", "guard-ndcg@10"], "needs guard=FOLDER"),
        (["--search", "seed=1"], "at least two different values"),
    ):
        ran = CliRunner().invoke(command.tune, [*given, *wrong])
        assert ran.exit_code == 2 and message in ran.output
