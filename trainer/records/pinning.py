"""A frozen benchmark: its content's sha256 is pinned, and other content is refused.

A pin is given for one evaluation, or stands in the file `benchmark.sha256` of a benchmark's folder.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from db.errors import BadInput
from trainer.evaluate.benchmarks import Benchmark
from trainer.evaluate.measures.rankings import without_relevant
from trainer.records.likeness import PARTS
from trainer.records.record import content_together
from trainer.suites.registry import read_benchmarks

PIN_FILE = "benchmark.sha256"
MIN_DIGITS = 12


def require_pinned(contents: Sequence[Mapping[str, Any]], given: str | None, folder: str) -> None:
    """Raise BadInput where the content is not what was pinned, by `given` or the folder's file.

    The sets of a suite's folder may each have a pin of their own: these folders are read alone.
    """
    if given:
        _require("the given pin", given, contents)
    if not folder:
        return
    here = Path(folder).expanduser()
    if (here / PIN_FILE).is_file():
        _require_file(here / PIN_FILE, contents)
    for file in sorted(here.glob(f"*/{PIN_FILE}")):
        _require_file(file, [benchmark_content(each) for each in read_benchmarks(file.parent)])


def _require_file(file: Path, contents: Sequence[Mapping[str, Any]]) -> None:
    pin, *_ = [*file.read_text(encoding="utf-8").split(maxsplit=1), ""]
    if not pin:
        raise BadInput(
            f"{file} is empty",
            "delete it, or write it by `evaluations pin FOLDER write=yes`",
            code="pin_file_empty",
        )
    _require(str(file), pin, contents)


def _require(where: str, pin: str, contents: Sequence[Mapping[str, Any]]) -> None:
    digits = pin.strip().lower()
    if len(digits) < MIN_DIGITS or set(digits) - set("0123456789abcdef"):
        raise BadInput(
            f"{where}: {pin!r} is no sha256",
            f"give {MIN_DIGITS} hexadecimal digits or more",
            code="sha256_invalid",
        )
    found = str(content_together(contents)["sha256"])
    if not found.startswith(digits):
        parts = ", ".join(f"{label} {contents[0][part][:12]}" for part, label in PARTS.items())
        raise BadInput(
            f"the benchmark is not the one that was pinned ({where} {digits[:12]}, its content "
            f"is {found}; {parts}): nothing was evaluated",
            "Get the pinned files again, or leave out `pin=`",
            code="benchmark_pin_mismatch",
        )


def write_pin(folder: Path, contents: Sequence[Mapping[str, Any]]) -> Path:
    """Write the pin of a folder. Raises BadInput where there is one already."""
    file = folder / PIN_FILE
    if file.exists():
        raise BadInput(
            f"{file} exists: a pin is never overwritten",
            "delete it to pin again",
            code="pin_exists",
        )
    file.write_text(f"{content_together(contents)['sha256']}\n", encoding="utf-8")
    return file


# What a benchmark holds, as content hashes: two folders of one name may hold different data.
#
# Each part is hashed over its entries sorted by id, as JSON; names of files and of the benchmark do
# not count. The whole (`sha256`) is what a frozen benchmark is pinned by.
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
                    + ((of.lower, of.answering) if any(of.lower) else ())
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
