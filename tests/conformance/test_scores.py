"""The scores of an evaluation, computed by others from its TREC files and by mteb."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval
import ranx

BY_TREC_EVAL = {
    "ndcg@5": "ndcg_cut_5",
    "ndcg@10": "ndcg_cut_10",
    "map@1000": "map_cut_1000",
    "mrr": "recip_rank",
    "recall@10": "recall_10",
    "recall@100": "recall_100",
}
BY_RANX = {
    "ndcg@10": "ndcg@10",
    "map@1000": "map@1000",
    "mrr": "mrr",
    "recall@10": "recall@10",
}


@pytest.fixture(params=["sentence-transformers_all-MiniLM-L6-v2", "checkpoint"])
def scored(request: pytest.FixtureRequest, material: Path, printed: Any) -> Any:
    """Our figures of a model, its run and the judgments of the benchmark."""
    (folder,) = (material / "trec").iterdir()
    (run,) = folder.glob(f"*{request.param}-*.run")
    models = printed("scores")["models"]
    model = models[-1] if request.param == "checkpoint" else models[0]
    assert request.param in model["model"].replace("/", "_")
    return model["metrics"], run, folder / "qrels"


def test_trec_eval_finds_the_same(scored: Any) -> None:
    ours, run, qrels = scored
    with qrels.open() as judged, run.open() as ranked:
        relevance, ranking = pytrec_eval.parse_qrel(judged), pytrec_eval.parse_run(ranked)
    cuts = {"ndcg_cut.5,10", "map_cut.1000", "recip_rank", "recall.10,100"}
    found = pytrec_eval.RelevanceEvaluator(relevance, cuts).evaluate(ranking)
    assert len(found) == len(relevance)
    for name, theirs in BY_TREC_EVAL.items():
        mean = sum(row[theirs] for row in found.values()) / len(found)
        assert ours[name] == pytest.approx(mean, abs=1e-9), name


def test_ranx_finds_the_same(scored: Any) -> None:
    ours, run, qrels = scored
    relevance = ranx.Qrels.from_file(str(qrels), kind="trec")
    ranking = ranx.Run.from_file(str(run), kind="trec")
    found = ranx.evaluate(relevance, ranking, list(BY_RANX.values()))
    for name, theirs in BY_RANX.items():
        assert ours[name] == pytest.approx(float(found[theirs]), abs=1e-6), name


def test_mteb_finds_the_same_by_the_checkpoints_task(material: Path, printed: Any) -> None:
    task = material / "checkpoint" / "mteb_task.py"
    done = subprocess.run(
        [sys.executable, "-P", str(task)], stdout=subprocess.PIPE, text=True, check=True, cwd="/"
    )
    theirs = json.loads(done.stdout.splitlines()[-1])
    ours = printed("scores")["models"][-1]["metrics"]
    assert theirs["ndcg_at_10"] == pytest.approx(ours["ndcg@10"], abs=1e-5)  # mteb rounds
    assert theirs["strict"] == pytest.approx(ours["strict"], abs=1e-9)
