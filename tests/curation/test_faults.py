"""Each row of the fault table, played against a run of three pairs."""

from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from curation_runs import add_dataset, run_curation
from fault_table import FAULTS, Fault, page, send
from openai_server import Server, answer_to
from sqlalchemy import select

from db.errors import ProviderError
from db.store.store import Store
from db.tables import Pair, Run

PAIRS = 3
PROBE = sha256(b"Reply with OK.").hexdigest()  # what the run sends to see whether the server lives
ASKED: dict[str, Any] = {"dataset": "small", "provider": "openai", "concurrency": 4}


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def server(shared_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_BASE_URL", shared_server.url)
    provider = "curation.providers.openai_server"
    monkeypatch.setattr(f"{provider}.BACKOFF_SECONDS", 0.002)
    monkeypatch.setattr(f"{provider}.MAX_BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr(f"{provider}.SILENT_FOR_SECONDS", 0.1)
    monkeypatch.setattr("curation.providers.gate.CUT_SECONDS", 0.01)
    # a report of a run's end: it takes longer than the run
    monkeypatch.setattr("curation.run.engine.check_leakage", lambda *_: {})
    for counts in (shared_server.asked, shared_server.answered):
        counts.clear()
    yield shared_server
    shared_server.reply = None


def play(server: Server, fault: Fault, query: str) -> Counter[str]:
    """Let the server misbehave as the row says; counts the requests that met the fault."""
    met: Counter[str] = Counter()

    async def reply(
        request: web.Request, body: dict[str, Any], prompt: str, tries: int
    ) -> web.StreamResponse | None:
        task, _ = answer_to(prompt)
        form = body.get("response_format", {}).get("type", "")
        meets = (
            (fault.tries == "every" or tries == 0)
            and (fault.reach == "all" or (query in prompt and task == fault.task))
            and server.answered.total() >= fault.after
            and (not fault.form or form == fault.form or (fault.form == "any" and form))
        )
        if not meets:
            return None
        met[prompt] += 1
        return await send(request, fault.make(server.completion(body, prompt, None)))

    server.reply = reply
    return met


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.does for fault in FAULTS])
def test_a_run_ends_as_the_table_says(
    sqlite_store: Store, server: Server, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in fault.environment.items():
        monkeypatch.setenv(name, value)
    add_dataset(sqlite_store, pairs=PAIRS)
    with sqlite_store.read() as session:
        query = session.scalars(select(Pair.query).order_by(Pair.id)).first()
    assert query is not None
    met = play(server, fault, query)
    settings = ["model=small", "output=text", *fault.settings]
    if fault.ends == "stops":
        with pytest.raises(ProviderError, match=fault.message):
            run_curation(sqlite_store, **ASKED, settings=settings)
        server.reply = None
        with sqlite_store.read() as session:
            run_id = session.scalars(select(Run.id)).one()
        result = run_curation(sqlite_store, run_id)
    else:
        result = run_curation(sqlite_store, **ASKED, settings=settings)
    assert met, "the fault never happened"
    expected = {fault.reason: 1} if fault.ends == "dropped" else {}
    assert result["status"] == "done" and result["dropped"] == expected
    assert result["kept"] == PAIRS - len(expected)
    server.answered.pop(PROBE, None)
    assert max(server.answered.values()) == 1, "an answer was paid twice"


def test_the_page_of_the_documentation_is_the_table() -> None:
    written = Path(__file__).parents[2] / "docs" / "reference" / "faults.md"
    assert written.read_text(encoding="utf-8") == page(), (
        "write it anew: python tests/fault_table.py > docs/reference/faults.md"
    )


def test_the_table_has_no_row_twice_and_all_that_was_promised() -> None:
    said = [fault.does for fault in FAULTS]
    assert len(said) == len(set(said)) >= 50
    statuses = {"400", "401", "402", "403", "404", "408", "409", "413", "422", "429"}
    for status in (*statuses, "500", "502", "503", "529"):
        assert any(f"answers {status}" in text for text in said), status
