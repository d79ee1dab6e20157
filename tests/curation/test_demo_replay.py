"""The demo set: its files are what its script makes of texts and answers, and replay exactly."""

import importlib.util
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from curation_runs import run_curation

from curation.importing.importing import import_dataset
from curation.judging.text_baseline import text_baseline
from curation.recorded.recording import SHIPPED, item_key
from curation.rules.language import language_of
from curation.run.leakage import compared_texts
from db.shape import INF_IR
from db.store.store import Store, open_store

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
DEMO = SHIPPED.parent
JUDGING = ROOT / "bench" / "demo_set" / "judging"
KEYS = sorted((JUDGING / "keys").glob("key_*.jsonl"))
_spec = importlib.util.spec_from_file_location("make_demo", ROOT / "bench" / "demo_set" / "make.py")
assert _spec is not None and _spec.loader is not None
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)

GROUPS = 602
KEPT = 563
DROPPED = {
    "judge_none": 37,
    "judge_missed_query_negative": 1,
    "judge_missed_instruction_negative": 1,
}


@pytest.fixture(scope="module")
def replayed(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Store, dict[str, Any]]]:
    """A store with a fresh run of the whole recording, and the run's result."""
    path = tmp_path_factory.mktemp("replay") / "inf.db"
    shutil.copy(sqlite_template, path)
    store = open_store(f"sqlite:///{path}")
    import_dataset(store, name="demo", pairs=DEMO / "pairs.jsonl", passages=DEMO / "passages.jsonl")
    yield store, run_curation(store, dataset="demo", provider="recorded", guard=False)
    store.close()


@pytest.mark.slow
def test_the_whole_recording_replays_to_the_funnel_of_its_readme(
    replayed: tuple[Store, dict[str, Any]],
) -> None:
    store, result = replayed
    assert (result["pairs"], result["kept"], result["spent_usd"]) == (GROUPS, KEPT, 0)
    assert result["dropped"] == DROPPED
    assert result["shared_parts"]["groups"] == KEPT and result["shared_parts"]["parts"] == []
    readme = (DEMO / "README.md").read_text()
    assert f"{KEPT} of {GROUPS} groups" in readme
    for reason, count in DROPPED.items():
        assert f"| `{reason}` | {count} |" in readme
    grown = {make.name_of(item) for item in make.items_of(store, result["run_id"])}
    judged = [(row["judge"], row["item"]) for row in make.read(SHIPPED / "judgments.jsonl")]
    assert len(grown) == 3 * GROUPS
    assert sorted(judged) == sorted((judge, item) for judge in "AB" for item in grown)


@pytest.mark.slow
def test_no_item_of_a_fresh_demo_holds_a_passage_in_another_language_than_its_pair(
    replayed: tuple[Store, dict[str, Any]],
) -> None:
    """By the languages that the set's writer noted, and by the rule that reads a text."""
    store, result = replayed
    passages = {row["passage_id"]: row for row in make.read(DEMO / "passages.jsonl")}
    noted = {row["text"]: row["language"] for row in passages.values() if "language" in row}
    pairs = make.read(DEMO / "pairs.jsonl")
    asked = {pair["query_id"]: passages[pair["passage_id"]]["text"] for pair in pairs}
    items = make.items_of(store, result["run_id"])
    foreign = set()
    for item in items:
        language = noted[asked[item["query_id"]]]
        for text in item["candidates"]:
            if {noted.get(text, language), language_of(text) or language} != {language}:
                foreign.add((item["query_id"], text[:40]))
    assert len(items) == 3 * GROUPS and set(noted.values()) == {"en", "de", "es"}
    assert not foreign, f"{len({name for name, _ in foreign})} groups: {sorted(foreign)[:3]}"
    with store.read() as session:
        found = text_baseline(session, result["run_id"])
    assert found is not None and found.foreign == 0


@pytest.mark.slow
def test_the_leakage_check_is_of_the_pilot_s_groups_and_of_the_others(
    replayed: tuple[Store, dict[str, Any]],
) -> None:
    store, result = replayed
    with store.read() as session:
        parts = dict(make.parts_of(session, result["run_id"]))
        compared = {name: compared_texts(session, ids, INF_IR) for name, ids in parts.items()}
    sizes = {name: len(ids) for name, ids in parts.items()}
    assert sizes == {"all": KEPT, "the pilot's": 179, "the others": KEPT - 179}
    assert sorted(parts["the pilot's"] + parts["the others"]) == sorted(parts["all"])
    for name, texts in compared.items():
        assert {len(rows) for rows in texts.values()} == {2 * sizes[name]}
    readme = (DEMO / "README.md").read_text()
    assert all(f"| the {own} |" in readme for own in ("pilot's 179", f"{KEPT - 179} others"))


def test_the_shipped_texts_are_what_the_script_makes_of_the_written_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "demo"
    shutil.copytree(DEMO, copy)
    files = ("pairs.jsonl", "passages.jsonl", "recording/groups.jsonl")
    for name in files[::2]:
        (copy / name).unlink()
    monkeypatch.setattr(make, "DEMO", copy)
    monkeypatch.setattr(make, "SHIPPED", copy / "recording")
    make.build()
    for name in files:
        assert (copy / name).read_bytes() == (DEMO / name).read_bytes(), name


def test_the_shipped_choices_are_the_judges_answers_read_by_their_keys(tmp_path: Path) -> None:
    shipped = SHIPPED / "judgments.jsonl"
    items = {row["item"] for row in make.read(shipped)}
    make.write(tmp_path / "again.jsonl", make.recorded_choices(JUDGING, items))
    assert (tmp_path / "again.jsonl").read_bytes() == shipped.read_bytes()


def test_a_token_without_an_answer_ends_the_script(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    shutil.copy(KEYS[0], tmp_path / "keys")
    answers = f"answers_{KEYS[0].stem.removeprefix('key_')}.jsonl"
    make.write(tmp_path / answers, make.read(JUDGING / answers)[1:])
    with pytest.raises(SystemExit, match="1 tokens without an answer, 0 unknown, 0 answered twice"):
        make.recorded_choices(tmp_path, set())


def test_every_item_that_stands_can_be_shown_as_each_judge_saw_it() -> None:
    """Query, instruction and the eight texts in the judge's order have the key of the judgment."""
    choices = {(row["judge"], row["item"]): row for row in make.read(SHIPPED / "judgments.jsonl")}
    orders: dict[str, dict[str, list[str]]] = {"A": {}, "B": {}}
    for file in KEYS:
        judge = file.stem.split("_")[1]
        for seen in make.shown(file):
            assert seen["choice"] in range(9) and len(seen["passages"]) == 8
            if (judge, seen["item"]) not in choices:
                continue
            chosen = choices[judge, seen["item"]]
            assert item_key(seen["instruction"], seen["query"], seen["passages"]) == seen["item"]
            texts = [make.text_sha256(text) for text in seen["passages"]]
            named = texts[seen["choice"] - 1] if seen["choice"] else "none"
            assert chosen["choice"] == named
            assert chosen.get("reason", "") == seen["reason"]
            orders[judge][seen["item"]] = texts
    assert {(judge, item) for judge in orders for item in orders[judge]} == choices.keys()
    same = sum(orders["A"][item] == orders["B"][item] for item in orders["A"])
    assert same <= 2, "each judge has an order of its own"


def test_the_right_answer_stands_in_every_place_about_equally_often() -> None:
    for file in KEYS:
        rows = make.read(file)
        assert len({row["token"] for row in rows}) == len(rows)
        places = Counter(row["order"].index(row["right"]) for row in rows)
        most = len(rows) / 8 + 4 * (len(rows) * 7 / 64) ** 0.5  # four standard deviations
        assert max(places.values()) <= most, (file.name, places)


def test_what_was_judged_again_in_another_order_is_an_item_of_the_set() -> None:
    known = {row["item"]: row for file in KEYS for row in make.read(file)}
    for file in (JUDGING / "keys").glob("again_*.jsonl"):
        keys = {row["token"]: row for row in make.read(file)}
        answers = make.read(JUDGING / f"answers_{file.stem}.jsonl")
        assert sorted(answer["token"] for answer in answers) == sorted(keys)
        for key in keys.values():
            assert sorted(key["order"]) == sorted(known[key["item"]]["order"])
            assert key["order"] != known[key["item"]]["order"]


def test_a_key_is_printed_as_the_judge_saw_it(capsys: pytest.CaptureFixture[str]) -> None:
    make.print_shown(JUDGING / "keys" / "key_A_104.jsonl")
    printed = capsys.readouterr().out
    sheet = make.read(JUDGING / "keys" / "key_A_104.jsonl")
    assert printed.count("===== token ") == len(sheet) and "mended since" not in printed
    first = json.loads((JUDGING / "answers_A_104.jsonl").read_text().splitlines()[0])
    assert f"token {first['token']} · answer {first['choice']}" in printed
