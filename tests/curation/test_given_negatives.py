"""Negatives that come with a pair: imported, mined, taken into groups, released, trained from."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from curation_runs import add_dataset, run_curation, slots_of
from decided_runs import ME, decide
from exporting import export, rows_of
from openai_server import Server
from records_world import list_groups
from sqlalchemy import func, select

from app.operations import datasets
from curation.hub.layouts import Wanted
from curation.hub.layouts import rows_of as layout_rows
from curation.hub.pull import pull
from curation.importing.importing import import_dataset
from curation.importing.job import import_as
from curation.importing.request import DatasetImport
from curation.mining.request import NegativesMine
from curation.recipe.recipe import FOLDER, load_recipe
from curation.sources.converting import write_files
from db.corpus.datasets import add_negatives
from db.errors import BadInput, BadRows
from db.review.reviews import approve_group, current_review, edit_group, undo_review
from db.run.group_detail import GroupShown, get_group
from db.run.runs import shape_of
from db.store.store import Store
from db.tables import Item, Pair, PairNegative, Passage, SlotText
from trainer.data.release_files import read_release

PAIRS = 16
ROWS = [
    {"query": "what is tea", "passage": "Leaves in water.", "negatives": ["Coffee.", "Milk."]},
    {"query": "what is tea", "passage": "Leaves in water.", "negative": "Juice."},
    {
        "query": "who sings",
        "passage": "Birds.",
        "negative_passages": [{"text": "Stones."}],
    },
    {"query": "who walks", "passage": "Cats.", "negatives": []},
]


def given(store: Store) -> dict[str, list[str]]:
    """The negatives of every pair, by query, in their order."""
    with store.read() as session:
        rows = session.execute(
            select(Pair.query, Passage.text)
            .join(PairNegative, PairNegative.pair_id == Pair.id)
            .join(Passage, Passage.id == PairNegative.passage_id)
            .order_by(PairNegative.id)
        )
        found: dict[str, list[str]] = {}
        for query, text in rows:
            found.setdefault(query, []).append(text)
    return found


# ---- import


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_triples_give_their_negatives_to_their_pairs_once(
    store: Store, tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"triples.{ending}"
    if ending == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        expected = {"what is tea": ["Coffee.", "Milk.", "Juice."], "who sings": ["Stones."]}
    else:
        lines = [
            'what is tea,Leaves in water.,"[""Coffee."", ""Milk.""]"',
            "what is tea,Leaves in water.,Juice.",
            "who sings,Birds.,[sic] Stones.",
            "who walks,Cats.,",
        ]
        file.write_text("query,passage,negatives\n" + "\n".join(lines) + "\n")
        expected = {"what is tea": ["Coffee.", "Milk.", "Juice."], "who sings": ["[sic] Stones."]}
    for again in (False, True):
        report = import_dataset(store, name="triples", pairs=file)
        assert report.negatives == (0 if again else 4)
        assert report.imported["pairs"] == (0 if again else 3)
        assert given(store) == expected
    with store.read() as session:
        texts = [text for of in expected.values() for text in of]
        of_pool = select(Passage.origin).where(Passage.text.in_(texts)).distinct()
        assert list(session.scalars(of_pool)) == ["pool"]
        metas = session.scalars(select(Pair.meta)).all()
    assert all(not meta for meta in metas)


def test_a_negative_that_is_the_passage_or_unknown_is_a_bad_row(
    sqlite_store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "bad.jsonl"
    rows = [
        ({"negatives": ["Leaves."]}, "one of the negatives is the passage itself"),
        ({"negatives": [7]}, "`negatives` holds a number, not text"),
        ({"negative_ids": ["p-nowhere"]}, "unknown passage_id 'p-nowhere'"),
        ({"negative_ids": "p1"}, "`negative_ids` is not a list of ids"),
    ]
    for more, reason in rows:
        file.write_text(json.dumps({"query": "tea", "passage": "Leaves.", **more}) + "\n")
        with pytest.raises(BadRows) as refused:
            import_dataset(sqlite_store, name="bad", pairs=file)
        assert reason in str(refused.value), more
    file.write_text(json.dumps({"query": "tea", "passage": "Leaves.", "negative": 3}) + "\n")
    import_dataset(sqlite_store, name="bad", pairs=file)
    with sqlite_store.read() as session:
        assert session.scalars(select(Pair.meta)).one() == {"negative": 3}


def test_published_triples_keep_theirs_at_the_pair(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "published.jsonl"
    row = {"anchor": "what is tea", "positive": "Leaves.", "negative_1": "Coffee.", "neg": "Milk."}
    file.write_text(json.dumps(row) + "\n")
    for negatives in (True, False):
        wanted = Wanted(layout="triplets", negatives=negatives)
        folder = tmp_path / str(negatives)
        made = write_files(layout_rows([file], "triplets", wanted), folder, limit=None)
        name = f"published-{negatives}"
        import_dataset(store, name=name, pairs=made.pairs_path, passages=made.passages_path)
        with store.read() as session:
            number = session.scalar(select(func.count()).select_from(PairNegative))
        assert number == 2, "of the first import alone"


# ---- in groups


CHECK = """
[checks.relevant]
question = "yes_no"
prompt = "promptriever_answers.md"
model = "small"
over = ["H"]
with = ["Q"]
expected = { "H" = "no" }

[rules]
"H" = "drop text"
"""


def with_given(folder: Path) -> str:
    """Promptriever's recipe with a place for up to two given negatives, checked."""
    text = (FOLDER / "promptriever.toml").read_text()
    slot = '"H" = { field = "passage", column = "hard_negatives", count = 2, from_source = true }\n'
    text = text.replace("\n[vary]", f"{slot}\n[vary]", 1)
    text = text.replace("\n[rules]\n", CHECK).replace('1 = "N" }', '1 = "N", 0 = "H" }')
    (folder / "given.toml").write_text(text)
    return str(folder / "given.toml")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(schema="taken") as one:
        monkeypatch.setenv("OPENAI_BASE_URL", one.url)
        yield one


def filled(store: Store) -> int:
    """A dataset with negatives: of pair n, n % 4 of the pool, of which a group takes two."""
    dataset_id = add_dataset(store, pairs=PAIRS)
    with store.write() as session:
        pool = [f"p{PAIRS + number}" for number in range(8)]
        named = {f"q{number}": pool[number % 5 :][: number % 4] for number in range(PAIRS)}
        add_negatives(session, dataset_id, named)
        session.commit()
    return dataset_id


@pytest.mark.long
def test_given_negatives_are_in_groups_and_leave_where_they_answer(
    store: Store, server: Server, tmp_path: Path
) -> None:
    filled(store)
    asked: dict[str, Any] = {
        "dataset": "small",
        "provider": "openai",
        "recipe": with_given(tmp_path),
        "settings": ["model=small"],
    }
    run_id = run_curation(store, **asked)["run_id"]
    slots = slots_of(store, run_id)
    negatives = given(store)
    with store.read() as session:
        groups = [get_group(session, row.id) for row in list_groups(session, run_id, limit=99).rows]
        of_pool = select(Passage.origin).join(SlotText, SlotText.passage_id == Passage.id)
        assert set(session.scalars(of_pool.where(SlotText.slot == "H"))) == {"pool"}
    reasons = set()
    for group in groups:
        found = {name: slots[group.id][name] for name in slots[group.id] if name[0] == "H"}
        expected = negatives.get(group.query, [])[:2]
        assert [text for text, _ in found.values()] == expected
        answers = {one.scenario: one.choice for one in group.judgments}
        for name, (_, reason) in found.items():
            assert (reason is None) == (answers[f"relevant:{name}"] == "no")
            assert (name in group.texts) == (reason is None)
            reasons.add(reason)
    assert reasons, "some pairs have negatives"
    again = run_curation(store, **asked)
    assert again["calls"]["made"] == 0
    assert list(slots_of(store, again["run_id"]).values()) == list(slots.values())
    decide(run_id, "checks.relevant.expected.H=any")
    now = slots_of(store, run_id)
    assert {
        reason for of in now.values() for name, (_, reason) in of.items() if name[0] == "H"
    } == {None}
    out = tmp_path / "out"
    export(store, out, dataset="small", runs=[run_id], format="jsonl")
    listed = [
        each
        for row in rows_of(out)["small"]
        for each in row["negative_passages"]
        if each["explanation"] == "query_negative"
    ]
    kept = [group for group in groups if group.verdict == "kept"]
    number = sum(len(negatives.get(group.query, [])[:2]) for group in kept)
    assert len(listed) == 2 * number > 0, "with the instruction and without"
    assert not {each["docid"] for each in listed} & {one.passage_id for one in kept}
    grades = {each.grade for group in read_release(out).groups for each in group.negatives}
    assert grades == {0, 1}

    # imported: the same groups, whose pairs have the negatives that were released
    again = pull(store, repo=str(out), name="again").groups
    assert again is not None and again.imported == len(kept)
    packed = tmp_path / "packed"
    export(store, packed, dataset="small", runs=[run_id], format="parquet")
    (file,) = (packed / "data").iterdir()
    for count in (len(kept), 0):
        by_file = DatasetImport(name="filed", groups=(str(file),))
        filed = import_as(store, by_file, by="ada", progress=lambda done, total: None)
        assert (filed.imported, filed.skipped) == (count, 0)
    with store.read() as session:
        shape = shape_of(session, run_id)
        for other in (again.run_id, filed.run_id):
            assert shape_of(session, other) == shape
            rows = list_groups(session, other, limit=99).rows
            copies = [get_group(session, row.id) for row in rows]
            assert {one.name: one.texts for one in copies} == {
                one.name: get_group(session, one.id).texts for one in kept
            }
            # of a group with a stand-in, the passage that was released
            released = {row["passage_id"] for row in rows_of(out)["small"]}
            assert {one.passage_id for one in copies} == released
            items = session.scalars(select(Item).where(Item.group_id == copies[0].id)).all()
            labels = [each["label"] for each in items[0].candidates]
            assert labels == ["positive", *(name for name in copies[0].texts if name[0] in "NH")]
        (held,) = session.scalars(
            select(func.count())
            .select_from(PairNegative)
            .join(Pair, Pair.id == PairNegative.pair_id)
            .where(Pair.dataset_id == again.dataset_id)
        )
        assert held == number
    export(store, tmp_path / "twice", dataset="again", runs=[again.run_id], format="jsonl")
    assert said_by(rows_of(out)["small"]) == said_by(rows_of(tmp_path / "twice")["again"])


def said_by(rows: list[dict[str, Any]]) -> list[Any]:
    """What a release says, whatever its ids are."""
    return sorted(
        (
            row["only_query"],
            row["only_instruction"],
            *(
                [one["text"] for one in row[f"{kind}_passages"]]
                for kind in ("positive", "negative")
            ),
        )
        for row in rows
    )


def test_rows_that_are_no_group_of_their_shape_are_refused(
    sqlite_store: Store, tmp_path: Path
) -> None:
    shape = load_recipe("promptriever").shape
    (tmp_path / "release.json").write_text(json.dumps(shape.entry))
    passage = {"docid": "p1", "title": "", "text": "Leaves in water."}
    row: dict[str, Any] = {
        "group_id": 7,
        "passage_id": "p1",
        "query_id": "7-I-Q",
        "only_query": "what is tea",
        "only_instruction": "Only of leaves.",
        "positive_passages": [passage],
        "negative_passages": [{**passage, "docid": "7-N", "text": "Coffee."}],
    }
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"group_id": None}, "no `group_id`"),
        ({"query_id": "7-J-Q"}, "`query_id` '7-J-Q': one of 7-Q, 7-I-Q"),
        ({"negative_passages": [{**passage, "docid": "7-X"}]}, "`docid` '7-X': one of p1, 7-P+"),
        ({"positive_passages": None}, "`positive_passages` is not a list of passages"),
        ({"positive_passages": []}, "no row of group 7 has its `passage`"),
        ({"query_id": "7-Q"}, "no row of group 7 has its `instruction`"),
    ]
    file = tmp_path / "x.jsonl"
    request = DatasetImport(name="x", groups=(str(file),))
    for changed, reason in wrong:
        file.write_text(json.dumps(row | changed) + "\n")
        with pytest.raises(BadRows) as refused:
            import_as(sqlite_store, request, by="ada", progress=lambda done, total: None)
        assert reason in str(refused.value), (reason, str(refused.value))
    file.write_text(json.dumps(row) + "\n")
    result = import_as(sqlite_store, request, by="ada", progress=lambda done, total: None)
    with sqlite_store.read() as session:
        (group_id,) = (one.id for one in list_groups(session, result.run_id).rows)
        assert get_group(session, group_id).texts["N"] == "Coffee."


def test_a_recipe_has_one_place_for_them(tmp_path: Path) -> None:
    recipe = with_given(tmp_path)
    shape = load_recipe(recipe).shape
    assert shape.given_list is not None and shape.given_list.sign == "H"
    text = Path(recipe).read_text().replace("count = 3,", "count = 3, from_source = true,")
    text = text.replace('gives = ["B", "N"]', 'gives = ["B"]')
    (tmp_path / "two.toml").write_text(text)
    with pytest.raises(BadInput, match="N and H have from_source"):
        load_recipe(str(tmp_path / "two.toml"))


# ---- mined


def test_mined_negatives_are_kept_at_the_pairs_once(store: Store, tmp_path: Path) -> None:
    add_dataset(store, pairs=4)
    add_dataset(store, name="corpus", pairs=0, pool=30)
    for number, corpus in enumerate((None, None, "corpus")):
        out = tmp_path / f"{number}.jsonl"
        request = NegativesMine(name="small", out=str(out), count=3, keep=True, corpus=corpus)
        found = datasets.mine(ME, request, datasets.here(lambda *_: None))
        mined = {
            row["query"]: row["negatives"] for row in map(json.loads, out.read_text().splitlines())
        }
        held = given(store)
        assert all(set(texts) <= set(held.get(query, [])) for query, texts in mined.items())
        if number == 0:
            assert found.kept == found.negatives == sum(map(len, held.values())) > 0
            assert {query: texts for query, texts in mined.items() if texts} == held
        if number == 1:
            assert found.kept == 0
    with store.read() as session:
        texts = select(Passage.text).join(PairNegative, PairNegative.passage_id == Passage.id)
        own = select(Passage.dataset_id).where(Passage.text.in_(texts)).distinct()
        assert len(session.scalars(own).all()) >= 1


# ---- reviewed


def _groups(store: Store, run_id: int) -> list[GroupShown]:
    with store.read() as session:
        return [get_group(session, row.id) for row in list_groups(session, run_id, limit=99).rows]


def test_a_review_knows_given_negatives_and_takes_one_out(
    sqlite_store: Store, server: Server, tmp_path: Path
) -> None:
    dataset_id = filled(sqlite_store)
    asked = {"dataset": "small", "provider": "openai", "settings": ["model=small"]}
    recipe = with_given(tmp_path)
    text = (
        Path(recipe).read_text().replace('expected = { "H" = "no" }', 'expected = { "H" = "yes" }')
    )
    Path(recipe).write_text(text)  # the test server finds that every passage answers
    runs = [run_curation(sqlite_store, **asked, recipe=recipe)["run_id"]]
    with sqlite_store.write() as session:
        add_negatives(session, dataset_id, {f"q{number}": ["p23"] for number in range(PAIRS)})
        session.commit()
    runs.append(run_curation(sqlite_store, **asked, recipe=recipe)["run_id"])
    one, other = ({each.name: each for each in _groups(sqlite_store, run)} for run in runs)
    name = next(
        name
        for name, group in one.items()
        if "H" in group.texts and "H[1]" not in group.texts and "H[1]" in other[name].texts
    )
    group = one[name]
    with sqlite_store.write() as session:
        approve_group(session, group.id, reviewed_by="ada")
        assert current_review(session, other[name].id) is None, "it has another negative"
        with pytest.raises(BadInput) as refused:
            edit_group(session, group.id, {"hard_negatives": "Mine."}, reviewed_by="ada")
        assert refused.value.code == "field_not_editable"
        edit_group(session, group.id, {"hard_negatives": ""}, reviewed_by="ada")
        session.commit()
        now = get_group(session, group.id)
        assert now.texts == {sign: of for sign, of in group.texts.items() if sign != "H"}
        undo_review(session, group.id, reviewed_by="ada")
        session.commit()
        assert get_group(session, group.id).texts == group.texts
