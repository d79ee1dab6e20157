"""The leakage check on groups in a JSONL file, over the demo's pairs.

    python bench/leakage.py GROUPS.jsonl

A row has `query_id`, `instruction_positive`, `instruction_negative`,
`passage_instruction_negative` and `passage_query_negative`.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from analysis.text.leakage import LabelledText, leakage_report  # noqa: E402

DEMO = ROOT / "tests" / "data" / "first_demo"


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main(path: Path) -> None:
    texts = {row["passage_id"]: row["text"] for row in read(DEMO / "passages.jsonl")}
    positive = {row["query_id"]: texts[row["passage_id"]] for row in read(DEMO / "pairs.jsonl")}
    groups = read(path)
    compared: dict[str, list[LabelledText]] = {"P1- / P+": [], "P2- / P+": [], "I- / I+": []}
    for group in groups:
        pair = group["query_id"]
        for name, right, wrong in (
            ("P1- / P+", positive[pair], group["passage_instruction_negative"]),
            ("P2- / P+", positive[pair], group["passage_query_negative"]),
            ("I- / I+", group["instruction_positive"], group["instruction_negative"]),
        ):
            compared[name] += [LabelledText(pair, right, False), LabelledText(pair, wrong, True)]
    started = time.process_time()
    for name, found in leakage_report(compared)["comparisons"].items():
        low, high = found["interval"]
        print(
            f"{name}: AUC {found['auc']:.3f} [{low:.3f}, {high:.3f}], length alone "
            f"{found['length_auc']:.3f}, {found['pairs']} pairs; negatives: "
            f"{', '.join(found['features']['negative'])}; positives: "
            f"{', '.join(found['features']['positive'])}"
        )
    print(f"{time.process_time() - started:.1f} s of CPU")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
