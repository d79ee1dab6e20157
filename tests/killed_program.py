"""A program of tests/ that forks a process for each request and answers with its exit status."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent


@contextmanager
def killed_program(name: str) -> Iterator[Callable[[dict[str, Any]], int]]:
    """Ask the program `name` by JSON objects, one at a time, until the block ends."""
    with subprocess.Popen(
        [sys.executable, str(TESTS / name)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=TESTS.parent,
    ) as program:
        assert program.stdin is not None and program.stdout is not None
        requests, answers = program.stdin, program.stdout

        def ask(wanted: dict[str, Any]) -> int:
            print(json.dumps(wanted), file=requests, flush=True)
            return int(answers.readline())

        yield ask
        requests.close()
