"""Analyses through their operations: rights, configs of before, the same values at every door."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from conftest import Ran
from records_world import make_run

from analysis.found.texts import CorpusPoints, CoverageFound
from analysis.request import (
    ContaminationStart,
    CorporaChosen,
    CoverageStart,
    DiversityStart,
    DuplicatesStart,
)
from app.access.identity import Actor, owner
from app.operations import analyses
from app.operations import jobs as job_operations
from db.errors import BadInput, NotFound, Refused
from db.people.rights import Rights
from db.store.store import Store

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


ADA = owner("ada")
MAP = CoverageFound(corpora=(), model="m", seed=0, points=0)
NEEDING: Mapping[str, Callable[[Actor], Any]] = {
    "start": lambda actor: analyses.start(actor, DiversityStart(datasets=("a",)), nothing),
    "keep_file": lambda actor: analyses.keep_file(actor, "mine.jsonl", b"{}"),
    "about_map": lambda actor: analyses.about_map(actor, MAP),
    "options": analyses.options,
    "stored": lambda actor: analyses.stored(actor, CoverageFound, None),
    "points": lambda actor: analyses.points(actor, 1),
    "search": lambda actor: analyses.search(actor, [], [], "word"),
    "runs_of": lambda actor: analyses.runs_of(actor, [1]),
    "growable": lambda actor: analyses.growable(actor, [1], []),
}


def nothing(*_: Any) -> Any:
    raise AssertionError("it was launched")


@pytest.mark.parametrize("name", NEEDING)
def test_an_operation_on_analyses_is_refused_without_the_right(
    sqlite_store: Store, name: str
) -> None:
    eve = Actor("eve", rights=Rights(everywhere=frozenset({"judge", "train"})))
    with pytest.raises(Refused, match="lacks a right"):
        NEEDING[name](eve)


def test_every_operation_on_analyses_is_among_them() -> None:
    found = {
        name
        for name, each in vars(analyses).items()
        if callable(each) and getattr(each, "__module__", "") == analyses.__name__
        if name[0] != "_" and name[0].islower()
    }
    assert found - {"kind_of"} == set(NEEDING)


def test_a_curator_of_one_dataset_finds_nothing_of_another(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    run_id = make_run(sqlite_store)
    eve = Actor("eve", rights=Rights(on_datasets={99: frozenset({"curate"})}))
    assert analyses.runs_of(ADA, [1]) == {run_id: [1]} and analyses.runs_of(eve, [1]) == {}
    assert analyses.options(ADA).datasets == ("books",) and not analyses.options(eve).datasets
    corpora = [CorpusPoints(corpus="books", run_id=run_id, dataset_id=1, offline=True)]
    groups, _ = analyses.search(ADA, corpora, [], "e")
    assert groups and not any(analyses.search(eve, corpora, [], "e"))
    with pytest.raises(NotFound):
        analyses.points(eve, 1)


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
