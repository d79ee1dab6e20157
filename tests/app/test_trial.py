"""Trying a recipe on a few pairs: only those are asked, and every word of it can be read."""

import hashlib

import pytest
from app_pages import open_page, words
from curation_runs import add_dataset, run_curation, work_on
from openai_server import Server
from sqlalchemy import select

from curation.recipe.rendered_call import rendered_messages
from db.errors import BadInput
from db.jobs import jobs
from db.store.store import Store
from db.tables import Call, Group, GroupCall, Pair


@pytest.mark.long
def test_a_trial_asks_for_the_chosen_pairs_and_shows_prompts_and_answers(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.jobs.supervisors.ensure_supervisor", lambda store: None)
    add_dataset(sqlite_store)
    with sqlite_store.read() as session:
        names = list(session.scalars(select(Pair.external_id).order_by(Pair.id)))[3:5]
    at = open_page("curate")
    assert at.button(key="curate.try").disabled
    for name in names:
        at.multiselect(key="curate.trial_pairs").select(name).run()
    at.toggle(key="curate.trial_prompts").set_value(True).run()
    assert "prompts are not sent" in words(at)
    at.button(key="curate.try").click().run()
    with sqlite_store.read() as session:
        (job,) = jobs.list_jobs(session, kind="curate")
        query = select(Pair.external_id).join(Group, Group.pair_id == Pair.id)
        run_id = job.config["run_id"]
        assert set(session.scalars(query.where(Group.run_id == run_id))) == set(names)
    work_on(sqlite_store, run_id)
    at = open_page("curate", run=str(run_id))
    toggles = [toggle for toggle in at.toggle if "raw answers" in toggle.label]
    assert len(toggles) == 2
    toggles[0].set_value(True).run()
    assert "Raw answer" in words(at) and "Prompt (user)" in words(at)


def test_what_was_asked_is_told_word_for_word(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(store, pairs=2)
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        settings = ["model=small", "validation.model=judge"]
        run_curation(store, dataset="small", provider="openai", settings=settings, limit=1)
        seen = set(server.answered)
    with store.read() as session:
        calls = session.execute(
            select(Call.id, Call.task).join(GroupCall, GroupCall.call_id == Call.id)
        ).all()
        asked = [
            [one["content"] for one in rendered_messages(session, call_id)] for call_id, _ in calls
        ]
    assert {task for _, task in calls} >= {"instruction_positive", "validation"}
    assert {hashlib.sha256("\n".join(one).encode()).hexdigest() for one in asked} == seen


def test_a_pair_that_is_not_there_is_refused(sqlite_store: Store) -> None:
    add_dataset(sqlite_store)
    with pytest.raises(BadInput, match="has no pair 'nowhere'"):
        run_curation(sqlite_store, dataset="small", provider="offline", query_ids=["nowhere"])


def test_the_first_prompt_for_code_names_the_language_of_each_pair(
    sqlite_store: Store,
) -> None:
    add_dataset(sqlite_store, pairs=2)
    with sqlite_store.write() as session:
        for pair, language in zip(session.scalars(select(Pair)), ("C++", "Haskell"), strict=True):
            pair.meta = {"language": language}
        session.commit()
    at = open_page("curate")
    at.selectbox(key="curate.recipe").select("leetcode").run()
    for name in ("q0", "q1"):
        at.multiselect(key="curate.trial_pairs").select(name).run()
    at.toggle(key="curate.trial_prompts").set_value(True).run()
    assert "written in C++, is the one" in words(at)
    assert "written in Haskell, is the one" in words(at)
