"""The types of rows in `inf_studio` are those of the routes, and things have what they say."""

from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest
from typed_rows import OTHERS, THINGS, as_python

from app.api.routes import by_name
from inf_studio import client, rows, transport

ROOT = Path(__file__).resolve().parents[3]


def test_the_module_is_what_the_routes_answer() -> None:
    written = (ROOT / "inf_studio" / "rows.py").read_text(encoding="utf-8")
    assert written == as_python(), "python tests/typed_rows.py > inf_studio/rows.py"


@pytest.mark.parametrize("name", ["db", "analysis", "curation", "trainer", "app"])
def test_what_no_program_is_to_import_is_called_internal(name: str) -> None:
    for module in (import_module(name), client, transport):
        assert "Internal" in (module.__doc__ or "")


@pytest.mark.parametrize("name", [*(f"{noun} show" for noun in THINGS), *OTHERS])
def test_a_thing_has_the_keys_of_its_row_and_no_name_of_its_own_among_them(name: str) -> None:
    answers = by_name()[name].answers
    keys = getattr(rows, f"{answers.__name__}Keys")
    things = [one for one in vars(client).values() if keys in getattr(one, "__bases__", ())]
    assert len(things) == 1, name
    fields = {*answers.model_fields, *answers.model_computed_fields}
    assert set(vars(keys)["__annotations__"]) == fields
    own = {one for one in dir(things[0]) if not one.startswith("_")}
    assert not own & fields, "a method that a key of the row would hide"
    assert set(get_type_hints(keys)) == fields
