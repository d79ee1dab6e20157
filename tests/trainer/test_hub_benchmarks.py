"""Benchmarks by name, from the tests' Hub."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran
from hub_server import Hub
from trainer_folders import (
    write_beir,
    write_bright,
    write_followir,
    write_instructir,
    write_jsonl,
)

from db.outcome.evaluations import list_evaluations
from db.store.store import Store
from trainer.suites.hub import is_hub_name
from trainer.suites.registry import SUBSETS, SUITES


@pytest.mark.long
def test_followir_comes_from_the_hub_by_name(
    sqlite_store: Store,
    tmp_path: Path,
    hub: Hub,
    there: dict[str, str],
    inf: Callable[..., Ran],
) -> None:
    for name in SUITES["followir"].repositories.values():
        hub.publish(name, write_followir(tmp_path / name))
    hub.publish("ada/tiny", write_beir(tmp_path / "beir"))
    ran = inf("evaluate", "--model", "bm25", "--benchmark", "followir", "--json", **there)
    assert ran.code == 0, ran.err
    assert [part["benchmark"] for part in ran.json["parts"]] == [
        f"FollowIR/{name}" for name in ("Core17", "News21", "Robust04")
    ]
    assert ran.json["models"][0]["metrics"]["followir score"] > 0
    repositories = SUITES["followir"].repositories
    commits = {name: hub.repos[f"datasets/{name}"].refs["main"] for name in repositories.values()}
    for part in ran.json["parts"]:
        name = repositories[part["benchmark"].split("/")[-1]]
        assert part["models"][0]["record"]["downloads"] == {name: commits[name]}
    with sqlite_store.read() as session:
        (mean,) = list_evaluations(session, benchmark="FollowIR (mean of 3)")
        assert mean.record["downloads"] == commits
    ran = inf("evaluate", "--model", "bm25", "--benchmark", "ada/tiny", "--json", **there)
    assert ran.code == 0 and ran.json["kind"] == "BEIR", ran.err
    ran = inf("evaluate", "--model", "bm25", "--benchmark", "ada/nothing", "--json", **there)
    assert ran.code == 1 and "ada/nothing cannot be downloaded" in ran.json["error"]


def test_the_papers_tasks_of_mair_come_from_the_hub_without_the_others(
    sqlite_store: Store,
    tmp_path: Path,
    hub: Hub,
    there: dict[str, str],
    inf: Callable[..., Ran],
) -> None:
    for task in (*SUBSETS["mair-paper"], "LeetCode"):
        row = {"qid": "q", "query": "what", "labels": [{"id": "x", "score": 2}]}
        write_jsonl(tmp_path / "Queries" / task / "queries.jsonl", [row])
        write_jsonl(tmp_path / "Docs" / task / "docs.jsonl", [{"id": "x", "doc": "text"}])
    for part in ("Queries", "Docs"):
        hub.publish(f"MAIR-Bench/MAIR-{part}", tmp_path / part)
    ran = inf("evaluate", "--model", "bm25", "--benchmark", "mair-paper", "--json", **there)
    assert ran.code == 0, ran.err
    wanted = [f"MAIR/{task}" for task in SUBSETS["mair-paper"]]
    assert [part["benchmark"] for part in ran.json["parts"]] == wanted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "write", "sets", "figure"),
    [
        ("bright", write_bright, ["BRIGHT/aops", "BRIGHT/biology"], "ndcg@10"),
        ("instructir", write_instructir, ["InstructIR"], "robustness@10"),
    ],
)
def test_bright_and_instructir_come_from_the_hub_by_name(
    sqlite_store: Store,
    tmp_path: Path,
    hub: Hub,
    there: dict[str, str],
    inf: Callable[..., Ran],
    name: str,
    write: Callable[[Path], Path],
    sets: list[str],
    figure: str,
) -> None:
    hub.publish(SUITES[name].repositories[""], write(tmp_path / name))
    ran = inf("evaluate", "--model", "bm25", "--benchmark", name, "--json", **there)
    assert ran.code == 0, ran.err
    found = ran.json.get("parts", [ran.json])
    assert [part["benchmark"] for part in found] == sets
    assert ran.json["models"][0]["metrics"][figure] > 0


@pytest.mark.parametrize(
    ("name", "is_name"),
    [
        ("bright", True),
        ("mair-paper", True),
        ("ada/set", True),
        ("./a/b", False),
        ("folder", False),
    ],
)
def test_a_name_is_no_path(name: str, is_name: bool) -> None:
    assert is_hub_name(name) == is_name
