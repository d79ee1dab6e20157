"""How long an import of 100,000 pairs takes, and how much memory.

    .venv/bin/python bench/importing.py [--pairs 100000] [--format jsonl|csv|parquet]

The texts are made here: passages of 55 words (the paper's mean, Table 1), every query its own.
The store is the one INF_DATABASE_URL names, an SQLite file in a temporary folder by default; the
import runs in a process of its own, whose peak memory is that process's alone. The limit to stay
under is 60 s on SQLite.
"""

import argparse
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from db.modules import run_module

WORDS = [f"word{number}" for number in range(20_000)]
WORDS_PER_PASSAGE = 55


def write_pairs(path: Path, pairs: int) -> None:
    """A file with `pairs` pairs, each with its passage inline."""
    generator = random.Random(0)
    rows = (
        {
            "query_id": f"q-{number}",
            "query": " ".join(generator.choices(WORDS, k=8)),
            "passage_id": f"p-{number}",
            "passage": " ".join(generator.choices(WORDS, k=WORDS_PER_PASSAGE)),
            "language": "en",
        }
        for number in range(pairs)
    )
    if path.suffix == ".jsonl":
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        return
    import pandas as pd

    frame = pd.DataFrame(rows)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--format", default="jsonl", choices=("jsonl", "csv", "parquet"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"pairs.{arguments.format}"
        # in a process of its own: a child's peak memory counts what its parent holds at the start
        writer = multiprocessing.get_context("spawn").Process(
            target=write_pairs, args=(path, arguments.pairs)
        )
        writer.start()
        writer.join()
        url = os.environ.get("INF_DATABASE_URL") or f"sqlite:///{folder}/inf.db"
        environment = os.environ | {"INF_DATABASE_URL": url}
        inf = [sys.executable, *run_module("app.cli.main")]
        subprocess.run([*inf, "db", "upgrade"], env=environment, check=True, capture_output=True)
        for again in (False, True):
            began = time.perf_counter()
            command = [*inf, "import", "--dataset", "bench", "--pairs", str(path), "--json"]
            with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as child:
                assert child.stdout is not None
                printed = child.stdout.read()
                _, status, usage = os.wait4(child.pid, 0)
                child.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.perf_counter() - began
            print(
                json.dumps(
                    {
                        "engine": url.split(":")[0],
                        "format": arguments.format,
                        "file_mb": round(path.stat().st_size / 1e6, 1),
                        "again": again,
                        "imported": json.loads(printed)["imported"],
                        "seconds": round(seconds, 1),
                        "peak_memory_mb": round(usage.ru_maxrss / 1024),
                    }
                )
            )


if __name__ == "__main__":
    main()
