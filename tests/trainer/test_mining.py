"""Negatives mined from the training's own passages: which, and what they do to the loss."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from trainer_jobs import claim, config_for
from trainer_release import make_rows

from db.errors import BadInput
from db.shape import INF_IR
from db.store.store import Store
from trainer.data.batches import build_batch
from trainer.data.groups import Group, group_key, group_of
from trainer.data.passage_pool import pool_passages
from trainer.launch.here import train
from trainer.loop.embedding_loss import objective_loss
from trainer.loop.mining import mine_negatives
from trainer.loop.packing_check import make_collator
from trainer.model.backbone import load_backbone
from trainer.objectives.names import OBJECTIVES
from trainer.settings.settings import parse_settings
from trainer.settings.template import Template

GROUPS = [group_of(row, shape=INF_IR) for row in make_rows(6)]


class Planted:
    """A model whose cosines are known: every text's vector is planted, others are random."""

    def __init__(self, planted: dict[str, list[float]]) -> None:
        self.planted = planted
        self.encoded = 0

    def encode_query(self, texts: list[str], **_: Any) -> np.ndarray:
        self.encoded += len(texts)
        rows = []
        for text in texts:
            seed = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
            row = np.random.default_rng(seed).normal(size=4) * [0, 0, 1, 1]
            rows.append(np.asarray(self.planted.get(text, row), dtype=np.float32))
        return np.stack([row / np.linalg.norm(row) for row in rows])

    encode_document = encode_query


def mined(groups: list[Group], planted: dict[str, list[float]], file: Path, **given: Any) -> Any:
    options = {"count": 2, "margin": 0.95} | given
    model: Any = Planted(planted)
    return mine_negatives(model, groups, Template(), file=file, **options)


def at(cosine: float) -> list[float]:
    return [cosine, (1 - cosine**2) ** 0.5, 0, 0]


def planted_world() -> dict[str, list[float]]:
    """The first query lies on an axis: P+ has 0.8 with it, passages of others 0.9, 0.7 and 0.6."""
    own = GROUPS[0]
    return {
        Template().apply(own.text("I+"), own.text("Q+")): [1, 0, 0, 0],
        own.text("P+"): at(0.8),
        own.text("P1-"): at(0.75),
        GROUPS[1].text("P+"): at(0.9),
        GROUPS[2].text("P1-"): at(0.6),
        GROUPS[3].text("P2-"): at(0.7),
    }


def test_the_hardest_passages_below_the_limit_are_mined_and_never_the_groups_own(
    tmp_path: Path,
) -> None:
    found = mined(GROUPS, planted_world(), tmp_path / "mined.json")
    key = group_key(GROUPS[0])
    assert found[key] == [GROUPS[3].text("P2-"), GROUPS[2].text("P1-")]  # 0.9 > 0.95 · 0.8
    (tmp_path / "mined.json").unlink()
    found = mined(GROUPS, planted_world(), tmp_path / "mined.json", margin=2.0)
    assert found[key] == [GROUPS[1].text("P+"), GROUPS[3].text("P2-")]


def test_a_passage_of_a_group_with_the_same_query_is_no_negative(tmp_path: Path) -> None:
    """A second group grown from the same pair: its passages answer Q+ too."""
    same_query = [*GROUPS[:3], with_query(GROUPS[3], GROUPS[0].text("Q+"))]
    found = mined(same_query, planted_world(), tmp_path / "mined.json")
    assert found[group_key(GROUPS[0])][0] == GROUPS[2].text("P1-")


def with_query(group: Group, query: str) -> Group:
    row = group.row() | {"query_positive": query}
    return group_of(row, shape=INF_IR)


def test_a_group_whose_own_passage_scores_nothing_gets_no_negatives(tmp_path: Path) -> None:
    world = planted_world() | {GROUPS[0].text("P+"): at(-0.2)}
    assert mined(GROUPS, world, tmp_path / "mined.json")[group_key(GROUPS[0])] == []


def test_a_training_that_goes_on_reads_the_same_negatives_and_encodes_nothing(
    tmp_path: Path,
) -> None:
    first = mined(GROUPS, planted_world(), tmp_path / "mined.json")
    again: Any = Planted({})
    file = tmp_path / "mined.json"
    assert mine_negatives(again, GROUPS, Template(), 2, 0.95, file) == first
    assert again.encoded == 0 and json.loads(file.read_text()) == first


def test_mined_passages_are_further_negatives_of_term_p_and_of_no_other() -> None:
    """By a naive loop: every anchor against the batch's passages and the mined ones."""
    for name in ("P", "P,I:multi"):
        settings = parse_settings({"base_model": "tiny-random-bert", "objective": name})
        model = load_backbone(settings)
        extra = {group_key(GROUPS[0]): [GROUPS[4].text("P+"), GROUPS[1].text("P+")]}
        rows = [group.row() for group in GROUPS[:3]]
        batch = make_collator(model, GROUPS, settings, mined=extra)(rows)
        tables = batch["label"]
        # GROUPS[1]'s P+ is in the batch already: it is not counted twice.
        assert tables["mined_of"].tolist() == [9]
        plain = make_collator(model, GROUPS, settings)(rows)
        torch.manual_seed(0)
        queries = torch.randn(len(batch["queries_input_ids"]), 8)
        passages = torch.randn(len(batch["passages_input_ids"]), 8)
        objective = settings.parsed_objective
        found = objective_loss(objective, [queries, passages], tables, 0.05)
        without = objective_loss(objective, [queries, passages[:9]], plain["label"], 0.05)
        assert found > without
        if name == "P":
            unit = torch.nn.functional.normalize
            scores = unit(queries) @ unit(passages).T / 0.05
            losses = []
            for anchor in range(9):
                own = int(tables["passage_of"][anchor])
                of = scores[int(tables["matched_of"][anchor])]
                losses.append(torch.logsumexp(of, 0) - of[own])
            assert found.item() == pytest.approx(torch.stack(losses).mean().item(), rel=1e-5)


def test_without_mined_passages_the_batch_is_what_it_was() -> None:
    objective = OBJECTIVES["P"]
    plain = build_batch(GROUPS[:2], Template(), objective)
    assert plain.mined_of == [] and len(plain.passages) == 6
    more = build_batch(GROUPS[:2], Template(), objective, mined=[GROUPS[5].text("P+")])
    assert more.mined_of == [6] and more.passage_of == plain.passage_of


def test_mining_needs_the_term_p() -> None:
    for objective in ("I", "IQ", "mnrl"):
        with pytest.raises(BadInput, match="mined_negatives=2 applies only where"):
            parse_settings({"mined_negatives": "2", "objective": objective})


def test_a_passage_of_a_corpus_is_mined_but_not_one_that_answers_as_well(tmp_path: Path) -> None:
    """By vectors that are there, where passages are not trained: no passage is read again."""
    corpus = ["hard", "as good", "far", GROUPS[0].text("P1-")]
    world = planted_world() | {"hard": at(0.74), "as good": at(0.79), "far": at(0.1)}
    expected = ["hard", GROUPS[3].text("P2-")]
    found = mined(GROUPS, world, tmp_path / "mined.json", corpus=corpus)
    assert found[group_key(GROUPS[0])] == expected
    model: Any = Planted(world)
    pool = pool_passages(GROUPS, Template(), model.encode_document, 3, 1, corpus)
    assert {pool.place_of[text] for text in ("hard", "far")}.isdisjoint(pool.negatives)
    before = model.encoded
    file = tmp_path / "by-pool.json"
    again = mine_negatives(model, GROUPS, Template(), 2, 0.95, file, corpus=corpus, pool=pool)
    assert again == found and model.encoded == before + len(GROUPS)


def test_a_corpus_without_a_number_is_refused() -> None:
    with pytest.raises(BadInput, match=r"mined_corpus=more\.jsonl is read only .* mined_negatives"):
        parse_settings({"mined_corpus": "more.jsonl"})


@pytest.mark.parametrize("side", ["both", "query"])
def test_a_training_mines_from_a_corpus(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    """What is mined reaches the loss: with a limit that lets all in, passages of the corpus."""
    corpus = tmp_path / "more.jsonl"
    groups = [group_of(row, shape=INF_IR) for row in make_rows(10)]
    # nothing is nearer to a text than itself, even to random weights
    texts = [Template().apply(*group.triplets()[0][:2]) for group in groups]
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    read: list[str] = []
    build = build_batch

    def noted(*given: Any) -> Any:
        batch = build(*given)
        read.extend(batch.passages)
        return batch

    monkeypatch.setattr("trainer.data.batches.build_batch", noted)
    sides = {"trained_side": "query", "objective": "P,IQ:uni"} if side == "query" else {}
    config = config_for(tmp_path, mined_negatives="4", mined_limit="9", max_steps="1", **sides)
    config["settings"] = config["settings"] | {"mined_corpus": str(corpus)}
    assert train(claim(sqlite_store, config))["steps"] == 1
    assert set(read) & set(texts)


def test_a_training_with_mined_negatives_reads_more_passages(
    sqlite_store: Store, tmp_path: Path
) -> None:
    config = config_for(tmp_path, mined_negatives="2", mined_limit="9", max_steps="1")
    handle = claim(sqlite_store, config)
    result = train(handle)
    assert result["steps"] == 1
    estimate = train(claim(sqlite_store, config | {"estimate": True, "out": None}))
    assert estimate["estimate"]["steps"] == 1
