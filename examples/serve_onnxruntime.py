"""Vectors by onnxruntime and tokenizers alone, without PyTorch: FOLDER TEXT [TEXT …].

FOLDER is what `inf models export` wrote. Pooling and unit length are done here, as its
`1_Pooling/config.json` and `modules.json` say.
"""

import json
import sys
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer


@cache
def load(network: Path) -> onnxruntime.InferenceSession:
    """The network, loaded once."""
    return onnxruntime.InferenceSession(str(network), providers=["CPUExecutionProvider"])


def encode(folder: Path, texts: list[str], network: str = "onnx/model.onnx") -> np.ndarray:
    """The texts' vectors, float32, shape (texts, dimensions)."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    longest = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
    pad = json.loads((folder / "config.json").read_text()).get("pad_token_id") or 0
    tokenizer.enable_truncation(longest)
    tokenizer.enable_padding(pad_id=pad)
    found = tokenizer.encode_batch(texts)
    session = load(folder / network)
    features = {
        "input_ids": np.array([each.ids for each in found], dtype=np.int64),
        "attention_mask": np.array([each.attention_mask for each in found], dtype=np.int64),
        "token_type_ids": np.array([each.type_ids for each in found], dtype=np.int64),
    }
    wanted = {each.name: features[each.name] for each in session.get_inputs()}
    (hidden,) = session.run(["last_hidden_state"], wanted)
    mask = features["attention_mask"]
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    if pooling["pooling_mode_cls_token"]:
        vectors = hidden[:, 0]
    elif pooling["pooling_mode_lasttoken"]:
        last = mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)
        vectors = hidden[np.arange(len(texts)), last]
    else:
        vectors = (hidden * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
    modules = json.loads((folder / "modules.json").read_text())
    if any(each["type"].endswith("Normalize") for each in modules):
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors, dtype=np.float32)


if __name__ == "__main__":
    for vector in encode(Path(sys.argv[1]), sys.argv[2:]):
        print(json.dumps(vector.tolist()))
