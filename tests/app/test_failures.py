"""What a page shows where something fails that is nobody's input, and what the log gets."""

import logging

import pytest
from app_pages import open_page, sign_in
from streamlit.testing.v1 import AppTest
from study_world import make_world, sampled_study

from app.server import failures
from app.server.failures import message_of
from app.text.languages import text
from db.errors import InfError
from db.store import schema
from db.store.store import Store


def failing_page() -> None:
    """A page's script as Streamlit runs it: an error, and our handler of it."""
    from app.server.failures import show_internal_error

    try:
        raise ValueError("a secret of the store\nwith a second line")
    except ValueError as error:
        show_internal_error(error)


def test_a_pages_error_is_a_line_and_a_code_that_the_person_sees(
    sqlite_store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(failures, "_logged", set())
    with caplog.at_level(logging.ERROR, "inf.app"):
        shown = [AppTest.from_function(failing_page).run().error[0].value for _ in range(3)]
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3 and len(set(lines)) == 1
    assert lines[0].startswith("500 PAGE ") and "account=-" in lines[0]
    code = lines[0].partition("error=")[2][:8]
    assert all(code in text and "secret" not in text for text in shown)
    assert [record.exc_info is not None for record in caplog.records] == [True, False, False]
    assert "second line" not in lines[0]


def test_the_judging_page_of_a_moved_store_reports_it_and_keeps_what_was_not_sent(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_world(sqlite_store, 12)
    with sqlite_store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=12, overlap=2).id
        session.commit()
    sign_in(sqlite_store, monkeypatch, "annotator")
    with schema.changing(sqlite_store) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    at = open_page("judge", study=str(study_id))
    assert [one.value for one in at.error if "Nothing was stored" in one.value]
    assert "unsent answers stay in this browser" in at.error[0].value


@pytest.mark.parametrize("code", ["store_replaced", "store_read_only", "store_unreachable"])
def test_a_store_that_cannot_be_used_is_named_with_the_remedy_also_before_sign_in(
    code: str,
) -> None:
    facts = {"since": "10:00", "until": "10:01"} if code == "store_unreachable" else {}
    error = InfError("raised by SQLite", "its remedy", code=code, **facts)
    for language in ("en", "de"):
        shown = message_of(error, "a1b2c3", language)
        assert shown != text(language, "internal_error", code="a1b2c3")
        assert "InF Studio" in shown and "a1b2c3" not in shown
