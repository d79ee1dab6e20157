"""Try it: the ten best of 100,000 passages, by the model server over its socket.

    .venv/bin/python bench/try_it.py [--passages 100000] [--model NAME]

The passages are short made-up texts; the first search loads the model and encodes them (its time is
printed apart), then twenty searches with other instructions are timed as the page sees them, over
HTTP. A second server, started anew, shows what the vectors on disk are worth. Limit: 300 ms.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from sqlalchemy import insert  # noqa: E402

from app.operations import try_it as model_client  # noqa: E402
from db.corpus.datasets import text_sha256  # noqa: E402
from db.store import schema  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import Store, open_store  # noqa: E402
from db.tables import Dataset, Passage  # noqa: E402

owners_process(True)

WORDS = ("river", "bridge", "bread", "comet", "violin", "glass", "winter", "oak", "salt", "paper")
SEARCHES = 20


def fill(store: Store, count: int) -> None:
    """A dataset of `count` passages of eight words."""
    chance = random.Random(0)
    texts = [f"{n} " + " ".join(chance.choices(WORDS, k=8)) for n in range(count)]
    with store.write() as session:
        session.add(Dataset(name="many"))
        session.flush()
        session.execute(
            insert(Passage),
            [
                {
                    "dataset_id": 1,
                    "external_id": str(number),
                    "text": text,
                    "sha256": text_sha256(text),
                    "origin": "pool",
                    "meta": {},
                }
                for number, text in enumerate(texts)
            ],
        )
        session.commit()


def ask(store: Store, model: str, instruction: str) -> float:
    """Seconds of one search as the page waits for it."""
    began = time.monotonic()
    found = model_client.search_with(
        store,
        model,
        model_client.Search(dataset="many", instruction=instruction, query="an old bridge"),
    )
    assert len(found.hits) == 10
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["INF_HOME"] = folder
        os.environ["INF_DATABASE_URL"] = f"sqlite:///{folder}/inf.db"
        store = open_store()
        schema.upgrade(store)
        fill(store, given.passages)
        for words in ("first start, encoding", "second start, from disk"):
            loaded = ask(store, given.model, "Find it.")
            times = [ask(store, given.model, f"Find number {n}.") for n in range(SEARCHES)]
            print(
                f"{words}: {loaded:.1f} s; then top 10 of {given.passages:,}: median "
                f"{1000 * statistics.median(times):.0f} ms, worst {1000 * max(times):.0f} ms"
            )
            model_client.stop_server()
            for process in model_client._started:
                process.wait()
        store.close()


if __name__ == "__main__":
    main()
