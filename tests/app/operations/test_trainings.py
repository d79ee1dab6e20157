"""Trainings: the same rows for command, page and job; refused without the right; old configs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from app_pages import open_page
from conftest import Ran

from app.access.identity import Actor, owner
from app.jobs import launching, supervisors
from app.operations import models, trainings
from app.operations.acting import queued
from db.corpus.datasets import get_or_create_dataset
from db.errors import BadInput, InfError, NotFound, Refused
from db.jobs import jobs
from db.outcome.checkpoints import record_checkpoint
from db.people.rights import Rights
from db.store.store import Store
from db.tables import Event, Job, Release
from trainer.evaluate.following import QUERY_ALONE
from trainer.launch.request import TrainSearch, TrainStart, TrainSweep
from trainer.report.record import record_training
from trainer.report.scored import LISTED
from trainer.settings.settings import TrainSettings

OLD_COMMAND = {  # as `inf train` queued it before the request was typed
    "release": "/data/one",
    "settings": {"epochs": "3", "seed": "7", "objective": "P,I:multi"},
    "out": "/data/out",
    "processes": 2,
}
OLD_PAGE = {"release": "1", "settings": TrainSettings(seed=3).as_dict(), "sweep": "table 3"}
OLD_TRIAL = {
    "release": "1",
    "settings": {"epochs": "1", "learning_rate": 1e-4},
    "sweep": "rates",
    "tune": {
        "number": 1,
        "params": {"learning_rate": 1e-4},
        "identity": {
            "release": "1",
            "space": ["learning_rate=1e-5..1e-3:log"],
            "fixed": {"epochs": "1"},
            "measure": "strict",
        },
    },
}


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are queued, no supervisor takes them."""
    monkeypatch.setattr(supervisors, "ensure_supervisor", lambda store: None)


def result_of(reached: float, checkpoint: int) -> dict[str, Any]:
    """What a finished job stores, as far as a list shows it."""
    after = {name: reached for name in LISTED if name != "natural-flip"}
    return {
        "checkpoint_id": checkpoint,
        "path": f"/m/{checkpoint}",
        "offline": True,
        "steps": 9,
        "seconds": 2.5,
        "loss_first": 1.0,
        "loss_last": 0.5,
        "held_out": {
            "groups": 4,
            "before": {"strict": 0.25},
            "after": {**after, f"{QUERY_ALONE}:strict": 0.0},
            "bm25": {"strict": 0.125},
            "intervals": {"before": {"strict": [0.0, 0.5]}, "after": {"strict": [0.25, 1.0]}},
            "gain": {"strict": {"value": 0.25, "low": -0.25, "high": 0.75}},
        },
        "natural_probe": {"after": {"natural-flip": reached}},
    }


def fill(store: Store, *configs: dict[str, Any]) -> list[int]:
    """A finished training for each config, the later the better."""
    with store.write() as session:
        made = []
        for at, config in enumerate(configs, 1):
            job = jobs.enqueue_job(session, "train", config, started_by="ann")
            job.status, job.result, job.finished_at = "done", result_of(at / 8, at), job.created_at
            made.append(job.id)
        session.commit()
        return made


def release_of(store: Store, dataset: str) -> int:
    with store.write() as session:
        release = Release(
            dataset_id=get_or_create_dataset(session, dataset).id,
            name=dataset,
            content_sha256="0" * 64,
            path=f"/releases/{dataset}",
            format="parquet",
            filter={},
            counts={"groups": 20},
            offline=True,
            card="---\nlicense: cc0-1.0\n---\n",
        )
        session.add(release)
        session.commit()
        return release.id


def test_trainings_are_the_same_rows_for_page_command_and_job(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    release_of(sqlite_store, "world")
    config = OLD_PAGE | {"out": "/data/out"}
    one, two = fill(sqlite_store, config, config | {"settings": {"objective": "mnrl"}})
    ran = inf("trainings", "list", "--json")
    assert ran.code == 0 and ran.err == ""
    rows = ran.json["data"]
    assert (ran.json["total"], ran.json["next"]) == (2, None)
    assert rows == trainings.list_some(owner("ada")).as_json()["data"]
    assert [(row["id"], row["objective"], row["seed"]) for row in rows] == [
        (two, "mnrl", 42),
        (one, TrainSettings().objective, 3),
    ]
    at = open_page("train")
    assert not at.exception
    (shown,) = [table.value for table in at.dataframe if "sweep" in table.value]
    assert shown.to_dict("records") == rows
    with sqlite_store.read() as session:
        for row in rows:
            result = jobs.get_job(session, row["id"]).result or {}
            stored = result["held_out"]["after"] | result["natural_probe"]["after"]
            assert {name: row[name] for name in LISTED} == {name: stored[name] for name in LISTED}
            one_shown = inf("trainings", "show", row["id"], "--json").json
            assert one_shown["result"] == result
            assert {key: one_shown[key] for key in row} == row
    measured = one_shown["scores"][0]
    assert (measured["measure"], measured["base"], measured["query_alone"]) == ("strict", 0.25, 0.0)
    assert one_shown["intervals"][0]["gain_high"] == 0.75
    listed = inf("trainings", "list")
    assert "table 3" not in listed.out and listed.err == f"next: inf trainings show {two}\n"
    rows = [line.split() for line in inf("trainings", "show", one).out.splitlines()]
    assert ["0.2500", "-0.2500", "0.7500"] in [row[-3:] for row in rows]


def test_a_list_of_a_dataset_leaves_out_other_datasets_and_keeps_folders(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    world, other = release_of(sqlite_store, "world"), release_of(sqlite_store, "other")
    ids = fill(
        sqlite_store,
        {"release": str(world)},
        {"release": "/releases/other"},
        {"release": str(other)},
        {"release": "/no/release"},
        {"n": 1},
    )
    found = inf("trainings", "list", "--dataset", "world", "--json").json
    assert [row["id"] for row in found["data"]] == [ids[4], ids[3], ids[0]]
    assert found["total"] == 3
    part = trainings.list_some(owner("ada"), "world", limit=1, offset=1)
    assert ([row.id for row in part.data], part.next, part.total) == ([ids[3]], 2, 3)
    assert inf("trainings", "list", "--dataset", "none", "--json").code == 1
    with sqlite_store.write() as session:
        for release_id in (world, other, None):
            record_checkpoint(
                session,
                path=f"/m/{release_id}",
                base_model="b",
                config={},
                summary={},
                release_id=release_id,
            )
        session.commit()
    found_models = models.list_some(owner("ada"), "world")
    assert [row.release_id for row in found_models.data] == [None, world]
    assert found_models.total == 2


def test_who_has_the_right_on_one_dataset_lists_their_own_trainings(sqlite_store: Store) -> None:
    world = release_of(sqlite_store, "world")
    release_of(sqlite_store, "other")
    (first,) = fill(sqlite_store, {"release": str(world), "sweep": "s"})
    ann = Actor("ann", rights=Rights(on_datasets={1: frozenset({"train"})}))
    bob = Actor("bob", rights=Rights(on_datasets={1: frozenset({"train"})}))
    assert [row.id for row in trainings.list_some(ann, "world").data] == [first]
    assert trainings.sweeps(ann) == ["s"] and trainings.sweeps(bob) == []
    assert trainings.list_some(bob, "world").total == 0
    assert trainings.releases(bob, "world") == {world: "world"}
    with pytest.raises(NotFound):
        trainings.show(bob, first)


def test_trainings_of_a_sweep_are_listed_best_first(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    ids = fill(sqlite_store, OLD_PAGE, OLD_TRIAL, OLD_PAGE, OLD_COMMAND)
    with sqlite_store.write() as session:
        job = jobs.enqueue_job(session, "train", OLD_PAGE, started_by="ann")
        session.commit()
    found = inf("trainings", "list", "--sweep", "table 3", "--json").json
    assert [row["id"] for row in found["data"]] == [ids[2], ids[0], job.id]
    assert trainings.sweeps(owner("ada")) == ["table 3", "rates"]


def test_a_sweep_is_queued_as_a_whole_or_not_at_all(
    sqlite_store: Store, inf: Callable[..., Ran], nothing_starts: None
) -> None:
    given = ("trainings", "sweep", "--release", "1", "--name", "s", "--seed", 1, "--seed", 2)
    ran = inf(*given, "--objective", "P", "--objective", "mnrl", "epochs=1", "--json")
    assert ran.code == 0, ran.err
    with sqlite_store.read() as session:
        found = [jobs.get_job(session, number) for number in ran.json["job_ids"]]
    made = [TrainStart.read(job.config) for job in found]
    assert [(each.setting("objective"), each.setting("seed")) for each in made] == [
        *(("P", 1), ("P", 2)),
        *(("mnrl", 1), ("mnrl", 2)),
    ]
    assert {each.sweep for each in made} == {"s"} and {each.setting("epochs") for each in made} == {
        1.0
    }
    assert inf(*given, "--objective", "mnrl", "--objective", "P", "mined_negatives=2").code == 2
    with sqlite_store.read() as session:
        assert len(jobs.list_jobs(session)) == 4


STARTED = TrainStart(release="1")
CALLS: dict[str, Callable[[Actor], Any]] = {
    "create": lambda actor: trainings.create(actor, STARTED, queued),
    "sweep": lambda actor: trainings.sweep(actor, TrainSweep(release="1", name="s"), queued),
    "search": lambda actor: trainings.search(
        actor, TrainSearch(release="1", name="s", search=("seed=1,2",)), queued
    ),
    "estimate": lambda actor: trainings.estimate(actor, STARTED),
    "list": trainings.list_some,
    "list_sweep": lambda actor: trainings.list_sweep(actor, "s"),
    "sweeps": trainings.sweeps,
    "show": lambda actor: trainings.show(actor, 1),
    "releases": lambda actor: trainings.releases(actor, "world"),
    "release": lambda actor: trainings.release(actor, 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_operation_without_the_right_is_refused(sqlite_store: Store, name: str) -> None:
    for right in ("curate", "review", "judge", "adjudicate", "release"):
        actor = Actor("eve", rights=Rights(everywhere=frozenset({right})))
        with pytest.raises(Refused, match="lacks a right"):
            CALLS[name](actor)
    with sqlite_store.read() as session:
        assert jobs.list_jobs(session) == []


@pytest.mark.parametrize(
    "given",
    [
        {"out": "/srv/new"},
        {"settings": {"guard": "/srv/beir"}},
        {"settings": {"mined_negatives": "2", "mined_corpus": "/srv/other/private.jsonl"}},
        {"settings": {"remote_code": "run"}},
    ],
)
def test_only_an_admin_names_folders_of_the_server(
    sqlite_store: Store, nothing_starts: None, given: dict[str, Any]
) -> None:
    wanted = TrainStart.read({"release": "1"} | given)
    trainer = Actor("eve", rights=Rights(everywhere=frozenset({"train"})))
    with pytest.raises(Refused, match="only an admin") as refused:
        trainings.create(trainer, wanted, queued)
    assert refused.value.code == "admin_only"
    assert trainings.create(owner("ada"), wanted, queued) == 1


def test_a_teacher_of_the_server_is_no_model_that_one_may_see(
    sqlite_store: Store, nothing_starts: None, tmp_path: Path
) -> None:
    world = release_of(sqlite_store, "world")
    eve = Actor("eve", rights=Rights(on_datasets={1: frozenset({"train"})}))
    given = {"release": world, "settings": {"teacher": f"cross-encoder:{tmp_path}"}}
    with pytest.raises(NotFound) as refused:
        trainings.create(eve, TrainStart.read(given), queued)
    assert refused.value.code == "not_visible"
    judged = {"release": world, "settings": {"teacher": "judge:openai:x"}}
    assert trainings.create(eve, TrainStart.read(judged), queued) == 1


def test_a_model_that_cannot_fit_is_refused_behind_every_door(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainings, "available_bytes", lambda: 1e9)
    huge = TrainStart(release="1", settings={"base_model": "Qwen/Qwen2.5-3B"})
    with pytest.raises(Refused, match=r"49\.4 GB") as refused:
        trainings.create(owner("ada"), huge, queued)
    assert refused.value.code == "model_too_large"
    ran = inf("train", "--release", "1", "--out", "x", "base_model=Qwen/Qwen2.5-3B", "--json")
    assert ran.code == 1 and ran.json["code"] == "model_too_large"
    with sqlite_store.read() as session:
        assert jobs.list_jobs(session) == []


@pytest.mark.parametrize("config", [OLD_COMMAND, OLD_PAGE, OLD_TRIAL])
def test_the_config_of_an_earlier_version_is_read_listed_and_queued_again(
    sqlite_store: Store, nothing_starts: None, config: dict[str, Any]
) -> None:
    read = TrainStart.read(config)
    assert read.settings == config["settings"] and read.processes == config.get("processes", 1)
    assert TrainStart.read(read.config()) == read
    (number,) = fill(sqlite_store, config)
    row = trainings.show(owner("ada"), number)
    assert row.release == config["release"] and row.settings["seed"] in ("7", 3, 42)
    again = launching.launch(sqlite_store, "train", config, actor=owner("ada"))
    with sqlite_store.read() as session:
        assert TrainStart.read(jobs.get_job(session, again).config) == read


def test_a_search_of_an_earlier_version_goes_on(sqlite_store: Store) -> None:
    fill(sqlite_store, OLD_TRIAL)
    wanted = TrainSearch(
        release="1",
        name="rates",
        search=("learning_rate=1e-5..1e-3:log",),
        settings={"epochs": "1"},
        trials=1,
    )
    found = trainings.search(owner("ada"), wanted, queued)
    assert [(trial.number, trial.value) for trial in found.trials] == [(1, 1 / 8)]
    assert found.best_settings == {"epochs": "1", "learning_rate": 1e-4}


def test_a_config_of_no_known_version_is_shown_and_never_trained(sqlite_store: Store) -> None:
    strange = {"n": 1, "workers": None, "settings": {"objective": "gone", "seed": "x"}}
    (number,) = fill(sqlite_store, strange)
    row = trainings.show(owner("ada"), number)
    assert (row.objective, row.seed, row.release) == ("gone", "x", "")
    for given, why in (
        ({"n": 1, "release": "1"}, "no key 'n'"),
        ({"release": "1", "worker": 2}, "did you mean 'workers'"),
        ({}, "release is missing"),
        ({"release": "1", "settings": {"epoch": 3}}, "did you mean 'epochs'"),
        ({"release": "1", "workers": 2, "processes": 2}, "workers"),
        ({"release": "1", "workers": 2, "estimate": True}, "one process"),
    ):
        with pytest.raises(BadInput, match=why):
            TrainStart.read(given)


def test_a_training_that_ends_twice_is_one_event_with_its_model(
    sqlite_store: Store, tmp_path: Path
) -> None:
    with sqlite_store.write() as session:
        job = jobs.enqueue_job(session, "train", OLD_PAGE, started_by="ann")
        session.commit()
    memory = {
        "release": {"release_id": None, "content_sha256": "", "offline": True},
        "result": {"steps": 3},
        "split": {},
        "origins": {},
    }
    for _ in range(2):
        made = record_training(sqlite_store, job.id, TrainSettings(), memory, tmp_path)
    with sqlite_store.read() as session:
        (event,) = session.query(Event).filter_by(name="training.finished").all()
    assert (event.actor, event.noun, event.noun_id) == ("ann", "training", str(job.id))
    assert event.data == {"checkpoint_id": made["checkpoint_id"]}


def test_a_job_that_is_no_training_is_none(sqlite_store: Store, inf: Callable[..., Ran]) -> None:
    with sqlite_store.write() as session:
        session.add(Job(kind="export", config={}, started_by="ann"))
        session.commit()
    assert inf("trainings", "show", 1, "--json").json["code"] == "training_unknown"
    with pytest.raises(InfError):
        trainings.show(owner("ada"), 9)


def test_a_checkpoint_is_written_to_a_folder_and_to_no_url() -> None:
    """It became a folder `s3:` of this machine, without a word."""
    with pytest.raises(BadInput, match="no URL"):
        TrainStart.read({"release": "r", "out": "s3://bucket/model"})
