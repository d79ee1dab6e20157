"""Questions that many projects ask, by name: what `read_questions` reads, ready to be copied."""

import json
from collections.abc import Mapping
from typing import Any, Final

from db.study.examples import PICK_TEXT

ROLES: Final = {
    **{"positive": "2", "instruction_negative": "1"},
    **dict.fromkeys(("query_negative", "hard_negative"), "0"),
}

TEMPLATES: Final[Mapping[str, Mapping[str, Any]]] = {
    "most-relevant": {
        "name": "InF-IR: most relevant",
        "questions": [
            {
                "key": "passage",
                "type": "pick",
                "text": PICK_TEXT,
                "expected": "positive",
            }
        ],
    },
    "audit": {
        "name": "Audit: roles of passages",
        "questions": [
            {
                "key": "query_ok",
                "type": "yes_no",
                "about": "query",
                "text": "Is the query acceptable: would a person ask it, and can it be understood?",
                "expected": "yes",
            },
            {
                "key": "passages_ok",
                "type": "yes_no",
                "about": "item",
                "text": "Are the passages acceptable as texts: whole, readable, in one language?",
                "expected": "yes",
            },
            {
                "key": "role",
                "type": "grade",
                "about": "passage",
                "text": "What does this passage do?",
                "labels": {
                    "0": "does not answer the query",
                    "1": "answers it, but violates the instruction",
                    "2": "answers it and satisfies the instruction",
                },
                "expected": ROLES,
            },
        ],
    },
    "relevance": {
        "name": "Relevance 0–2",
        "questions": [
            {
                "key": "relevance",
                "type": "grade",
                "about": "passage",
                "text": "How relevant is this passage to the query and its instruction?",
                "labels": {"0": "not relevant", "1": "partly relevant", "2": "fully relevant"},
            }
        ],
    },
}


def template_text(name: str) -> str:
    """The questions of a template as a file has them."""
    return json.dumps(TEMPLATES[name], indent=1, ensure_ascii=False) + "\n"
