"""The Datasets page: columns are mapped and an import is previewed before anything is stored."""

from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from app_pages import open_page, sign_in, words
from conftest import count_rows
from records_world import make_run
from sqlalchemy import select
from study_world import make_world

from db.store.store import Store
from db.tables import Pair, Passage


@pytest.fixture
def faq(tmp_path: Path) -> Path:
    path = tmp_path / "faq.csv"
    path.write_text("Frage;Antwort\nWas ist Tee?;Blätter in Wasser.\nUnd Kaffee?;\n")
    return path


def test_a_preview_shows_rows_and_refusals_and_stores_nothing(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, faq: Path
) -> None:
    sign_in(sqlite_store, monkeypatch, "admin")
    page = open_page("datasets")
    page.text_input(key="datasets.name").set_value("faq")
    page.text_input(key="datasets.pairs").set_value(str(faq))
    page = page.button(key="datasets.preview").click().run()
    for name, theirs in (("query", "Frage"), ("passage", "Antwort")):
        field = page.selectbox(key=f"datasets.column_pairs_{name}")
        assert field.options == ["Frage", "Antwort"]
        field.select(theirs)
    page = page.button(key="datasets.preview").click().run()
    assert not page.exception
    assert [box.value for box in page.info] == [
        "1 pair and 1 passage would be imported. Nothing was stored."
    ]
    assert [box.value for box in page.warning] == ["1 row would be refused:"]
    frames = [frame.value for frame in page.dataframe]
    assert frames[0]["query"].tolist() == ["Was ist Tee?"]
    assert frames[1]["Line"].tolist() == [3]
    assert count_rows(sqlite_store, "dataset") == count_rows(sqlite_store, "pair") == 0
    page.checkbox(key="datasets.skip_bad").check()
    page.button(key="datasets.submit").click().run()
    assert count_rows(sqlite_store, "pair") == 1


def test_usual_names_are_proposed_at_the_fields_and_filled_in_by_a_click(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    faq = tmp_path / "faq.csv"
    faq.write_bytes("question;answer;topic\nWas ist Käse?;Milch – süß;Essen\n".encode("cp1252"))
    sign_in(sqlite_store, monkeypatch, "admin")
    page = open_page("datasets")
    page.text_input(key="datasets.name").set_value("faq")
    page.text_input(key="datasets.pairs").set_value(str(faq))
    page = page.button(key="datasets.submit").click().run()
    found = [each for each in page.main if each.type in ("selectbox", "error")]
    wrong = {each.key: of.value for each, of in pairwise(found) if of.type == "error"}
    assert wrong == {
        "datasets.column_pairs_query": r"faq\.csv has no column `query`\.",
        "datasets.column_pairs_passage": r"faq\.csv has no column `passage` or `passage_id`\.",
    }, "at their fields"
    assert any("`query` ← `question`, `passage` ← `answer`" in box.value for box in page.markdown)
    assert page.code[-1].value == "query,passage\nwhat is tea?,Leaves in hot water."
    assert count_rows(sqlite_store, "dataset") == 0
    page = page.button(key="datasets.use_columns").click().run()
    assert not page.exception and [box.value for box in page.error] == []
    assert page.selectbox(key="datasets.column_pairs_query").value == "question"
    assert page.selectbox(key="datasets.column_pairs_passage").value == "answer"
    assert page.dataframe[0].value["query"].tolist() == ["Was ist Käse?"]
    assert any("Windows" in box.value for box in page.warning)
    assert count_rows(sqlite_store, "dataset") == 0, "a click on a proposal imports nothing"
    page.button(key="datasets.submit").click().run()
    assert count_rows(sqlite_store, "pair") == 1


def test_what_is_missing_is_reported_at_its_field(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, faq: Path
) -> None:
    sign_in(sqlite_store, monkeypatch, "admin")
    page = open_page("datasets")
    page = page.button(key="datasets.submit").click().run()
    assert [box.value for box in page.error] == ["Enter a name for the dataset."]
    page.text_input(key="datasets.name").set_value("faq")
    page = page.button(key="datasets.submit").click().run()
    assert [box.value for box in page.error] == ["Choose a file of pairs."]
    assert not page.exception


def test_several_uploads_are_read_as_a_folder(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    from app.access.identity import Actor
    from app.datasets.import_form import with_uploads
    from app.operations import datasets
    from db.people.rights import Rights

    def upload(name: str, text: str) -> io.BytesIO:
        file = io.BytesIO(text.encode())
        file.name = name
        return file

    def preview_of(name: str, uploads: list[io.BytesIO]) -> Any:
        with with_uploads({"name": name}, uploads, None) as (request, folder):  # type: ignore[arg-type]
            return datasets.preview(curator, request, uploads=folder)

    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    curator = Actor("cleo", rights=Rights(everywhere=frozenset({"curate"})))
    files = [
        upload("collection.tsv", "1\tTea is leaves.\n2\tCoffee is seeds.\n"),
        upload("queries.train.tsv", "7\twhat is tea\n"),
        upload("qrels.train.tsv", "7\t0\t1\t1\n"),
    ]
    preview = preview_of("marco", files)
    assert (preview.pairs, preview.passages) == (1, 2)
    assert preview.preview[0]["passage"] == "Tea is leaves."
    shards = [upload(f"train-{n}.jsonl", f'{{"query": "q{n}", "passage": "p"}}') for n in range(2)]
    assert preview_of("faq", shards).pairs == 2


def test_a_file_is_read_as_the_format_that_is_chosen(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`inf import --as FORMAT` had no field on the page."""
    train = tmp_path / "train.jsonl"
    train.write_text('{"question": "2 + 3?", "answer": "2 + 3 = 5. #### 5"}\n')
    sign_in(sqlite_store, monkeypatch, "admin")
    page = open_page("datasets")
    page.text_input(key="datasets.name").set_value("gsm")
    page.text_input(key="datasets.pairs").set_value(str(train))
    field = page.selectbox(key="datasets.layout")
    formats = {option.partition(":")[0] for option in field.options}
    assert field.value is None and {"beir", "math"} <= formats
    field.set_value("math")
    page = page.button(key="datasets.submit").click().run()
    assert not page.exception and [box.value for box in page.error] == []
    assert count_rows(sqlite_store, "pair") == 1


def test_a_curator_reads_no_file_of_the_server(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, faq: Path, tmp_path: Path
) -> None:
    from app.access.identity import Actor
    from app.operations import datasets
    from curation.importing.request import DatasetImport
    from db.errors import Refused
    from db.people.rights import Rights

    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    curator = Actor("cleo", rights=Rights(everywhere=frozenset({"curate"})))
    for uploads in (None, tmp_path / "uploads"):
        for given in ({"pairs": faq}, {"groups": [faq]}, {"pairs": "s3://bucket/pairs.jsonl"}):
            request = DatasetImport.read({"name": "faq"} | given)
            for call in (
                lambda request=request, uploads=uploads: datasets.preview(
                    curator, request, uploads=uploads
                ),
                lambda request=request, uploads=uploads: datasets.import_files(
                    curator, request, datasets.here(print), uploads=uploads
                ),
            ):
                with pytest.raises(Refused, match="only an admin"):
                    call()


def test_an_archived_dataset_is_on_no_page_and_takes_no_import(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, faq: Path
) -> None:
    from db.archive.archiving import archive
    from db.people.rights import ALL_RIGHTS

    make_world(sqlite_store, groups=3, name="kept")
    make_world(sqlite_store, groups=3, name="hidden")
    with sqlite_store.write() as session:
        archive(session, dataset="hidden", rights=ALL_RIGHTS, actor="test")
        session.commit()
    sign_in(sqlite_store, monkeypatch, "admin")
    page = open_page("datasets")
    assert page.dataframe[0].value["name"].tolist() == ["kept"]
    page.text_input(key="datasets.name").set_value("hidden")
    page.text_input(key="datasets.pairs").set_value(str(faq))
    page = page.button(key="datasets.preview").click().run()
    for name, theirs in (("query", "Frage"), ("passage", "Antwort")):
        field = page.selectbox(key=f"datasets.column_pairs_{name}")
        assert field.options == ["Frage", "Antwort"]
        field.select(theirs)
    page.checkbox(key="datasets.skip_bad").check()
    page = page.button(key="datasets.submit").click().run()
    assert any("'hidden' is archived" in box.value for box in page.error)
    groups = open_page("groups")
    assert all("hidden" not in str(box.options) for box in groups.selectbox)


def test_pairs_are_rows_of_one_line_that_open_on_the_whole_texts(sqlite_store: Store) -> None:
    long = "*word*\nnext " * 60 + "<b>end</b>"
    make_run(sqlite_store, kept=1)
    with sqlite_store.write() as session:
        pair = session.scalars(select(Pair).limit(1)).one()
        pair.query = "a *star*"
        session.get_one(Passage, pair.passage_id).text = long
        session.commit()
    page = open_page("datasets")
    assert not page.exception
    rows = [each for each in page.expander if each.label != "Import"]
    (row,) = [each for each in rows if "star" in each.label]
    assert row.label.startswith(r"a \*star\* · \*word\* next")
    assert "\n" not in row.label and len(row.label) < 200
    assert escape(long) in words(page)


def test_an_upload_is_looked_at_and_its_columns_are_chosen_at_once(sqlite_store: Store) -> None:
    page = open_page("datasets")
    odd = b"id;Question;best answer;notes\n7;what is tea?;Leaves in hot water.;x\n"
    page.file_uploader(key="datasets.files").set_value([("odd.csv", odd, "text/csv")])
    page.run()
    assert not page.exception and [box.value for box in page.error] == []
    assert [box.value for box in page.info] == [
        "1 pair and 1 passage would be imported. Nothing was stored."
    ]
    fields = {name: f"datasets.column_pairs_{name}" for name in ("query", "passage")}
    chosen = {name: page.selectbox(key=key) for name, key in fields.items()}
    assert chosen["query"].value == "Question" and chosen["passage"].value == "best answer"
    assert chosen["passage"].options == ["id", "Question", "best answer", "notes"]
    assert count_rows(sqlite_store, "pair") == 0
    other = b"Frage;Antwort auf sie\nWas ist Tee?;Blaetter in Wasser.\n"
    page.file_uploader(key="datasets.files").set_value([("other.csv", other, "text/csv")])
    page.run()
    assert [box.value for box in page.error] == []
    field = page.selectbox(key="datasets.column_pairs_query")
    assert field.value == "Frage", "not the first file's"
    page.text_input(key="datasets.name").set_value("odd")
    page = page.button(key="datasets.submit").click().run()
    assert not page.exception and not page.error and count_rows(sqlite_store, "pair") == 1


def test_an_upload_whose_columns_nothing_proposes_is_told_at_once(sqlite_store: Store) -> None:
    page = open_page("datasets")
    page.file_uploader(key="datasets.files").set_value([("odd.csv", b"a;b\n1;2\n", "text/csv")])
    page.run()
    assert not page.exception
    assert "no column `query`" in page.error[0].value
    assert page.selectbox(key="datasets.column_pairs_query").options == ["a", "b"]
