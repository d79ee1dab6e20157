"""The Datasets page: columns are mapped and an import is previewed before anything is stored."""

from pathlib import Path

import pytest
from app_pages import open_page, sign_in
from conftest import count_rows
from study_world import make_world

from db.store.store import Store


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
    page.text_input(key="datasets.pairs_path").set_value(str(faq))
    page.text_input(key="datasets.column_query").set_value("Frage")
    page.text_input(key="datasets.column_passage").set_value("Antwort")
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


def test_a_curator_previews_no_file_of_the_server(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, faq: Path
) -> None:
    from app.datasets.actions import Sources, preview_from_page
    from db.errors import Refused

    sign_in(sqlite_store, monkeypatch, "curator")
    with pytest.raises(Refused, match="only an admin"):
        preview_from_page(Sources(pairs_path=str(faq)), name="faq")


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
    assert page.dataframe[0].value["Name"].tolist() == ["kept"]
    page.text_input(key="datasets.name").set_value("hidden")
    page.text_input(key="datasets.pairs_path").set_value(str(faq))
    page.text_input(key="datasets.column_query").set_value("Frage")
    page.text_input(key="datasets.column_passage").set_value("Antwort")
    page.checkbox(key="datasets.skip_bad").check()
    page = page.button(key="datasets.submit").click().run()
    assert any("'hidden' is archived" in box.value for box in page.error)
    groups = open_page("groups")
    assert all("hidden" not in str(box.options) for box in groups.selectbox)
