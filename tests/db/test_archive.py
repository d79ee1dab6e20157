"""Archived datasets and runs are hidden and kept; purging deletes all of one, or nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import count_rows
from grown_dataset import grown
from purged_world import NAME, everything, fill, in_write
from records_world import add_release
from second_run import make_second_run
from sqlalchemy import event, select, text
from sqlalchemy.orm import Session
from study_world import sampled_study

from db.archive.archiving import archive, unarchive
from db.archive.dependents import dependents
from db.archive.purging import purge
from db.archive.target import target_of
from db.corpus.datasets import get_dataset, get_or_create_dataset, list_datasets
from db.errors import BadInput, InfError, NotFound, Refused
from db.events import list_events
from db.jobs import jobs
from db.people.rights import ALL_RIGHTS, Rights
from db.review.reviews import approve_group
from db.run.progress import list_runs
from db.run.runs import begin_run, choose_run, create_run, latest_run, reopen_run
from db.store.backup import read_manifest, restore_backup
from db.store.store import Store
from db.tables import (
    Group,
    Item,
    Judge,
    Judgment,
    Passage,
    Review,
    Run,
    RunWorker,
    Study,
)


@pytest.fixture
def world(store: Store) -> Store:
    """Two datasets with a run each, validated, with calls of their own and a shared one."""
    fill(store)
    return store


def first_group(session: Session, run_id: int = 1) -> int:
    return session.scalars(select(Group.id).where(Group.run_id == run_id).limit(1)).one()


def a_review(session: Session) -> None:
    approve_group(session, first_group(session), reviewed_by="anna")


def a_release(session: Session) -> None:
    dataset_id, group_id = get_dataset(session, NAME).id, first_group(session)
    add_release(session, dataset_id, group_id, name="spring", content_sha256="")


def a_study(session: Session) -> None:
    sampled_study(session, run_id=1, items=2, overlap=1, name="empty one")


def a_judgment(session: Session) -> None:
    person = Judge(name="ben", kind="person")
    session.add(person)
    session.flush()
    item = session.scalars(select(Item.id).where(Item.group_id == first_group(session))).first()
    assert item is not None
    session.add(
        Judgment(event_id="by-ben", judge_id=person.id, item_id=item, choice="none", order_shown=[])
    )


def a_job(session: Session) -> None:
    jobs.enqueue_job(session, "curate", {"run_id": 1})


def a_worker(session: Session) -> None:
    session.add(RunWorker(run_id=1, owner="someone"))


DEPENDENTS = {
    "release 1 (spring)": a_release,
    "1 review of 1 group by anna": a_review,
    "study 1 (empty one; open)": a_study,
    "1 judgment of ben": a_judgment,
    "job 1 (curate, queued)": a_job,
    "1 worker at work on run 1": a_worker,
}


@pytest.mark.parametrize("what", DEPENDENTS)
def test_what_something_depends_on_is_neither_archived_nor_purged(
    world: Store, tmp_path: Path, what: str
) -> None:
    in_write(world, DEPENDENTS[what])
    before = everything(world)
    for target in ({"dataset": NAME}, {"run_id": 1}):
        with world.write() as session, pytest.raises(Refused) as refused:
            archive(session, **target, rights=ALL_RIGHTS, actor="me")  # type: ignore[arg-type]
        assert what in str(refused.value)
        with pytest.raises(Refused):
            purge(world, **target, rights=ALL_RIGHTS, actor="me", backup=tmp_path / "b.zip")  # type: ignore[arg-type]
    assert everything(world) == before and not (tmp_path / "b.zip").exists()


def test_the_validators_own_judgments_are_part_of_the_run(world: Store) -> None:
    with world.read() as session:
        assert dependents(session, target_of(session, run_id=1)) == []
        assert dependents(session, target_of(session, dataset=NAME)) == []


def test_a_copy_of_another_runs_review_holds_nothing_back(world: Store) -> None:
    def carried(session: Session) -> None:
        root = approve_group(session, first_group(session, run_id=2), reviewed_by="anna")
        session.add(
            Review(
                group_id=first_group(session),
                action="approve",
                reviewed_by="anna",
                carried_from=root.id,
            )
        )

    in_write(world, carried)
    with world.write() as session:
        assert dependents(session, target_of(session, run_id=1)) == []
        assert "1 review of 1 group by anna" in dependents(session, target_of(session, run_id=2))
        session.execute(text("DELETE FROM review WHERE carried_from IS NULL"))
        assert "1 review of 1 group by anna" in dependents(session, target_of(session, run_id=1))


def test_an_archived_dataset_is_hidden_with_its_runs_and_comes_back(world: Store) -> None:
    in_write(world, lambda s: archive(s, dataset=NAME, rights=ALL_RIGHTS, actor="me"))
    with world.read() as session:
        assert [one.name for one in list_datasets(session)] == ["other"]
        assert [one.id for one in list_runs(session)] == [2]
        assert {one.name for one in list_datasets(session, archived=True)} == {NAME, "other"}
        assert [one.archived for one in list_runs(session, archived=True)] == [False, True]
        with pytest.raises(NotFound, match="existing ones: other"):
            get_dataset(session, "othr")
    in_write(world, lambda s: unarchive(s, dataset=NAME, rights=ALL_RIGHTS, actor="me"))
    with world.read() as session:
        assert len(list_datasets(session)) == 2 and len(list_runs(session)) == 2
        assert [row.name for row in list_events(session)[0]] == [
            "dataset.unarchive",
            "dataset.archive",
        ]


def test_an_archived_run_is_no_longer_the_latest(world: Store) -> None:
    in_write(world, lambda s: archive(s, run_id=1, rights=ALL_RIGHTS, actor="me"))
    with world.read() as session:
        dataset_id = get_dataset(session, NAME).id
        with pytest.raises(NotFound):
            latest_run(session, dataset_id)
        assert list_runs(session, dataset_id) == []


def test_nothing_new_is_made_from_what_is_archived(world: Store) -> None:
    in_write(world, lambda s: archive(s, dataset=NAME, rights=ALL_RIGHTS, actor="me"))
    attempts: list[Callable[[Session], Any]] = [
        a_review,
        a_study,
        lambda s: get_or_create_dataset(s, NAME),
        lambda s: choose_run(s, 1, 1),
        lambda s: begin_run(s, 1),
        lambda s: reopen_run(s, 1),
        lambda s: create_run(s, dataset_id=1, recipe_id=1, provider="p", offline=True),
    ]
    for attempt in attempts:
        with world.write() as session, pytest.raises(Refused, match="is archived"):
            attempt(session)
    in_write(world, lambda s: unarchive(s, dataset=NAME, rights=ALL_RIGHTS, actor="me"))
    in_write(world, lambda s: archive(s, run_id=1, rights=ALL_RIGHTS, actor="me"))
    for attempt in (*attempts[:2], *attempts[3:6]):
        with world.write() as session, pytest.raises(Refused, match="run 1 is archived"):
            attempt(session)


@pytest.mark.parametrize(
    "rights",
    [
        Rights(),
        Rights(everywhere=frozenset({"judge", "review", "train", "release"})),
        Rights(on_datasets={2: frozenset({"curate"})}),
        Rights(on_studies={1: frozenset({"judge"})}, dataset_of={1: 1}),
    ],
)
def test_who_may_not_curate_the_dataset_archives_nothing(world: Store, rights: Rights) -> None:
    for target in ({"dataset": NAME}, {"run_id": 1}):
        for function in (archive, unarchive):
            with world.write() as session, pytest.raises(Refused, match="right to curate"):
                function(session, **target, rights=rights, actor="x")  # type: ignore[arg-type]


def test_who_curates_the_dataset_archives_and_does_not_purge(world: Store, tmp_path: Path) -> None:
    curator = Rights(on_datasets={1: frozenset({"curate"})})
    everywhere = Rights(everywhere=frozenset({"curate", "release", "train"}))
    in_write(world, lambda s: archive(s, run_id=1, rights=curator, actor="c"))
    for rights in (curator, everywhere):
        with pytest.raises(Refused, match="for admins"):
            purge(world, run_id=1, rights=rights, actor="c", backup=tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()


def test_twice_is_refused_and_a_run_of_an_archived_dataset_comes_back_with_it(
    world: Store,
) -> None:
    in_write(world, lambda s: archive(s, dataset=NAME, rights=ALL_RIGHTS, actor="me"))
    with world.write() as session:
        with pytest.raises(Refused, match="archived already"):
            archive(session, dataset=NAME, rights=ALL_RIGHTS, actor="me")
        with pytest.raises(Refused, match="bring the dataset back"):
            unarchive(session, run_id=1, rights=ALL_RIGHTS, actor="me")
        with pytest.raises(Refused, match="is not archived"):
            unarchive(session, dataset="other", rights=ALL_RIGHTS, actor="me")
        with pytest.raises(NotFound, match="2"):
            archive(session, run_id=77, rights=ALL_RIGHTS, actor="me")


def test_a_purged_dataset_is_gone_and_in_the_backup_and_the_other_is_whole(
    world: Store, tmp_path: Path
) -> None:
    before = everything(world)
    file = tmp_path / "before.zip"
    done = purge(world, dataset=NAME, rights=ALL_RIGHTS, actor="the admin", backup=file)
    after = everything(world)
    half = ("dataset", "run", "group", "item", "passage", "pair", "judgment", "group_call")
    assert all(after[name] * 2 == before[name] for name in half)
    assert (after["call"], before["call"]) == (4, 7)  # the shared one stays
    assert {name: number for name, number in done["rows"].items() if name in half} == {
        name: before[name] - after[name] for name in half
    }
    with world.read() as session:
        row = list_events(session)[0][0]
        assert (row.actor, row.name, row.subject) == ("the admin", "dataset.purge", NAME)
        assert row.data["content_sha256"] == read_manifest(file)["content_sha256"]
        with pytest.raises(NotFound):
            get_dataset(session, NAME)
    restore_backup(world, file, replace=True)
    in_write(world, lambda s: unarchive(s, dataset=NAME, rights=ALL_RIGHTS, actor="me"))
    assert {name: everything(world)[name] for name in half} == {name: before[name] for name in half}


def test_a_purged_run_leaves_the_dataset_with_its_pairs(world: Store, tmp_path: Path) -> None:
    before = everything(world)

    def a_closed_study(session: Session) -> None:
        study = sampled_study(session, run_id=1, items=2, overlap=1)
        session.flush()
        session.get_one(Study, study.id).status = "closed"

    in_write(world, a_closed_study)
    purge(world, run_id=1, rights=ALL_RIGHTS, actor="me", backup=tmp_path / "b.zip")
    after = everything(world)
    assert (after["dataset"], after["pair"]) == (2, before["pair"])
    assert (after["run"], after["group"], after["study"]) == (1, 3, 0)
    with world.read() as session:
        assert session.get(Run, 2) is not None


def test_a_purged_run_takes_passages_along_that_stood_in_its_items_alone(
    store: Store, tmp_path: Path
) -> None:
    """An edit or a backup replaced them in their group; those of another run stay."""
    first = grown(store, groups=3)
    second, _ = make_second_run(store, first)
    replaced = {}
    with store.write() as session:
        dataset_id = get_dataset(session, "demo").id
        for run_id in (first, second):
            passage = Passage(
                dataset_id=dataset_id,
                external_id=f"run{run_id}-before",
                text="before",
                sha256="",
                origin="generated",
            )
            session.add(passage)
            session.flush()
            item = Item(
                group_id=first_group(session, run_id),
                scenario="positive",
                revision=9,
                instruction="",
                query="",
                candidates=[{"passage_id": passage.id, "label": "positive"}],
                expected=None,
            )
            session.add(item)
            replaced[run_id] = passage.id
        session.commit()
    purge(store, run_id=first, rights=ALL_RIGHTS, actor="me", backup=tmp_path / "b.zip")
    with store.read() as session:
        assert session.get(Passage, replaced[first]) is None
        assert session.get(Passage, replaced[second]) is not None


def test_a_purge_that_fails_after_any_statement_deletes_nothing(
    world: Store, tmp_path: Path
) -> None:
    """Each statement that writes, from the archiving on; kills are in test_killed_purge.py."""
    before, left, fails = everything(world), 0, 0

    def count_down(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        nonlocal left
        if statement.startswith(("UPDATE", "INSERT", "DELETE")):
            left -= 1
            if left == 0:
                raise RuntimeError("ended here")

    event.listen(world.engine, "after_cursor_execute", count_down)
    try:
        while True:
            left, file = fails + 1, tmp_path / f"{fails}.zip"
            try:
                done = purge(world, dataset=NAME, rights=ALL_RIGHTS, actor="me", backup=file)
                break
            except RuntimeError:
                fails += 1
                left = 0
                archived = fails > 2  # by an UPDATE and a row of the audit log
                assert everything(world) == before | {"event": int(archived)}
                assert file.exists() == archived
    finally:
        event.remove(world.engine, "after_cursor_execute", count_down)
    assert fails > 12 and everything(world)["dataset"] == 1
    for number in range(2, fails):
        held = read_manifest(tmp_path / f"{number}.zip")["content_sha256"]
        assert held == done["content_sha256"], "a backup of a failed purge holds what it deletes"


def test_what_is_added_while_the_backup_is_written_is_not_lost(
    world: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from db.archive import purging

    real = purging.write_backup

    def slow(store: Store, path: Path, **more: Any) -> dict[str, Any]:
        manifest = real(store, path, **more)
        with store.write() as session:  # as an import that began before
            session.execute(
                text(
                    "INSERT INTO passage (dataset_id, external_id, title, text, sha256, origin, "
                    "meta) VALUES (1, 'late', '', 'late', 'late', 'pool', '{}')"
                )
            )
            session.commit()
        return manifest

    monkeypatch.setattr(purging, "write_backup", slow)
    with pytest.raises(Refused, match="changed while the backup"):
        purge(world, dataset=NAME, rights=ALL_RIGHTS, actor="me", backup=tmp_path / "b.zip")
    assert count_rows(world, "dataset") == 2


def test_without_a_backup_nothing_is_deleted(world: Store, tmp_path: Path) -> None:
    taken = tmp_path / "taken.zip"
    taken.write_text("mine")
    before = everything(world)
    with pytest.raises(Refused, match="never overwrites"):
        purge(world, dataset=NAME, rights=ALL_RIGHTS, actor="me", backup=taken)
    assert everything(world) == before and taken.read_text() == "mine"
    below_a_file = taken / "b.zip"
    with pytest.raises((BadInput, InfError)):
        purge(world, dataset=NAME, rights=ALL_RIGHTS, actor="me", backup=below_a_file)
    assert count_rows(world, "dataset") == 2
