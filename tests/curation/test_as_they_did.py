"""The pipelines of docs/how-to/as-they-did.md, from their files to a trained model; the recipes of
docs/how-to/recipes.md, to a release."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from curation_runs import pairs_file, run_curation, slots_of
from decided_runs import ME, decide
from exporting import export, rows_of
from openai_server import Server
from trainer_jobs import TINY, claim

from app.operations import datasets
from curation.importing.importing import import_dataset
from curation.mining.request import NegativesMine
from db.store.store import Store

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to"
PAIRS = 20


def files_of(page: str) -> dict[str, str]:
    """The files that a page shows, by name."""
    text = (HOW_TO / page).read_text()
    return dict(re.findall(r'^```\w+ title="(.+?)"\n(.*?)^```$', text, re.M | re.S))


FILES = files_of("as-they-did.md")


def triples(folder: Path) -> Path:
    """Pairs of made-up passages, each with the passage of another pair as its negative."""
    file = pairs_file(folder, PAIRS)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for place, row in enumerate(rows):
        row["negatives"] = [rows[place - 1]["passage"]] if place % 3 else []
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.mark.parametrize("name", ["vdmrl", "akhasanovv"])
def test_a_pipeline_is_at_most_sixty_lines_and_no_python(name: str) -> None:
    lines = [line for line in FILES[f"{name}.toml"].split("\n") if line.strip()]
    assert 20 < len(lines) <= 60


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "threshold"),
    [("vdmrl", "checks.fits.expected.N=any"), ("akhasanovv", "checks.fits.expected.N=< 0.1")],
)
def test_a_pipeline_runs_from_triples_to_a_model(
    sqlite_store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    threshold: str,
) -> None:
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    report = import_dataset(sqlite_store, name="ru", pairs=triples(tmp_path))
    assert report.negatives == PAIRS - (PAIRS + 2) // 3
    mine = NegativesMine(name="ru", count=3)
    assert datasets.mine(ME, mine, datasets.here(lambda *_: None)).kept > PAIRS
    asked: dict[str, Any] = {"dataset": "ru", "provider": "openai", "settings": ["model=small"]}
    with Server(schema="taken") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        result = run_curation(sqlite_store, **asked, recipe=str(tmp_path / f"{name}.toml"))
        made = server.answered.total()
        assert result["status"] == "done" and result["kept"] > PAIRS / 2, result["dropped"]
        decided = decide(result["run_id"], threshold)
        assert server.answered.total() == made, "nothing is asked again"
    assert sum(each.texts for each in decided.texts if each.first != each.second) > 0
    slots = slots_of(sqlite_store, result["run_id"]).values()
    reasons = {reason for of in slots for _, reason in of.values()}
    assert None in reasons and len(reasons) > 1
    out = tmp_path / "release"
    runs = [result["run_id"]]
    export(sqlite_store, out, dataset="ru", runs=runs, format="jsonl")
    kinds = {
        each["explanation"]
        for rows in rows_of(out).values()
        for row in rows
        for each in row["negative_passages"]
    }
    # the test server finds that every passage answers the query alone
    assert ("query_negative" in kinds) == (name == "vdmrl")
    assert ("check_answers" in reasons) == (name == "akhasanovv")
    from trainer.evaluate.job import evaluate
    from trainer.launch.here import train

    config = {"release": str(out), "out": str(tmp_path / "model")}
    settings = {**TINY, "objective": "promptriever", "max_steps": "2"}
    trained = train(claim(sqlite_store, config | {"settings": settings}))
    assert trained["steps"] == 2 and trained["loss_last"] > 0
    asked = {"models": [str(tmp_path / "model"), "bm25"], "release": str(out)}
    for each in evaluate(claim(sqlite_store, asked, kind="evaluate"))["models"]:
        assert 0 < each["metrics"]["ndcg@10"] <= 1, each
    after = trained["held_out"]["after"]
    assert 0 < after["ndcg@10"] <= 1, after


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("followir", {"positive_passages", "negative_passages"}),
        ("instructir", {"searcher", "other_searcher", "passage", "other_passage"}),
    ],
)
def test_a_shape_of_a_published_set_makes_a_release(
    sqlite_store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    columns: set[str],
) -> None:
    for file, text in files_of("recipes.md").items():
        (tmp_path / file).write_text(text)
    import_dataset(sqlite_store, name="few", pairs=pairs_file(tmp_path, PAIRS))
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        result = run_curation(
            sqlite_store,
            dataset="few",
            provider="openai",
            settings=["model=small"],
            recipe=str(tmp_path / f"{name}.toml"),
        )
    assert result["status"] == "done" and result["kept"] > PAIRS / 2, result["dropped"]
    out = tmp_path / "release"
    export(sqlite_store, out, dataset="few", runs=[result["run_id"]], format="jsonl")
    rows = [row for split in rows_of(out).values() for row in split]
    assert rows and all(columns <= set(row) for row in rows)
    if name == "followir":
        with_narrative = [row for row in rows if row["has_instruction"]]
        assert len(with_narrative) == result["kept"]
        assert {len(row["positive_passages"]) for row in with_narrative} == {1}
        assert {len(row["negative_passages"]) for row in with_narrative} == {1, 2}
    else:
        assert len(rows) == result["kept"]
        assert all(row["searcher"] != row["other_searcher"] for row in rows)
