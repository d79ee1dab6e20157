"""What one answer on the judging card costs: SQL statements, transactions and milliseconds.

    .venv/bin/python bench/submit_cost.py [--answers 60] [--items 150] [--engine sqlite|postgresql]

One annotator answers one item at a time; `card_data` (app/judge/actions.py) is called in this
process with the cookie of a sign-in, without Streamlit around it. By function of ours: how many
statements it sends per answer and the milliseconds until their results are there.
`tests/app/test_submit_cost.py` refuses more statements and transactions.
"""

import argparse
import statistics
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from desks import add_annotators, measure_engines, stored_study
from statement_count import statements_counted
from streamlit.runtime import context

from app.access.identity import COOKIE
from app.judge.actions import card_data

UNTIMED = 10  # the first answers: statements are compiled, connections opened


def measure(url: str, home: Path, *, answers: int, items: int) -> dict[str, object]:
    """One engine."""
    with stored_study(url, home, items=items, overlap=3) as (store, study_id):
        (_, cookie), *_ = add_annotators(store, 3)
        client = SimpleNamespace(cookies={COOKIE: cookie})
        context._get_client_context = lambda: client  # what the browser sends
        card = card_data(study_id, [])
        for _ in range(UNTIMED):
            card = card_data(study_id, [answer_to(card)])
        wall, processor = [], []
        with statements_counted() as found:
            for _ in range(answers):
                event = answer_to(card)
                started, worked = time.perf_counter(), time.thread_time()
                card = card_data(study_id, [event])
                wall.append(1000 * (time.perf_counter() - started))
                processor.append(1000 * (time.thread_time() - worked))
    return {
        "statements": found.total / answers,
        "transactions": found.transactions / answers,
        "ms_p50": round(statistics.median(wall), 1),
        "cpu_ms_p50": round(statistics.median(processor), 1),
        "by_function": {
            name: {
                "statements": round(found.statements[name] / answers, 2),
                "ms": round(1000 * seconds / answers, 2),
            }
            for name, seconds in found.seconds.most_common()
        },
    }


def answer_to(card: Mapping[str, Any]) -> dict[str, object]:
    """What the card sends for its first item."""
    now = datetime.now(UTC)
    return {
        "event": uuid.uuid4().hex,
        "kind": "pick",
        "study": card["study"],
        "token": card["items"][0]["token"],
        "position": 0,
        "shown": (now - timedelta(seconds=2)).isoformat(),
        "decided": now.isoformat(),
    }


if __name__ == "__main__":
    about = argparse.ArgumentParser(description=__doc__)
    measure_engines(about, measure, answers=60, items=150)
