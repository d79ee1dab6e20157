"""Analyses through their operations: rights, configs of before, the same values at every door."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from app_pages import open_page
from conftest import Ran
from judged_study import judged
from records_world import make_run

from analysis.agreement.judgment_filter import JudgmentFilter
from analysis.request import (
    ContaminationStart,
    CorporaChosen,
    CoverageStart,
    DiversityStart,
    DuplicatesStart,
)
from app.access.identity import Actor, SessionUser, owner
from app.operations import analyses
from app.operations import jobs as job_operations
from db.assignment import members
from db.errors import BadInput, Refused
from db.people.rights import Rights
from db.store.store import Store
from db.study.judgments import get_or_create_judge

BEFORE: Mapping[str, tuple[type[CorporaChosen], dict[str, Any]]] = {
    "a page's diversity": (
        DiversityStart,
        {"datasets": ["a"], "published": [], "groups": "kept", "sample": None, "repeats": 5,
         "seed": 0},
    ),
    "of one run": (DiversityStart, {"datasets": ["a"], "run": 3, "model": None}),
    "a command's map": (
        CoverageStart,
        {"datasets": ["a"], "sources": [], "published": [], "texts": [], "runs": [], "groups":
         "both", "model": None, "seed": 1, "onto": None, "fit": None, "pairs": False},
    ),
    "duplicates": (DuplicatesStart, {"datasets": ["a"], "what": "near_duplicates"}),
    "contamination": (
        ContaminationStart,
        {"datasets": ["a"], "what": "contamination", "against": ["/x"], "against_datasets": []},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BEFORE)
def test_a_config_of_before_is_read(name: str) -> None:
    model, config = BEFORE[name]
    read = model.read(config)
    assert read.datasets == ("a",) and read.runs == ((3,) if "run" in config else ())
    assert model.read(read.config()) == read


def test_what_names_no_texts_or_contradicts_itself_is_refused_with_the_fields() -> None:
    for model, config, field in (
        (DiversityStart, {}, "`dataset=NAME`"),
        (DiversityStart, {"published": ["/x"], "sources": ["b"]}, "`dataset=NAME`"),
        (CoverageStart, {"datasets": ["a"], "onto": 1, "fit": 20}, "`fit=`"),
        (ContaminationStart, {"datasets": ["a"]}, "`against=PATH`"),
        (DiversityStart, {"datasets": ["a"], "sampel": 3}, "did you mean 'sample'"),
    ):
        with pytest.raises(BadInput, match=field):
            model.read(config)


def test_each_operation_is_refused_without_the_right(sqlite_store: Store) -> None:
    eve = Actor("eve", rights=Rights(everywhere=frozenset({"judge"})))
    with pytest.raises(Refused, match="lacks a right"):
        analyses.agreement(eve, 1, chosen=JudgmentFilter(), resamples=0)
    with pytest.raises(Refused, match="lacks a right"):
        analyses.validators(eve, "a", None, None, ())
    with pytest.raises(Refused, match="lacks a right"):
        analyses.about_map(eve, {})
    with pytest.raises(Refused, match="lacks a right"):
        analyses.start(
            eve, DiversityStart(datasets=("a",)), lambda *_: pytest.fail("it was launched")
        )


def test_the_job_s_result_and_the_command_s_json_are_the_same(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(sqlite_store)
    done = inf("analyze", "near-duplicates", "--dataset", "books", "--json")
    assert done.code == 0, done.err
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    stored = job_operations.show(owner("ada"), done.json["job_id"])
    assert stored.result == {key: done.json[key] for key in done.json if key != "job_id"}
    assert DuplicatesStart.read(stored.config).config() == stored.config
    for words_given, sentence in (
        (["diversity"], "--dataset NAME"),
        (["diversity", "--dataset", "books", "--sample", "1"], "x>=2"),
        (["diversity", "--corpus", "no-such-file"], "does not exist"),
        (["contamination", "--dataset", "books"], "--against PATH"),
    ):
        refused = inf("analyze", *words_given)
        assert refused.code == 2 and sentence in refused.err, refused.err


def test_one_model_judge_alone_is_described_with_how_people_join(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(sqlite_store, {"GPT": "ppnn...."})
    found = inf("analyze", "agreement", "--study", 1, "--json").json
    assert found["answered"] == {"GPT": {"positive": 2, "none": 2}}
    shown = inf("analyze", "agreement", "--study", 1).out
    assert "GPT chose: none 2 · positive 2" in shown
    assert "`inf people invite --role annotator --study ID`" in shown
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    assert (
        analyses.agreement(owner("ada"), 1, chosen=JudgmentFilter(), resamples=0)
        == inf("analyze", "agreement", "--study", 1, "--resamples", 0, "--json").json
    )
    page = " ".join(str(each.value) for each in open_page("agreement").info)
    assert "GPT answered 4 items" in page, page
    assert "the Accounts page" in page and "inf people" not in page


def test_with_a_person_nothing_is_said_of_joining(sqlite_store: Store, inf: Any) -> None:
    judged(sqlite_store, {"GPT": "ppnn....", "ann": "ppnn...."})
    found = inf("analyze", "agreement", "--study", 1, "--json").json
    assert found["judgments"] == 8 and "joining" not in found and "answered" not in found


def test_who_judges_a_study_sees_no_flags_and_no_profiles_of_it(sqlite_store: Store) -> None:
    """Profiles know gold: asked after each answer they would say which item was gold."""
    judged(sqlite_store, {"ann": "pppp....", "bob": "ppnn...."})
    with sqlite_store.write() as session:
        members.add_member(session, 1, get_or_create_judge(session, "ann", kind="person").id)
        session.commit()
    user = SessionUser("ann", rights=Rights(is_admin=True))
    chosen = JudgmentFilter()
    mine = analyses.agreement(user, 1, chosen=chosen, resamples=0, by_judge=True)
    all_of_it = analyses.agreement(owner("eve"), 1, chosen=chosen, resamples=0, by_judge=True)
    assert "by_judge" not in mine and not mine["flagged"]
    assert all_of_it["by_judge"]
    assert mine["items"] < all_of_it["items"]
