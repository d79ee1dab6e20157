"""What the server does for a page on a large store: until its title, and for its whole run.

    .venv/bin/python bench/title_cost.py --large-home DIR [--runs 3] [--only PAGE …]

DIR is kept by `bench/page_speed.py --groups N --large-home DIR`. A page is drawn by AppTest in this
process, as its first user on this machine; CPU is that of the thread that runs the
script. The first run loads the page's modules and counts for nothing; of the others the median.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext  # noqa: E402

from app.kit.menu import MENU  # noqa: E402


@dataclass
class Cost:
    """Of one run: CPU in ms and SQL statements, until the title and in all; messages to the
    browser."""

    title_ms: float = 0.0
    title_statements: int = 0
    run_ms: float = 0.0
    statements: int = 0
    messages: int = 0


@contextmanager
def costs_counted() -> Iterator[Cost]:
    """Count in the thread of the script, which starts with the run: its last message is its end."""
    from statement_count import statements_counted

    found = Cost()
    enqueue = ScriptRunContext.enqueue
    with statements_counted() as statements:

        def counted(self: ScriptRunContext, message: Any) -> None:
            enqueue(self, message)
            found.messages += 1
            if message.delta.new_element.heading.tag == "h1":
                found.title_ms = 1000 * time.thread_time()
                found.title_statements = statements.total
            found.run_ms = 1000 * time.thread_time()
            found.statements = statements.total

        ScriptRunContext.enqueue = counted  # type: ignore[method-assign]
        try:
            yield found
        finally:
            ScriptRunContext.enqueue = enqueue  # type: ignore[method-assign]


def measure(page: str, runs: int) -> Cost:
    """The median of each number over the runs after the first."""
    from app_pages import open_page

    at = open_page(page)
    found = []
    for _ in range(runs):
        with costs_counted() as cost:
            at.run()
        assert not at.exception, at.exception[0].message
        found.append(cost)
    return Cost(
        **{
            name: type(getattr(cost, name))(statistics.median(getattr(one, name) for one in found))
            for name in vars(cost)
        }
    )


def main() -> None:
    """Print the table of `docs/benchmarks.md`, and the load."""
    known = [view.name for view in MENU]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large-home", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=known, default=known, metavar="PAGE")
    given = parser.parse_args()
    os.environ["INF_HOME"] = str(given.large_home)
    os.environ["INF_DATABASE_URL"] = f"sqlite:///{given.large_home.resolve()}/inf.db"
    print("| page | title, ms | statements | whole run, ms | statements | messages |")
    print("|---|---:|---:|---:|---:|---:|")
    for page in given.only:
        cost = measure(page, given.runs)
        print(
            f"| {page} | {cost.title_ms:.0f} | {cost.title_statements} | {cost.run_ms:.0f} "
            f"| {cost.statements} | {cost.messages} |",
            flush=True,
        )
    print(f"\nload {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
