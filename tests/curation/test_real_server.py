"""A run against llama.cpp's server with a real, very small model."""

from collections.abc import Iterator

import pytest
from conftest import require
from curation_runs import add_dataset, run_curation
from real_server import MODEL, missing_wheels, real_server
from sqlalchemy import select

from curation.recipe.drop_reasons import find_reason
from db.store.store import Store
from db.tables import Call, SlotText

pytestmark = [pytest.mark.real_server, pytest.mark.long]
PAIRS = 20


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    if reason := missing_wheels():
        require("real_server", reason)
    with real_server() as found:
        yield found


def test_a_run_of_twenty_pairs_ends_and_a_second_one_makes_no_call(
    sqlite_store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model of 135 million parameters keeps little or nothing: that is what the rules are for."""
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    add_dataset(sqlite_store, pairs=PAIRS)
    asked = {
        "dataset": "small",
        "provider": "openai",
        "settings": [f"model={MODEL}", "max_output_tokens=32", "validation.distractors=1"],
        "concurrency": 4,
        "guard": False,
    }
    result = run_curation(sqlite_store, **asked)
    assert result["status"] == "done"
    assert result["kept"] + sum(result["dropped"].values()) == PAIRS
    assert all(map(find_reason, result["dropped"]))
    assert result["dropped"].keys().isdisjoint({"server_error", "request_refused"})
    assert result["calls"]["made"] >= PAIRS
    with sqlite_store.read() as session:
        answers = session.execute(select(Call.answer, Call.input_tokens, Call.output_tokens)).all()
        texts = session.scalars(select(SlotText.text).where(SlotText.slot.in_(("I+", "I-")))).all()
    assert len(answers) == result["calls"]["made"]
    assert all(tokens_in > 50 and tokens_out for _, tokens_in, tokens_out in answers)
    assert not any("```" in text or "<|im_" in text for text in texts)
    again = run_curation(sqlite_store, **asked)
    assert again["calls"]["made"] == 0 and again["dropped"] == result["dropped"]
