"""Instruction following on held-out groups: values by hand, controls, BM25, p-MRR's fixed list."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
import torch
from trainer_jobs import claim, config_for
from trainer_release import make_rows, write_release, write_rows

from analysis.figures.means import share_interval
from db.errors import BadInput
from db.shape import INF_IR
from db.store.store import Store
from trainer.data.groups import Group
from trainer.data.release_files import read_release
from trainer.data.splitting import split_groups
from trainer.evaluate.benchmarks import held_out_benchmark
from trainer.evaluate.following import (
    FOLLOWING,
    INSTRUCTION_CONTROL,
    QUERY_CONTROL,
    bm25_following,
    follows,
)
from trainer.evaluate.job import evaluate
from trainer.evaluate.reranking import score_reranker
from trainer.evaluate.scoring import score_bm25, score_model
from trainer.launch.here import train
from trainer.settings.settings import parse_settings, stored_settings
from trainer.settings.template import Template


@pytest.mark.parametrize(
    ("scores", "wanted"),
    [
        # rows (I+,Q+), (I-,Q+), (I+,Q-); columns P+, P1-, P2-
        ([[9, 1, 2], [3, 8, 2], [1, 2, 7]], (1, 1, 1)),
        ([[9, 1, 2], [9, 1, 2], [1, 2, 7]], (0, 0, 1)),  # the instruction is ignored
        ([[9, 1, 2], [3, 8, 2], [9, 1, 2]], (0, 1, 0)),  # the query is ignored
        ([[9, 1, 2], [3, 8, 9], [1, 8, 7]], (0, 1, 1)),  # flips, but another passage is in front
        ([[9, 9, 2], [3, 8, 2], [1, 2, 7]], (0, 0, 1)),  # equal scores count against the model
        ([[9, 1, 9], [3, 8, 2], [1, 2, 7]], (0, 1, 0)),
    ],
)
def test_the_measures_of_a_group_by_hand(scores: Any, wanted: tuple[int, ...]) -> None:
    assert tuple(follows(np.array(scores, dtype=float), INF_IR).values()) == wanted


class WordModel:
    """Texts as counts of their words; `reads` cuts the text to what a model would look at."""

    prompts: dict[str, str] = {}  # noqa: RUF012
    device = torch.device("cpu")

    def __init__(self, words: list[str], reads: str = "all") -> None:
        self.places, self.reads = {word: n for n, word in enumerate(words)}, reads

    def encode_query(self, texts: list[str], **_: Any) -> np.ndarray:
        parts = [text.split("|") for text in texts]
        kept = {"all": slice(None), "instruction": slice(0, 1), "query": slice(-1, None)}
        return self._vectors([" ".join(part[kept[self.reads]]) for part in parts])

    def encode_document(self, texts: list[str], **_: Any) -> np.ndarray:
        return self._vectors(texts)

    def _vectors(self, texts: list[str]) -> np.ndarray:
        rows = np.zeros((len(texts), len(self.places)), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.split():
                row[self.places[word]] += 1
        return rows


GROUPS = [
    Group(
        f"{n}",
        (
            *(f"q{n}", f"i{n}", f"q{n} i{n} x"),
            *(f"r{n}", f"j{n}", f"q{n} j{n} x", f"r{n} i{n} x"),
        ),
        shape=INF_IR,
    )
    for n in range(5)
]
WORDS = ["x", *(f"{letter}{n}" for letter in "qirj" for n in range(5))]
JOINED = Template("{instruction}|{query}")

BASE = "no/such-model"


def measured(reads: str) -> dict[str, float | None]:
    benchmark = held_out_benchmark("words", GROUPS)
    return score_model(WordModel(WORDS, reads), JOINED, benchmark).metrics  # type: ignore[arg-type]


def test_a_model_that_reads_both_halves_scores_above_one_that_ignores_one() -> None:
    both, no_query, no_instruction = map(measured, ("all", "instruction", "query"))
    names = ("strict", "instruction-flip", "query-flip")
    assert [both[name] for name in names] == [1, 1, 1]
    assert [no_query[name] for name in names] == [0, 1, 0], "p-MRR would praise it"
    assert [no_instruction[name] for name in names] == [0, 0, 1]
    assert no_query["p-mrr"] > 0


def test_controls_show_what_each_half_alone_reaches() -> None:
    """By construction the query alone cannot flip the instruction, nor the reverse."""
    both = measured("all")
    assert both["query-alone:instruction-flip"] == both["instruction-alone:query-flip"] == 0
    assert both["query-alone:query-flip"] == both["instruction-alone:instruction-flip"] == 1
    assert both["query-alone:strict"] == both["instruction-alone:strict"] == 0


def test_bm25_stands_beside_with_its_own_controls() -> None:
    benchmark = held_out_benchmark("words", GROUPS)
    found = bm25_following(benchmark, Template())
    assert found["strict"] == found["instruction-flip"] == found["query-flip"] == 1
    assert found["instruction-alone:instruction-flip"] == 1 and found["query-alone:strict"] == 0
    assert score_bm25(Template(), benchmark).metrics["strict"] == 1


def test_rerankers_are_measured_on_the_groups_too() -> None:
    def overlap(pairs: list[tuple[str, str]]) -> list[float]:
        return [float(len(set(one.split()) & set(other.split()))) for one, other in pairs]

    benchmark = held_out_benchmark("words", GROUPS)
    found = score_reranker(overlap, Template(), benchmark)
    assert found.metrics["strict"] == 1 and found.metrics["query-alone:instruction-flip"] == 0
    by_group = [found.per_query[group] for group in benchmark.groups]
    for control in (INSTRUCTION_CONTROL, QUERY_CONTROL):  # as the forest compares them
        assert fmean(each[control] for each in by_group) == found.metrics[control]


def test_p_mrr_ranks_one_fixed_list_of_bm25s_best_and_the_group() -> None:
    """With 60 groups (180 passages) a list has 100 to 103, the same for I+ and I-."""
    groups = [
        Group(
            f"{n}",
            (
                *(f"query word{n} shared", f"first{n}", f"right word{n} shared"),
                *(f"other{n}", f"second{n}", f"wrong{n}", f"unlike{n}"),
            ),
            shape=INF_IR,
        )
        for n in range(60)
    ]
    benchmark = held_out_benchmark("many", groups)
    for key, listed in benchmark.changed_candidates.items():
        assert len(listed) == len(set(listed)) <= 103 and len(listed) >= 100
        assert set(benchmark.groups[key].documents) <= set(listed)
        assert max(map(len, benchmark.changed_candidates.values())) <= 103
    small = held_out_benchmark("few", groups[:5])
    assert set(small.changed_candidates["g000000"]) == set(small.corpus)


def test_shares_have_wilsons_interval() -> None:
    """8 of 10: (0.490, 0.943), as statsmodels' proportion_confint(8, 10, method='wilson')."""
    from statsmodels.stats.proportion import proportion_confint

    for count, share in ((10, 0.8), (50, 0.0), (7, 1.0)):
        wanted = proportion_confint(round(share * count), count, method="wilson")
        assert share_interval(share, count) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("measure", ["strict", "instruction-flip", "query-flip"])
def test_the_best_weights_can_be_chosen_by_them(
    sqlite_store: Store, tmp_path: Path, measure: str
) -> None:
    config = config_for(tmp_path, max_steps="2", evaluate_steps="1", best_by=measure)
    result = train(claim(sqlite_store, config))
    assert result["best_step"] in (1, 2)
    assert (
        result["held_out"]["intervals"]["after"][measure][0]
        <= (result["held_out"]["after"][measure])
    )


def test_groups_that_share_a_query_count_as_one_in_a_trainings_intervals(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """Two groups of every query: at most as narrow as Wilson's interval of half as many values."""
    rows = make_rows(30)
    again = [
        row | {"instruction_positive": "State the length.", "group_id": row["group_id"] + 500}
        for row in rows
    ]
    release = write_rows(tmp_path / "twice", [*rows, *again])
    config = config_for(tmp_path, max_steps="1", held_out="0.4") | {"release": str(release)}
    held_out = train(claim(sqlite_store, config))["held_out"]
    queries = held_out["groups"] / 2
    for when in ("before", "after"):
        for measure, (low, high) in held_out["intervals"][when].items():
            share = held_out[when][measure]
            if measure not in FOLLOWING:  # no share of groups
                continue
            assert low <= share <= high
            alone = share_interval(share, queries)
            assert high - low >= (alone[1] - alone[0]) * 0.999, (when, measure)


def test_a_training_keeps_every_measure_of_its_held_out_groups_with_a_paired_gain(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """Also those that only its two ends have, and that may have fallen; the card shows them all."""
    config = config_for(tmp_path, max_steps="1", held_out="0.4")
    done = train(claim(sqlite_store, config))
    held_out = done["held_out"]
    measures = {"strict", "instruction-flip", "query-flip", "sicr", "wise", "plain-ndcg@10"}
    measures |= {"ndcg@10", "map", "mrr"}
    assert measures <= held_out["gain"].keys() & held_out["intervals"]["after"].keys()
    card = (Path(done["path"]) / "README.md").read_text()
    for name in measures:
        value = held_out["gain"][name]["value"]
        assert f"| {value:+.4f} [" in next(
            line for line in card.splitlines() if line.startswith(f"| {name} |")
        )


def test_p_mrr_no_longer_chooses_the_weights_and_old_checkpoints_still_load() -> None:
    chosen = {"best_by": "p-mrr", "evaluate_steps": "1"}
    with pytest.raises(BadInput, match="best_by='p-mrr'"):
        parse_settings(chosen)
    assert stored_settings(chosen).best_by == "last"


def reviewed_rows() -> list[dict[str, Any]]:
    rows = make_rows(20)
    for number, row in enumerate(rows):
        row["verdict"] = "dropped" if number % 3 == 0 else "kept"
        row["review"] = "approve" if number % 4 == 0 else None
    return rows


def test_held_out_groups_can_be_the_kept_all_or_those_people_approved(tmp_path: Path) -> None:
    release = read_release(write_rows(tmp_path, reviewed_rows()))
    found = {
        choice: split_groups(release, fraction=0.5, seed=1, held_out_groups=choice)
        for choice in ("kept", "all", "approved")
    }
    assert found["kept"][0] == found["all"][0] == found["approved"][0]
    sides = {choice: {group.group_id for group in held} for choice, (_, held) in found.items()}
    assert len(sides["all"]) == 10
    assert sides["kept"] == {g.group_id for g in found["all"][1] if not g.dropped} < sides["all"]
    assert sides["approved"] == {g.group_id for g in found["all"][1] if g.approved} < sides["all"]


def test_missing_approved_groups_are_refused_with_the_remedy(tmp_path: Path) -> None:
    release = read_release(write_release(tmp_path / "r", 10))
    with pytest.raises(BadInput, match="people approved none of the 2 held-out groups"):
        split_groups(release, fraction=0.2, seed=42, held_out_groups="approved")


def test_an_evaluation_scores_the_held_out_groups_of_its_training_or_others_by_setting(
    sqlite_store: Store, tmp_path: Path
) -> None:
    config = config_for(tmp_path, max_steps="1", held_out_groups="all", held_out="0.5")
    write_rows(tmp_path / "release", reviewed_rows())
    out = train(claim(sqlite_store, config))["path"]
    job_config = {"models": [out], "release": config["release"], "with_base": False}
    own = evaluate(claim(sqlite_store, job_config, "evaluate"))
    other = evaluate(claim(sqlite_store, job_config | {"held_out_groups": "kept"}, "evaluate"))
    assert own["held_out"]["choice"] == "all" and other["held_out"]["choice"] == "kept"
    assert own["held_out"]["groups"] > other["held_out"]["groups"]
    assert own["bm25"]["strict"] is not None
    assert {"strict", "query-alone:strict"} <= set(own["models"][0]["metrics"])


def test_too_easy_held_out_groups_are_noted(sqlite_store: Store, tmp_path: Path) -> None:
    from trainer.data.splitting import Groups
    from trainer.report.held_out_scores import HeldOutScores

    release = read_release(write_release(tmp_path / "r", 5))
    settings = parse_settings({"natural_probe": "off"})
    scores = HeldOutScores(settings, Groups(release, [], GROUPS), check=lambda: None)
    scores.template = JOINED
    scores.score_before(WordModel(WORDS))  # type: ignore[arg-type]
    (note,) = scores.as_result()["held_out"]["notes"]
    assert "too easy" in note and "1.00" in note


def test_a_training_notes_that_its_base_model_chose_the_held_out_groups(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """In the result, from which page and command print it; not where people approved the groups."""
    from trainer.data.splitting import Groups
    from trainer.report.held_out_scores import HeldOutScores
    from trainer.report.scored import score_notes

    release = read_release(write_release(tmp_path / "r", 5))
    release = replace(release, manifest={"models": {"validation": {"model": BASE, "sha256": None}}})

    def notes(choice: str) -> list[str]:
        settings = parse_settings(
            {"natural_probe": "off", "base_model": BASE, "held_out_groups": choice}
        )
        scores = HeldOutScores(settings, Groups(release, [], GROUPS), check=lambda: None)
        return score_notes(scores.as_result())

    circular, bm25 = notes("kept")
    assert circular.startswith("Circular: the base model is also the validator")
    assert "held_out_groups=approved" in circular and "language en" in bm25
    assert notes("approved") == [bm25]
