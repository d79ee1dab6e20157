"""How many real texts the rules for debris would drop, as written and in forms that look like it.

    python bench/clean_texts.py --data ../shared/data

Nothing here was generated: passages, queries and people's instructions (TREC narratives), each
tried without the texts of its pair (which would excuse more). "In square brackets": what stands in
round brackets put into square ones, as other houses write acronyms and remarks. "After `Sources:`":
people's instructions with a condition on sources after them. "Queries about messages" are written
here, of a server's message and where it was met. Whatever is reported is a false alarm.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from curation.recipe.leftovers import find_leftover
from curation.recipe.tasks import Gives

SETS: dict[str, tuple[str, str, Gives]] = {
    "passages of Wikipedia": ("google_queries/passages.jsonl", "text", "Passage"),
    "Google queries": ("google_queries/pairs.jsonl", "query", "Query"),
    "solutions in words": ("code_math/gsm8k_pairs.jsonl", "passage", "Passage"),
    "word problems": ("code_math/gsm8k_pairs.jsonl", "query", "Query"),
    "solutions in Python": ("code_math/mbpp_pairs.jsonl", "passage", "Passage"),
    "tasks of programming": ("code_math/mbpp_pairs.jsonl", "query", "Query"),
}
TOPICS = ("trec_topics/core18.jsonl", "trec_topics/covid.jsonl")
CONDITIONS = (
    "Sources: peer-reviewed only",
    "Sources: peer-reviewed journals, nothing from blogs.",
    "Source: the agency's own reports, no press.",
    "References: at least two, none older than ten years.",
    "Sources: only government statistics.",
    "Citations: required for every figure.",
)
MESSAGES = (
    *("404 not found", "502 Bad Gateway", "error 403: forbidden", "HTTP 429 too many requests"),
    *(
        "500 internal server error",
        "connection error",
        "upstream connect error",
        "rate limit reached",
    ),
)
WHERE = (
    *(
        "{} nginx",
        "{} in chrome on android",
        "{} after deploy to kubernetes",
        "{} wordpress upload",
    ),
    *("{} how to fix", "{}: what does it mean", "{} vs 301 redirect", "{} spring boot actuator"),
)


def texts(data: Path, file: str, key: str) -> list[str]:
    """The texts of a column, white space as single spaces."""
    rows = map(json.loads, (data / file).read_text("utf-8").splitlines())
    return [" ".join(row[key].split()) for row in rows]


def tried(data: Path) -> Iterator[tuple[str, Gives, str, list[str]]]:
    """Name, kind, language ("" for words) and texts of each set."""
    for name, (file, key, gives) in SETS.items():
        found = texts(data, file, key)
        code = "Python" if name.endswith("Python") else ""
        yield name, gives, code, found
        bracketed = [re.sub(r"\(([^()\n]+)\)", r"[\1]", text) for text in found]
        changed = [new for text, new in zip(found, bracketed, strict=True) if new != text]
        if changed and not code:
            yield f"{name}, in square brackets", gives, "", changed
    narratives = [text for file in TOPICS for text in texts(data, file, "narrative")]
    yield "narratives of TREC", "Instruction", "", narratives
    conditions = [
        f"{text} {condition}"
        for number, text in enumerate(narratives)
        for condition in (CONDITIONS[number % len(CONDITIONS)],)
    ]
    yield "narratives, after `Sources:`", "Instruction", "", conditions
    titles = [text for file in TOPICS for text in texts(data, file, "title")]
    yield "titles of TREC", "Query", "", titles
    about = [where.format(message) for message in MESSAGES for where in WHERE]
    yield "queries about messages", "Query", "", about


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--examples", type=int, default=0, help="False alarms to print of each set."
    )
    arguments = parser.parse_args()
    total = 0
    for name, gives, language, found in tried(arguments.data):
        given = {"language": language} if language else {}
        alarms = [
            (text, each) for text in found if (each := find_leftover(gives, text, given=given))
        ]
        kinds = Counter(each.what.partition(" (“")[0] for _, each in alarms)
        total += len(found)
        why = "; ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        print(f"| {name} | {len(found):,} | {len(alarms):,} | {why} |")
        for text, each in alarms[: arguments.examples]:
            print("   ", each.what, "|", text[:160])
    print(f"{total:,} texts")


if __name__ == "__main__":
    main()
