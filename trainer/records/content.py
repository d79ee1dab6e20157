"""What a benchmark holds, as content hashes: two folders of one name may hold different data.

Each part is hashed over its entries sorted by id, as JSON; names of files and of the benchmark do
not count. The whole (`sha256`) is what a frozen benchmark is pinned by.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from trainer.evaluate.benchmarks import Benchmark
from trainer.evaluate.measures.rankings import without_relevant


def benchmark_content(benchmark: Benchmark) -> dict[str, Any]:
    """{sha256, corpus, queries, judgments, candidates, forms (sha256 each), documents, questions,
    without_relevant: the ids of queries that are in no mean}.

    forms: which questions are the original and the changed form of one query, or ask one query,
    and which documents' relevance changes between them.
    """
    b = benchmark
    parts = {
        "corpus": _sha256(sorted(b.corpus.items())),
        "queries": _sha256(
            (name, q.instruction, q.query) for name, q in sorted(b.questions.items())
        ),
        "judgments": _sha256(
            (name, sorted(of.items())) for name, of in sorted(b.judgments.items())
        ),
        "candidates": _sha256(
            (kind, name, sorted(set(of)))
            for kind, lists in (
                ("ranked", b.candidates),
                ("excluded", b.excluded),
                ("changed", b.changed_candidates),
            )
            for name, of in sorted(lists.items())
        ),
        "forms": _sha256(
            [
                *(("original", *pair) for pair in sorted(b.original.items())),
                *(("changed", *pair) for pair in sorted(b.changed.items())),
                *(("query", *pair) for pair in sorted(b.same_query.items())),
                *(("reversed", *pair) for pair in sorted(b.reversed.items())),
                *(("kept", name, sorted(of)) for name, of in sorted(b.kept.items())),
                *(("moved", name, sorted(of)) for name, of in sorted(b.changed_documents.items())),
                *(
                    ("group", name, of.questions, of.documents)
                    for name, of in sorted(b.groups.items())
                ),
            ]
        ),
    }
    return {
        "sha256": _sha256(sorted(parts.items())),
        **parts,
        "documents": len(b.corpus),
        "questions": len(b.questions),
        "without_relevant": without_relevant(b.judgments),
    }


def _sha256(entries: Iterable[Any]) -> str:
    whole = hashlib.sha256()
    for entry in entries:
        whole.update(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
    return whole.hexdigest()
