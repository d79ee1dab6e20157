"""The record that stored evaluations of tests have."""

from typing import Any

from trainer.records.likeness import FORMAT

RECORD: dict[str, Any] = {
    "format": FORMAT,
    "benchmark": {
        **dict.fromkeys(("sha256", "corpus", "queries", "judgments", "candidates", "forms"), "0a"),
        "documents": 9,
        "questions": 3,
        "without_relevant": [],
    },
    "pool": "all 9 documents",
    "depth": 9,
    "convention": "ties by score",
    "model": {
        "name": "m",
        "identity": "m",
        "weights_sha256": None,
        "revision": None,
        "trained_on": None,
    },
    "template": "{instruction} {query}",
    "prompts": {},
    "given_prefixes": {"query_prefix": "", "passage_prefix": ""},
    "chat_template": "off",
    "applied": {"query": [{"text": "a", "tokens": ["a"], "count": 1}], "document": []},
    "libraries": {"python": "3.11"},
}
