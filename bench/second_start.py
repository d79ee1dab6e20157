"""Seconds from `inf demo` on a finished store until the app answers, of wall clock and of CPU.

    python bench/second_start.py --home FOLDER [--inf PROGRAM …] [--rounds 5]

`--home`: a copy of the `.inf` of a finished demo; a supervisor that runs for it is left running.
`--inf`: the programs to compare, each in turn (default: that of this environment).
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil


def main() -> None:
    """Measure every program in turn and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--inf", nargs="+", default=[str(Path(sys.executable).parent / "inf")])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {program: [] for program in given.inf}
    for _ in range(given.rounds):
        for program in given.inf:
            found[program].append(start(program, given.home.resolve()))
    for program, rounds in found.items():
        wall, cpu = (statistics.median(each) for each in zip(*rounds, strict=True))
        print(f"{program}: {wall:.2f} s until it answers, {cpu:.2f} s of CPU")


def start(program: str, home: Path) -> tuple[float, float]:
    """Wall and CPU seconds of one start."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "INF_HOME": str(home)}
    environment.pop("INF_DATABASE_URL", None)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as the Makefile does
    began = time.monotonic()
    with subprocess.Popen(
        [program, "demo", "--port", str(port)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while not answers(port):
            if process.poll() is not None:
                raise SystemExit(f"{program} demo ended with {process.returncode}")
            time.sleep(0.01)
        wall = time.monotonic() - began
        spent = psutil.Process(process.pid).cpu_times()
        process.terminate()
    return wall, spent.user + spent.system


def answers(port: int) -> bool:
    """Whether the app sends its page."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            return bool(answer.read())
    except OSError:
        return False


if __name__ == "__main__":
    main()
