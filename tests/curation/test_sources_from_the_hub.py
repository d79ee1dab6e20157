"""MS MARCO as the Hub has it, by name: the layout of its folders, read row by row."""

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub_server import Hub, Repo

NAME = "microsoft/ms_marco"
ROWS = [
    {
        "answers": ["A hill of sand."],
        "passages": {
            "is_selected": [0, 1],
            "passage_text": ["A dune is a book.", "A dune is a hill of sand."],
            "url": ["http://a", "http://b"],
        },
        "query": "what is a dune",
        "query_id": 7,
        "query_type": "DESCRIPTION",
        "wellFormedAnswers": [],
    },
    {
        "answers": ["No Answer Present."],
        "passages": {"is_selected": [0], "passage_text": ["Nothing."], "url": ["http://c"]},
        "query": "what is nothing",
        "query_id": 8,
        "query_type": "DESCRIPTION",
        "wellFormedAnswers": [],
    },
]
CARD = """---
configs:
- config_name: v2.1
  data_files:
  - split: train
    path: v2.1/train-*
  - split: validation
    path: v2.1/validation-*
---
"""


def publish(hub: Hub) -> None:
    """The data set as it is published: a folder per configuration, Parquet files per split."""
    files = {"README.md": CARD.encode()}
    for split, rows in (("train", ROWS), ("validation", ROWS[1:])):
        content = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), content)
        files[f"v2.1/{split}-00000-of-00001.parquet"] = content.getvalue()
    repo = Repo(private=False)
    repo.commit(files, "main")
    hub.repos[f"datasets/{NAME}"] = repo


@pytest.mark.long
def test_msmarco_is_taken_from_the_hub_by_its_name(
    hub: Hub, there: dict[str, str], tmp_path: Path, inf: Any
) -> None:
    publish(hub)
    out = tmp_path / "out"
    done = inf("convert", "msmarco", f"hub:{NAME}:v2.1", "--out", out, "--json", **there)
    assert done.code == 0, done.out + done.err
    assert (done.json["pairs"], done.json["passages"]) == (1, 3)
    assert done.json["left_out"] == {"no passage is selected": 1}
    (pair,) = map(json.loads, (out / "pairs.jsonl").read_text().splitlines())
    passages = map(json.loads, (out / "passages.jsonl").read_text().splitlines())
    texts = {row["passage_id"]: row["text"] for row in passages}
    assert (pair["query_id"], pair["query"]) == ("msmarco-7", "what is a dune")
    assert texts[pair["passage_id"]] == "A dune is a hill of sand."
    words = ("--out", tmp_path / "validation", "--json")
    other = inf("convert", "msmarco", f"hub:{NAME}:v2.1:validation", *words, **there)
    assert other.json["pairs"] == 0 and other.json["left_out"] == {"no passage is selected": 1}
    missing = inf("convert", "msmarco", "hub:nobody/nothing", "--out", tmp_path / "m", **there)
    assert missing.code == 1 and "the hub gives no dataset 'nobody/nothing'" in missing.err
