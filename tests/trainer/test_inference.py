"""A saved model in a fresh process: prefix and template are applied consistently."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from trainer_jobs import claim, config_for

from db.errors import BadInput
from db.store.store import Store
from trainer.launch.here import train
from trainer.model.backbone import load_model

FRESH = """
import sys, numpy
from sentence_transformers import SentenceTransformer
from trainer.model.backbone import load_model

path, out = sys.argv[1:]
plain, ours = SentenceTransformer(path), load_model(path)
numpy.savez(
    out,
    text=plain.encode_query(["In metres. > how long"]),
    prompt=plain.encode_query(["how long"], prompt="query: In metres. > "),
    whole=plain.encode(["query: In metres. > how long"]),
    ours=ours.encode_query(["how long"], instruction="In metres."),
    ours_one=ours.encode_query("how long", instruction="In metres."),
    ours_each=ours.encode_query(["how wide", "how long"], instruction=["In feet.", "In metres."]),
    alone=plain.encode_query(["how long"]),
    ours_alone=ours.encode_query(["how long"]),
    ours_empty=ours.encode_query(["how long"], instruction=""),
    passage=plain.encode_document(["it is long"]),
    ours_passage=ours.encode_document(["it is long"]),
)
"""


@pytest.mark.long
def test_prefix_and_template_apply_automatically_in_a_fresh_process(
    sqlite_store: Store, tmp_path: Path
) -> None:
    given = {"template": "{instruction} > {query}", "query_prefix": "query: ", "held_out": "0"}
    given |= {"passage_prefix": "passage: "}
    path = train(claim(sqlite_store, config_for(tmp_path, max_steps="1", **given)))["path"]
    out = tmp_path / "vectors.npz"
    subprocess.run([sys.executable, "-c", FRESH, path, str(out)], check=True, capture_output=True)
    found = dict(np.load(out))
    for name in ("prompt", "whole", "ours", "ours_one"):
        assert np.abs(found[name].reshape(1, -1) - found["text"]).max() < 1e-6, name
    assert np.abs(found["ours_each"][1] - found["text"][0]).max() < 1e-6
    for name in ("ours_alone", "ours_empty"):
        assert np.abs(found[name] - found["alone"]).max() < 1e-6, name
    assert np.array_equal(found["passage"], found["ours_passage"])
    assert np.abs(found["alone"] - found["text"]).max() > 1e-4
    assert np.array_equal(
        load_model(path).encode_query(["how long"], instruction="In metres."), found["ours"]
    )


EACH = """
import sys, numpy
from sentence_transformers import SentenceTransformer

for path in sys.argv[1:]:
    model = SentenceTransformer(path)
    numpy.savez(
        path + ".npz", query=model.encode_query(["one"]), passage=model.encode_document(["one"])
    )
"""


@pytest.mark.long
def test_two_encoders_and_lora_are_the_same_in_a_fresh_process(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """Two encoders that were trained apart; LoRA merged; two decoders, pooled at the last token."""
    paths = []
    for number, given in enumerate(
        (
            {"encoders": "two", "query_prefix": "query: "},
            {"lora_rank": "2"},
            {"encoders": "two", "base_model": "tiny-random-qwen2", "lora_rank": "2"},
        )
    ):
        some = {"max_steps": "2", "held_out": "0", "learning_rate": "1e-3"} | given
        paths.append(train(claim(sqlite_store, config_for(tmp_path / str(number), **some)))["path"])
    subprocess.run([sys.executable, "-c", EACH, *paths], check=True, capture_output=True)
    for path in paths:
        here, found = load_model(path), np.load(f"{path}.npz")
        assert np.array_equal(found["query"], here.encode_query(["one"])), path
        assert np.array_equal(found["passage"], here.encode_document(["one"])), path
        apart = np.abs(found["query"] - found["passage"]).max()
        assert (apart > 1e-4) == (path != paths[1])  # two encoders learned different things


def test_unequal_numbers_of_instructions_and_queries_are_refused() -> None:
    from trainer.model.inference import InstructedModel

    model = InstructedModel(modules=list(load_model("tiny-random-bert")))
    with pytest.raises(BadInput, match="2 instructions for 1 queries"):
        model.encode_query(["one"], instruction=["a", "b"])
