"""What a run's texts share is stored with it and shown on its page, by commands for releases."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from app_pages import open_page, words
from curation_runs import add_dataset, run_curation
from openai_server import Server
from records_world import make_run
from sqlalchemy import select, update

from analysis.found.runs import SharedPart, SharedParts
from curation.recipe.leftovers import find_refusal
from curation.recorded.recording import SHIPPED
from curation.run.shared_parts import (
    check_shared_parts,
    part_text,
    shared_sentence,
    stored_shared_parts,
)
from db.store.store import Store
from db.tables import Group, Job, Passage, SlotText

DEBRIS = "⟦desk ብርሃን⟧"  # of a kind that no rule knows
DEMO = SHIPPED.parent
REFUSALS = (
    "Samahani, siwezi kuandika maandishi hayo.",
    "Siwezi kukusaidia kuandika maandishi hayo.",
    "Ombi hili haliwezi kutekelezwa, samahani, siwezi.",
)
ASKED = ("curate", "--dataset", "small", "--provider", "openai", "--set", "model=small")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.mark.long
def test_debris_that_no_rule_knows_is_shown_with_the_run_and_before_its_release(
    sqlite_store: Store, server: Server, inf: Callable[..., Any], tmp_path: Path
) -> None:
    add_dataset(sqlite_store, pairs=18)
    server.signature = f"\n\n{DEBRIS}"
    done = inf(*ASKED)
    assert done.code == 0 and DEBRIS in done.out, done.err
    shown = inf("runs", "show", 1)
    assert f"{DEBRIS}” at the end of 18 P1- and 18 P2- of 18 groups" in shown.out
    report = inf("runs", "show", 1, "--json").json["shared_parts"]
    (part,) = (one for one in report["parts"] if DEBRIS in one["text"])
    assert part["sources"] == 0 and all(DEBRIS in one["text"] for one in part["examples"])
    with sqlite_store.read() as session:
        assert stored_shared_parts(session, 1) == SharedParts.model_validate(report)
    page = open_page("curate")
    assert "share nothing" not in words(page)
    assert any(DEBRIS in str(one.value) for one in page.warning)
    assert any(DEBRIS in str(table.value.to_dict()) for table in page.dataframe)
    release = open_page("releases")
    assert any("sources do not have" in str(one.value) for one in release.warning)
    exported = inf("export", "--dataset", "small", "--out", tmp_path / "out")
    assert exported.code == 0 and DEBRIS in exported.err
    card = (tmp_path / "out" / "README.md").read_text()
    assert "Shared parts: over the run's 18 kept groups" in card and "desk ብርሃን" in card


@pytest.mark.long
def test_refusals_in_a_language_without_rules_are_shown_with_the_run_and_before_its_release(
    sqlite_store: Store, inf: Callable[..., Any]
) -> None:
    """A twentieth of P1- are refusals in Swahili, in three wordings that no rule has."""
    run_id = make_run(sqlite_store, kept=240)
    pool = " ".join(
        json.loads(row)["text"] for row in (DEMO / "passages.jsonl").read_text("utf-8").splitlines()
    ).split()
    chance = random.Random(0)
    with sqlite_store.write() as session:
        for passage in session.scalars(select(Passage)):
            passage.text = " ".join(chance.choices(pool, k=50))
        for row in session.scalars(select(SlotText).where(SlotText.slot.in_(["I+", "I-", "Q-"]))):
            row.text = f"Find {' '.join(chance.choices(pool, k=9))}"
        of_first = select(Passage).where(Passage.external_id.like(f"r{run_id}-g%-1"))
        for number, passage in enumerate(session.scalars(of_first.order_by(Passage.id).limit(12))):
            assert find_refusal(REFUSALS[number % 3]) is None, "no rule knows it"
            passage.text = REFUSALS[number % 3]
        session.commit()
    report = check_shared_parts(sqlite_store, run_id)  # as a run does when it ends
    with sqlite_store.write() as session:
        config = {"run_id": run_id}
        done = Job(
            kind="curate", config=config, status="done", result={"shared_parts": report.as_json()}
        )
        session.add(done)
        session.commit()
    what = "short texts about something else in 12 P1- of 240 groups"
    assert what in inf("runs", "show", run_id).out
    shown = inf("runs", "show", run_id, "--json").json["shared_parts"]
    (part,) = (one for one in shown["parts"] if one["where"] == "texts")
    assert {one["text"] for one in part["examples"]} == set(REFUSALS)
    page = open_page("curate")
    assert any("short texts about something else" in str(one.value) for one in page.warning)
    assert any(REFUSALS[0] in str(table.value.to_dict()) for table in page.dataframe)
    warned = [str(one.value) for one in open_page("releases").warning]
    assert any("short texts about something else" in text for text in warned)


@pytest.mark.long
def test_an_earlier_run_is_called_unchecked_everywhere_until_a_command_checks_it(
    sqlite_store: Store, server: Server, inf: Callable[..., Any], tmp_path: Path
) -> None:
    """A run that ended before the check existed looked like one without a finding."""
    add_dataset(sqlite_store, pairs=6)
    run_id = run_curation(
        sqlite_store, dataset="small", provider="openai", settings=["model=small"]
    )["run_id"]
    with sqlite_store.read() as session:
        assert stored_shared_parts(session, run_id) is None, "its job was made here"
    command = f"inf analyze leakage --run {run_id}"
    not_checked = f"not checked: run `{command}`"
    assert not_checked in inf("runs", "show", run_id).out
    exported = inf("export", "--dataset", "small", "--out", tmp_path / "out")
    assert exported.code == 0 and f"run {run_id}: shared parts {not_checked}" in exported.err
    card = (tmp_path / "out" / "README.md").read_text()
    assert f"Shared parts: not measured (`{command}`)" in card
    release = open_page("releases")
    release.session_state["releases.new"] = True  # the drawer is opened
    release.run()
    assert any("not checked for shared parts" in str(one.value) for one in release.info)
    assert not any("inf analyze" in str(one.value) for one in release.info)
    done = inf("analyze", "leakage", "--run", run_id, "--json")
    assert done.code == 0, done.err
    with sqlite_store.read() as session:
        found = stored_shared_parts(session, run_id)
        assert found is not None and found.as_json() == done.json["shared_parts"]
    assert "not checked" not in inf("runs", "show", run_id).out
    exported = inf("export", "--dataset", "small", "--out", tmp_path / "again")
    assert "not checked" not in exported.err
    assert not any("not checked" in str(one.value) for one in open_page("releases").info)


@pytest.mark.long
def test_a_run_decided_again_is_unchecked_until_a_command_checks_what_it_keeps_now(
    sqlite_store: Store, server: Server, inf: Callable[..., Any], tmp_path: Path
) -> None:
    """Looser rules let in groups that no check saw; the card had the figures of the others."""
    add_dataset(sqlite_store, pairs=12)
    run_id = inf(*ASKED, "--set", "validation.votes=3", "--json").json["run_id"]
    assert "not checked" not in inf("runs", "show", run_id).out
    command = f"inf analyze leakage --run {run_id}"
    decided = inf("runs", "decide", run_id, "--set", "validation.votes=1")
    assert decided.code == 0, decided.err
    assert f"not checked: run `{command}`" in inf("runs", "show", run_id).out
    exported = inf("export", "--dataset", "small", "--out", tmp_path / "out")
    assert f"run {run_id}: shared parts not checked" in exported.err, exported.err
    card = (tmp_path / "out" / "README.md").read_text()
    assert f"the run was decided again since (`{command}`)" in card
    assert any("not checked" in str(one.value) for one in open_page("curate").info)
    assert inf("analyze", "leakage", "--run", run_id).code == 0
    assert "not checked" not in inf("runs", "show", run_id).out
    exported = inf("export", "--dataset", "small", "--out", tmp_path / "again")
    assert exported.code == 0 and "not checked" not in exported.err
    card = (tmp_path / "again" / "README.md").read_text()
    assert "decided again" not in card and "kept groups" in card


def test_the_page_checks_an_earlier_run_by_a_click(sqlite_store: Store, server: Server) -> None:
    add_dataset(sqlite_store, pairs=6)
    run_curation(sqlite_store, dataset="small", provider="openai", settings=["model=small"])
    page = open_page("curate")
    assert any("not checked" in str(one.value) for one in page.info)
    page = page.button(key="curate.check").click().run()
    assert not page.exception
    with sqlite_store.read() as session:
        configs = session.scalars(select(Job.config).order_by(Job.id.desc())).all()
    assert configs[0] == {"run_id": 1, "only": "leakage"}


def test_a_run_that_kept_nothing_has_nothing_to_check(
    sqlite_store: Store, server: Server, inf: Callable[..., Any]
) -> None:
    add_dataset(sqlite_store, pairs=2)
    run_curation(sqlite_store, dataset="small", provider="openai", settings=["model=small"])
    with sqlite_store.write() as session:
        session.execute(update(Group).values(verdict="dropped", drop_reason="empty"))
        session.commit()
    assert "not checked" not in inf("runs", "show", 1).out


@pytest.mark.long
def test_the_check_reads_the_same_from_both_engines(store: Store, server: Server) -> None:
    add_dataset(store, pairs=8)
    server.signature = f" {DEBRIS}"
    done = run_curation(store, dataset="small", provider="openai", settings=["model=small"])
    assert check_shared_parts(store, done["run_id"]).as_json() == done["shared_parts"]
    assert done["shared_parts"]["groups"] == done["shared_parts"]["pairs"] == 8
    assert any(DEBRIS in part["text"] for part in done["shared_parts"]["parts"])


def test_a_sentence_names_the_first_three_parts() -> None:
    part = SharedPart(text="Mvh.", where="end", counts={"P1-": 12, "P2-": 9})
    assert part_text(part, 18) == "“Mvh.” at the end of 12 P1- and 9 P2- of 18 groups"
    classes = SharedPart(text="letters: thai", where="characters", counts={"Q-": 7})
    assert part_text(classes, 18) == "letters: thai in 7 Q- of 18 groups"
    assert shared_sentence(None) == shared_sentence(SharedParts(groups=3, parts=())) == ""
    sentence = shared_sentence(SharedParts(groups=18, parts=(part,) * 5))
    assert sentence.count("Mvh.") == 3 and sentence.endswith("; and 2 more.")
