"""Mined negatives: found by words and by meaning, none that answers, a file that is imported."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from app_pages import open_page, sign_in, words
from sqlalchemy import func, select
from waiting import until

from app.access.identity import Actor, owner
from app.api.routes import routes
from app.operations import datasets
from curation.judges.judge import Choice
from curation.mining import finders, mining
from curation.mining.request import NegativesMine
from db.corpus.datasets import get_dataset, text_sha256
from db.errors import BadInput, NotFound, Refused
from db.jobs import jobs
from db.people.rights import Rights
from db.store.store import Store
from db.tables import Dataset, Event, Job, Pair, PairNegative, Passage

TEXTS = {  # of a pool: two pairs, answers under other words, distractors
    "right": "The heron nests in tall trees near water and builds with sticks every spring.",
    "same": "The heron nests in tall trees near water and builds with sticks each spring.",
    "other": "Sticks and reeds are what most herons use for the nest that they come back to.",
    "near": "A stork nests on chimneys; it builds with sticks and is older than the house.",
    "words": "Where does the word nest come from, and how is it spelled in old books?",
    "far": "Bread needs flour, water, salt and time before it goes into the oven.",
    "bread": "To bake bread, mix flour and water, wait, and put it into a hot oven.",
}
PAIRS = {
    "q1": ("where does the heron build its nest", "right"),
    "q2": ("where does the heron build its nest", "other"),  # the same query, another answer
    "q3": ("baking bread", "bread"),
}


def fill(store: Store, name: str, *, texts: dict[str, str], pairs: dict[str, Any]) -> None:
    with store.write() as session:
        dataset = Dataset(name=name)
        session.add(dataset)
        session.flush()
        ids = {}
        for key, text in texts.items():
            passage = Passage(
                dataset_id=dataset.id,
                external_id=key,
                text=text,
                sha256=text_sha256(text),
                origin="pool",
            )
            session.add(passage)
            session.flush()
            ids[key] = passage.id
        for key, (query, right) in pairs.items():
            row = Pair(dataset_id=dataset.id, external_id=key, query=query, passage_id=ids[right])
            session.add(row)
        session.commit()


@pytest.fixture
def birds(sqlite_store: Store) -> Store:
    fill(sqlite_store, "birds", texts=TEXTS, pairs=PAIRS)
    return sqlite_store


def mine(folder: Path, **wanted: Any) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    out = folder / "mined.jsonl"
    out.unlink(missing_ok=True)
    request = NegativesMine(name="birds", out=str(out), **wanted)
    done = datasets.mine(owner("me"), request, datasets.here(lambda done, total: None))
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    return done.as_json(), {row["query_id"]: row for row in rows}


def ids_of(row: dict[str, Any]) -> list[str]:
    return [each["passage_id"] for each in row["mined"]]


def test_words_find_what_shares_them_and_no_known_answer(birds: Store, tmp_path: Path) -> None:
    done, rows = mine(tmp_path)
    assert done["pairs"] == 3 and done["corpus"] == len(TEXTS)
    for pair in ("q1", "q2"):  # neither's answer is the other's negative, nor a near-duplicate
        assert not {"right", "other", "same"} & {*ids_of(rows[pair])}
        assert {"near", "words"} <= {*ids_of(rows[pair])}
    assert "far" not in ids_of(rows["q1"]), "it shares no word"
    assert ids_of(rows["q3"]) == ["far"]
    for row in rows.values():
        scores = [each["scores"]["bm25"] for each in row["mined"]]
        assert scores == sorted(scores, reverse=True) and all(one > 0 for one in scores)
        assert row["negatives"] == [TEXTS[each] for each in ids_of(row)]


def test_meaning_stays_below_a_share_of_the_right_score(birds: Store, tmp_path: Path) -> None:
    _, wide = mine(tmp_path, by=("embedding",), margin=1.0, count=7)
    _, narrow = mine(tmp_path, by=("embedding",), margin=0.5, count=7)
    for pair, row in narrow.items():
        assert {*ids_of(row)} < {*ids_of(wide[pair])}
    highest = max(each["scores"]["embedding"] for each in narrow["q1"]["mined"])
    assert highest < max(each["scores"]["embedding"] for each in wide["q1"]["mined"])


def test_both_sources_are_taken_in_turn_and_scored_each(birds: Store, tmp_path: Path) -> None:
    _, rows = mine(tmp_path, by=("bm25", "embedding"), margin=1.0, count=7)
    scores = {each["passage_id"]: each["scores"] for each in rows["q1"]["mined"]}
    assert scores["near"].keys() == {"bm25", "embedding"}
    assert scores["far"].keys() == {"embedding"}
    assert len(ids_of(rows["q1"])) == len({*ids_of(rows["q1"])})


def test_a_corpus_in_parts_gives_the_same_file(
    birds: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "mined.jsonl"
    # at 1.0 whether P+ itself is within the limit is a matter of the last bit
    wanted: dict[str, Any] = {"by": ("bm25", "embedding"), "margin": 0.99, "count": 7}
    mine(tmp_path, **wanted)
    whole = out.read_bytes()
    monkeypatch.setattr(finders, "PART", 2)
    monkeypatch.setattr(finders, "IDS_PER_QUERY", 1)
    done, _ = mine(tmp_path, **wanted)
    assert out.read_bytes() == whole and done["corpus"] == len(TEXTS)


class Says:
    """A judge for whom some passages answer as well as P+, others better, and some are a riddle."""

    at_once, name, kind, provider, model = 2, "simulated:1", "model", "", ""
    offline = simulated = False

    def __init__(self, better: str = "", equal: str = "", riddle: str = "") -> None:
        self.better, self.equal, self.riddle = better, equal, riddle
        self.seen: list[tuple[str, ...]] = []

    def choose(self, views: Any, *, check: Callable[[], None] | None = None) -> list[Choice]:
        assert len(views) <= self.at_once
        self.seen += [view.candidates for view in views]
        return [self._choice(view.candidates) for view in views]

    def _choice(self, candidates: tuple[str, ...]) -> Choice:
        texts = [candidates.index(TEXTS[key]) for key in PLUS if TEXTS[key] in candidates]
        for key in filter(None, (self.better, self.equal, self.riddle)):
            if TEXTS[key] in candidates:
                place = candidates.index(TEXTS[key])
                if key == self.better:
                    return Choice(place)
                return Choice(
                    None,
                    ambiguous=key == self.equal,
                    unusable="" if key == self.equal else "unparsable",
                )
        return Choice(texts[0] if len(candidates) == 2 else None)


PLUS = ("right", "other", "bread")


@pytest.mark.parametrize("kind", ["better", "equal", "riddle"])
def test_the_check_removes_what_answers_and_asks_for_the_next(
    birds: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    _, plain = mine(tmp_path, count=1)
    first = ids_of(plain["q1"])[0]
    judge = Says(**{kind: first})
    monkeypatch.setattr(mining, "judge_named", lambda name, store: judge)
    done, rows = mine(tmp_path, count=1, judge="simulated:1")
    assert first not in ids_of(rows["q1"]) and len(ids_of(rows["q1"])) == 1
    assert done["unusable" if kind == "riddle" else "answering"] == 2  # of q1 and q2
    assert len({views.index(TEXTS["right"]) for views in judge.seen if TEXTS["right"] in views})
    assert len(judge.seen) == 5  # one of each pair, and one more of two pairs


def test_an_offline_judge_removes_what_is_nearer_than_the_right_one(
    birds: Store, tmp_path: Path
) -> None:
    done, rows = mine(tmp_path, judge="offline:embedding", count=3)
    assert "answering" in done or all(ids_of(row) for row in rows.values())
    again, same = mine(tmp_path, judge="offline:embedding", count=3)
    assert (again, same) == (done, rows)


def test_another_dataset_is_the_corpus(birds: Store, tmp_path: Path) -> None:
    more = {"a1": "A heron is a bird that stands still.", "a2": "Trains run on rails."}
    fill(birds, "corpus", texts=more, pairs={})
    _, rows = mine(tmp_path, corpus="corpus", by=("bm25", "embedding"), margin=1.0)
    assert {*ids_of(rows["q1"])} == {"a1", "a2"}


def test_the_file_is_imported_with_its_negatives(
    birds: Store, tmp_path: Path, inf: Callable[..., Any]
) -> None:
    out = tmp_path / "folder" / "train.jsonl"
    out.parent.mkdir()
    done = inf("datasets", "mine", "birds", "--out", out, "--by", "bm25", "--count", "2")
    assert done.code == 0 and str(out) in done.out
    with birds.read() as session:
        event = session.scalars(select(Event).where(Event.name == "dataset.mine")).one()
        assert event.noun == "dataset" and event.data["pairs"] == 3
    pulled = inf("datasets", "pull", out.parent, "--dataset", "again", "--json")
    assert pulled.code == 0, pulled.err
    with birds.read() as session:
        dataset = get_dataset(session, "again")
        texts = session.scalars(select(Passage.text).where(Passage.dataset_id == dataset.id))
        assert TEXTS["near"] in {*texts}


@pytest.mark.long
def test_without_a_file_the_pairs_get_them_behind_every_door(
    birds: Store, inf: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    curator = Actor("eve", rights=Rights(everywhere=frozenset({"curate"})))
    route = next(each for each in routes() if each.name == "datasets mine")
    jobs_ = [
        inf("datasets", "mine", "birds", "--detach", "--json").json["job_id"],
        route.call(curator, route.request.read({"id": 1, "count": 1})).job_id,
    ]
    sign_in(birds, monkeypatch, "admin")
    page = open_page("datasets", dataset="birds")
    page.number_input(key="datasets.mine.count").set_value(2)
    page = page.button(key="datasets.mine_submit").click().run()
    assert not page.exception and "queued as job 3" in words(page)
    jobs_.append(3)
    found = [_worked(birds, each) for each in jobs_]
    assert [each["out"] for each in found] == [None] * 3
    assert found[0]["kept"] == found[0]["negatives"] > 0, "with the default of 4 for each pair"
    assert [each["kept"] for each in found[1:]] == [0, 0], "the same ones are given once"
    with birds.read() as session:
        assert session.scalar(select(func.count()).select_from(PairNegative)) == found[0]["kept"]
        events = session.scalars(select(Event).where(Event.name == "dataset.mine")).all()
        assert [each.data["out"] for each in events] == [None] * 3


def _worked(store: Store, job_id: int) -> dict[str, Any]:
    """What a job came to: the detached command started a supervisor, which takes all three."""
    until(lambda: _job(store, job_id).finished_at is not None, 90)
    ended = _job(store, job_id)
    assert ended.status == "done", ended.error
    return dict(ended.result or {})


def _job(store: Store, job_id: int) -> Job:
    with store.read() as session:
        return jobs.get_job(session, job_id)


def test_what_cannot_be_mined_is_refused_and_leaves_no_file(birds: Store, tmp_path: Path) -> None:
    for wanted, error in (
        ({"corpus": "none"}, NotFound),
        ({"judge": "nobody:x"}, BadInput),
        ({"language": "xx"}, BadInput),
    ):
        with pytest.raises(error):
            mine(tmp_path, **wanted)
    (tmp_path / "mined.jsonl").write_text("mine")
    request = NegativesMine(name="birds", out=str(tmp_path / "mined.jsonl"))
    with pytest.raises(BadInput, match="exists"):
        datasets.mine(owner("me"), request, datasets.here(lambda done, total: None))
    assert [path.name for path in tmp_path.glob("*mined*")] == ["mined.jsonl"]
    eve = Actor("eve", rights=Rights(everywhere=frozenset({"curate"})))
    with pytest.raises(Refused):
        datasets.mine(eve, request, datasets.here(lambda done, total: None))
