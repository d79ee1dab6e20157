"""`trained_side=query`: the index stays, ordinary retrieval is the base model's to the bit."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from base_folders import BASES, save_base
from job_metrics import metric_points
from torch.nn.functional import normalize
from trainer_jobs import claim, config_for, train_until
from trainer_release import make_rows, write_release

from app.access.identity import owner
from app.jobs import launching
from db.errors import BadInput
from db.shape import INF_IR
from db.store.store import Store
from trainer.data.groups import Group, group_of
from trainer.data.passage_pool import ALL, pool_passages
from trainer.data.release_files import read_release
from trainer.data.splitting import Groups
from trainer.evaluate.scoring import encode_unique
from trainer.launch.here import base_pool, train
from trainer.loop.embedding_loss import columns_of
from trainer.loop.fitting import make_loss, prepare_weights
from trainer.loop.packing_check import make_collator
from trainer.loop.precision import uses_bf16
from trainer.model.backbone import load_backbone, load_model, question_encoder
from trainer.model.doors import trained_part
from trainer.settings.settings import TrainSettings, parse_settings, split_pairs
from trainer.settings.template import INSTRUCTED

PASSAGES = ["The Aldern bridge is 80 metres long.", "Es wurde 1701 gebaut.", "x"]
QUERIES = ["how long is the aldern bridge", "who built it"]
TEXTS = ["Give a figure in metres. how long is the aldern bridge"]


@pytest.mark.long
@pytest.mark.parametrize("architecture", BASES)
def test_passages_and_plain_queries_equal_the_base_model_to_the_bit(
    sqlite_store: Store, tmp_path: Path, architecture: str
) -> None:
    base = save_base(architecture, tmp_path / "base")
    given = {"trained_side": "query", "objective": "P,I,IQ:uni", "group_weight": "1"}
    given |= {
        "base_model": str(base),
        "pool_passages": "-1",
        "max_steps": "3",
        "query_tokens": "64",
    }
    train(claim(sqlite_store, config_for(tmp_path, **given, **BASES[architecture])))
    # In a process of its own, by sentence-transformers alone.
    program = (
        "import sys, numpy as np\n"
        "from sentence_transformers import SentenceTransformer\n"
        f"passages, queries, texts = {PASSAGES!r}, {QUERIES!r}, {TEXTS!r}\n"
        "for name in ('base', 'out'):\n"
        "    model = SentenceTransformer(sys.argv[1] + '/' + name)\n"
        "    found = {'d': model.encode_document(passages), 'q': model.encode_query(queries)}\n"
        "    if name == 'out':\n"
        "        found['i'] = model.encode(texts, task='instructed', prompt_name='instructed')\n"
        "    else:\n"
        "        found['i'] = model.encode_query(texts)\n"
        "    np.savez(sys.argv[1] + '/' + name + '.npz', **found)\n"
        "assert not {'trainer', 'db', 'inf_studio'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-P", "-c", program, str(tmp_path)], check=True)
    before, after = np.load(tmp_path / "base.npz"), np.load(tmp_path / "out.npz")
    assert np.array_equal(before["d"], after["d"]) and np.array_equal(before["q"], after["q"])
    assert np.abs(before["i"] - after["i"]).max() > 1e-3
    # And by our own loading: an instruction is what chooses the door.
    ours = load_model(str(tmp_path / "out"))
    assert np.array_equal(ours.encode_query(QUERIES), before["q"])
    instruction, query = "Give a figure in metres.", "how long is the aldern bridge"
    asked = ours.encode_query([query], instruction=instruction)
    assert np.array_equal(asked, after["i"])


def prepared(**given: Any) -> tuple[Any, TrainSettings, list[Group]]:
    settings = parse_settings(
        {"base_model": "tiny-random-bert", "trained_side": "query", "precision": "fp32"}
        | {"rows_per_batch": "3", "query_tokens": "96", "dropout": "0"}
        | {name: str(value) for name, value in given.items()}
    )
    rows = make_rows(5)
    # Equal texts in another group: what is right for them there is no negative here.
    rows.append({**rows[4], **{name: rows[0][name] for name in INF_IR.columns[:2]}})
    return load_backbone(settings), settings, [group_of(row, shape=INF_IR) for row in rows]


def loss_of(model: Any, settings: TrainSettings, groups: list[Group], batch: list[Group]) -> Any:
    pool = pool_passages(
        groups,
        settings.parsed_template,
        lambda texts: encode_unique(model.encode_document, texts, lambda _: None),
        settings.pool_passages,
        settings.seed,
    )
    collator = make_collator(model, groups, settings, pool=pool)
    columns, tables = columns_of(collator([group.row() for group in batch]), model.device)
    return make_loss(model, settings, INF_IR, pool)(columns, tables)


def naive(model: Any, settings: TrainSettings, groups: list[Group], batch: list[Group]) -> Any:
    """ℓ_P over all passages + over the group's three + the matched texts of the batch, by loops."""
    template, tau = settings.parsed_template, settings.temperature
    with torch.no_grad():
        vector = {
            passage: torch.as_tensor(model.encode_document(passage))
            for group in groups
            for *_, passage in group.triplets()
        }
    right: dict[str, set[str]] = {}
    for group in groups:
        for instruction, query, passage in group.triplets():
            right.setdefault(template.apply(instruction, query), set()).add(passage)
    triplets = [triplet for group in batch for triplet in group.triplets()]
    texts = [template.apply(i, q) for i, q, _ in triplets]
    model.train()
    features = model.preprocess(texts, task=INSTRUCTED)
    asked = normalize(model({**features, "task": INSTRUCTED})["sentence_embedding"], dim=1)
    terms = []
    for place, (_, _, own) in enumerate(triplets):
        positive = asked[place] @ vector[own] / tau
        pool = [
            asked[place] @ vec / tau for p, vec in vector.items() if p not in right[texts[place]]
        ]
        group = [asked[place] @ vector[p] / tau for *_, p in batch[place // 3].triplets()]
        others = [
            asked[other] @ vector[own] / tau
            for other, text in enumerate(texts)
            if own not in right[text]
        ]
        for negatives in ([positive, *pool], group, [positive, *others]):
            terms.append(torch.logsumexp(torch.stack(negatives), dim=0) - positive)
    return torch.stack(terms).sum() / len(triplets)


@pytest.mark.parametrize("texts_at_once", [0, 4])
def test_the_loss_over_all_passages_equals_a_naive_loop(texts_at_once: int) -> None:
    model, settings, groups = prepared(
        objective="P,IQ:uni", pool_passages=ALL, group_weight=1, texts_at_once=texts_at_once
    )
    prepare_weights(model, settings)
    wanted = naive(model, settings, groups, groups[:1] + groups[4:])
    wanted.backward()
    named = dict(trained_part(model).named_parameters())
    slopes = {name: of.grad.clone() for name, of in named.items() if of.grad is not None}
    model.zero_grad()
    found = loss_of(model, settings, groups, groups[:1] + groups[4:])
    found.backward()
    assert found.item() == pytest.approx(wanted.item(), rel=1e-5)
    assert slopes
    for name, weights in named.items():
        if name in slopes:
            assert weights.grad is not None
            most = max(1.0, float(slopes[name].abs().max()))
            assert float((weights.grad - slopes[name]).abs().max()) < 1e-4 * most, name
    frozen = set(model.parameters()) - set(trained_part(model).parameters())
    assert frozen and all(each.grad is None for each in frozen)


def test_a_pool_of_some_passages_is_of_those_the_seed_chooses() -> None:
    model, settings, groups = prepared(objective="P", pool_passages=4)
    made = [
        pool_passages(groups, settings.parsed_template, lambda t: np.ones((len(t), 2)), 4, seed)
        for seed in (1, 1, 2)
    ]
    assert made[0].negatives == made[1].negatives != made[2].negatives
    assert len(made[0].negatives) == 4
    more = loss_of(
        model, parse_settings({**settings.as_dict(), "pool_passages": ALL}), groups, groups[:2]
    )
    assert more.item() > loss_of(model, settings, groups, groups[:2]).item()


def test_the_pool_is_embedded_in_the_precision_of_the_index_also_where_training_uses_bfloat16(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU with bfloat16, emulated: the passages stand for an index that the base model made."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: True)
    seen: list[tuple[bool, str]] = []

    class OnGpu:
        device = torch.device("cuda")

        def encode_document(self, texts: list[str], **_: Any) -> np.ndarray:
            seen.append((torch.is_autocast_enabled("cuda"), torch.get_float32_matmul_precision()))
            return np.ones((len(texts), 2), dtype=np.float32)

    rows = [group_of(row, shape=INF_IR) for row in make_rows(5)]
    groups = Groups(read_release(write_release(tmp_path / "release", 5)), rows, [])
    settings = parse_settings({"trained_side": "query", "base_model": "tiny-random-bert"})
    assert uses_bf16(settings.precision)
    handle = claim(sqlite_store, config_for(tmp_path))
    base_pool(handle, OnGpu(), groups, settings)  # type: ignore[arg-type]
    assert set(seen) == {(False, torch.get_float32_matmul_precision())}


def test_only_texts_with_an_instruction_go_through_the_trained_copy() -> None:
    model, _, _ = prepared()
    with torch.no_grad():
        for weights in trained_part(model).parameters():
            weights.add_(torch.randn_like(weights) * 0.1)
    encode = question_encoder(model, {QUERIES[0]})
    mixed = encode([TEXTS[0], QUERIES[0], QUERIES[1]], convert_to_numpy=True)
    assert np.array_equal(mixed[1], model.encode_query(QUERIES[0]))
    assert not np.allclose(mixed[2], model.encode_query(QUERIES[1]), atol=1e-3)
    with pytest.raises(BadInput, match="instruction 2 of 2 is empty"):
        model.encode_query(QUERIES, instruction=["Give a figure.", ""])


def test_a_stopped_training_resumes_with_the_same_losses_and_vectors(
    sqlite_store: Store, tmp_path: Path
) -> None:
    kept = {"trained_side": "query", "objective": "P,IQ:uni", "pool_passages": "-1"}
    kept |= {"epochs": "3", "save_steps": "1"}
    whole = claim(sqlite_store, config_for(tmp_path / "a", **kept))
    train(whole)
    again = train_until(sqlite_store, config_for(tmp_path / "b", **kept), step=2)
    train(again)
    assert losses(sqlite_store, again.id) == losses(sqlite_store, whole.id)
    one, two = (load_model(str(tmp_path / name / "out")) for name in "ab")
    given = {"task": INSTRUCTED, "prompt_name": INSTRUCTED}
    assert np.array_equal(one.encode(TEXTS, **given), two.encode(TEXTS, **given))


@pytest.mark.long
def test_a_training_of_two_processes_has_the_losses_of_one(
    sqlite_store: Store, tmp_path: Path
) -> None:
    kept = {"trained_side": "query", "objective": "P,IQ:uni", "pool_passages": "-1"}
    kept |= {"epochs": "3", "dropout": "0", "precision": "fp32"}
    found = []
    for count in (1, 2):
        config = config_for(tmp_path / str(count), **kept) | {"processes": count}
        job = launching.run_in_foreground(sqlite_store, "train", config, actor=owner("test"))
        found.append([loss for _, loss in losses(sqlite_store, job.id)])
    assert found[1] == pytest.approx(found[0], rel=1e-3)


def losses(store: Store, job_id: int) -> list[tuple[int, float]]:
    with store.read() as session:
        points = metric_points(session, job_id)
    found = [(point.step, point.value) for point in points if point.name == "loss"]
    assert len(found) == 6
    return found


def test_the_controls_without_an_instruction_stay_those_of_the_base(
    sqlite_store: Store, tmp_path: Path
) -> None:
    kept = {
        "trained_side": "query",
        "objective": "P",
        "pool_passages": "-1",
        "learning_rate": "1e-2",
    }
    held_out = train(claim(sqlite_store, config_for(tmp_path, **kept)))["held_out"]
    alone = [name for name in held_out["before"] if name.startswith("query-alone:")]
    assert alone
    assert {n: held_out["before"][n] for n in alone} == {n: held_out["after"][n] for n in alone}
    assert held_out["before"]["plain-ndcg@10"] == held_out["after"]["plain-ndcg@10"]


@pytest.mark.parametrize(
    "given",
    [
        {"trained_side": "both", "pool_passages": "5"},
        {"encoders": "two"},
        {"interaction": "II"},
        {"standard_share": "0.1"},
        {"passage_prefix": "p: "},
        {"chat_template": "on"},
        {"fsdp": "on"},
        {"quantize": "4bit", "lora_rank": "4"},
    ],
)
def test_what_the_mode_cannot_do_is_refused_with_the_reason(given: dict[str, str]) -> None:
    with pytest.raises(BadInput, match="trained_side"):
        parse_settings({"trained_side": "query"} | given)


def test_a_base_that_has_such_a_copy_or_would_be_changed_is_refused(tmp_path: Path) -> None:
    query_side = {"trained_side": "query", "base_model": str(tmp_path / "base")}
    model, _, _ = prepared()
    model.save(str(tmp_path / "has"), create_model_card=False)
    with pytest.raises(BadInput, match="instructed door"):
        load_backbone(
            parse_settings({"base_model": str(tmp_path / "has"), "trained_side": "query"})
        )
    save_base("bert", tmp_path / "base")
    with pytest.raises(BadInput, match="pooling=cls"):
        load_backbone(parse_settings({**query_side, "pooling": "cls"}))
    with pytest.raises(BadInput, match="query_tokens=2000"):
        load_backbone(parse_settings({**query_side, "query_tokens": "2000"}))


@pytest.mark.parametrize("side", ["query", "both"])
def test_the_frontiers_mix_of_stored_weights_scores_as_a_training_with_base_share(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    from frontier import Frontier

    given = {"trained_side": side, "objective": "P", "learning_rate": "1e-2", "epochs": "4"}
    given |= {"precision": "fp32", "pool_passages": "-1" if side == "query" else "0"}
    folder = tmp_path / "frontier"
    train(claim(sqlite_store, config_for(folder / "models", **given)))
    mixed = config_for(tmp_path, **given, base_share="0.7")
    wanted = train(claim(sqlite_store, mixed))
    results = Frontier(folder, Path(mixed["release"]), None)
    words = [f"{name}={value}" for name, value in mixed["settings"].items()]
    held_out = results._mixed("out", words, 0.7)["held_out"]
    assert held_out["before"] == wanted["held_out"]["before"]
    assert held_out["after"] == wanted["held_out"]["after"] != held_out["before"]
    assert results._mixed("out", words, 0.0)["held_out"]["after"] != held_out["after"]


def test_the_demos_training_depends_on_no_clock_and_no_number_type_of_the_processor() -> None:
    from app.cli.demo import TRAINING

    settings = parse_settings(split_pairs(TRAINING.split()))
    assert settings.max_seconds == 0 and settings.max_steps > 0
    assert settings.precision == "fp32" and settings.trained_side == "query"


def test_a_busy_machine_gives_the_figures_of_a_quiet_one(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """As the demo trains: a clock in the schedule would change losses and scores."""
    from app.cli.demo import TRAINING

    given = split_pairs(TRAINING.split()) | {"max_steps": "4", "held_out_judge": ""}
    quiet = train(claim(sqlite_store, config_for(tmp_path / "quiet", **given)))
    spin = "while True: pass"
    busy = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(4)]
    try:
        loaded = train(claim(sqlite_store, config_for(tmp_path / "busy", **given)))
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert loaded["held_out"] == quiet["held_out"] and loaded["loss_last"] == quiet["loss_last"]
