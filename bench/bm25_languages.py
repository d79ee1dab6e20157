"""What stemming and stop words are worth to BM25: docs/concepts/evaluation-records.md.

    nice python bench/bm25_languages.py --data ../shared/data/google_queries

nDCG@10 of the questions of each source against all passages, without and with English.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

# A script's own folder comes first on the path: bench/analysis.py would replace the package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from analysis.text.bm25 import NO_LANGUAGE  # noqa: E402
from trainer.evaluate.benchmarks import Benchmark, Question  # noqa: E402
from trainer.evaluate.scoring import score_bm25  # noqa: E402
from trainer.settings.template import Template  # noqa: E402


def rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a JSON lines file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def ndcg(pairs: list[dict[str, Any]], corpus: dict[str, str], language: str) -> float | None:
    """Mean nDCG@10 of the pairs' queries."""
    benchmark = Benchmark(
        name="google_queries",
        kind="BEIR",
        convention="",
        questions={pair["query_id"]: Question("", pair["query"]) for pair in pairs},
        corpus=corpus,
        judgments={pair["query_id"]: {pair["passage_id"]: 1} for pair in pairs},
        language=language,
    )
    return score_bm25(Template(), benchmark).metrics["ndcg@10"]


def main() -> None:
    """Print a line per source."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    pairs = rows(folder / "pairs.jsonl")
    corpus = {row["passage_id"]: row["text"] for row in rows(folder / "passages.jsonl")}
    for source in sorted({pair["source"] for pair in pairs}):
        of = [pair for pair in pairs if pair["source"] == source]
        found = [ndcg(of, corpus, language) for language in (NO_LANGUAGE, "en")]
        print(f"{source}: {len(of):,} queries, none {found[0]:.4f}, English {found[1]:.4f}")


if __name__ == "__main__":
    main()
