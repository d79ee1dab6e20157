"""A model's network as ONNX and OpenVINO files, and read back in place of the network.

`torch.onnx.export` is called directly: optimum-onnx 0.1 asks for an older transformers than ours.
The tracing exporter is used: it needs `onnx` alone and a fifth of the time of the one over
`torch.export`, with the same vectors. The graph ends at the token vectors; truncation, pooling and
unit length stay those of the model, or of the server. For OpenVINO see
`analysis.embed.compiled_network` for why `openvino.convert_model` is not used. Loads torch when it
is called: for jobs only.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers.modeling_outputs import BaseModelOutput

from analysis.embed.compiled_network import EXAMPLE, Positional
from trainer.export.card import HINT, PRECISION

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

OUTPUT = "last_hidden_state"
OPSET = 18


def write_onnx(model: "SentenceTransformer", file: Path) -> None:
    """Write the network: (texts, tokens) int64 inputs, (texts, tokens, dimensions) float32."""
    example, network = _example(model), _network(model)
    names = list(example)
    axes = {0: "texts", 1: "tokens"}
    file.parent.mkdir(parents=True, exist_ok=True)
    with torch.no_grad(), warnings.catch_warnings():
        # the tracer warns of every branch it fixes; what it made is compared with the model
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Positional(network, names).eval(),
            tuple(example.values()),
            str(file),
            input_names=names,
            output_names=[OUTPUT],
            dynamic_axes=dict.fromkeys([*names, OUTPUT], axes),
            opset_version=OPSET,
            dynamo=False,
        )


def write_int8_onnx(source: Path, file: Path) -> None:
    """Write an ONNX network with weights in 8 bits and activations quantized as they come."""
    import logging

    from onnxruntime.quantization import QuantType, quantize_dynamic

    before = logging.root.level
    logging.root.setLevel(logging.ERROR)  # it advises a step that dynamic shapes do not pass
    try:
        quantize_dynamic(source, file, weight_type=QuantType.QInt8, per_channel=True)
    finally:
        logging.root.setLevel(before)


def write_openvino(source: Path, file: Path) -> None:
    """Write an ONNX network, whole or in 8 bits, as OpenVINO's `.xml` and `.bin`."""
    import openvino
    from openvino.frontend import FrontEndManager

    frontend = FrontEndManager().load_by_framework("onnx")
    file.parent.mkdir(parents=True, exist_ok=True)
    # float32 as it is: halving the weights would change the vectors
    openvino.save_model(
        frontend.convert(frontend.load(str(source))), str(file), compress_to_fp16=False
    )


@contextmanager
def network_replaced(model: "SentenceTransformer", file: Path) -> Iterator[None]:
    """Encode with the network in this file instead of the model's own."""
    first: Any = model[0]
    own = first.auto_model
    read = _OnnxNetwork if file.suffix == ".onnx" else _OpenvinoNetwork
    first.model = read(own.config, list(_example(model)), file)
    try:
        yield
    finally:
        first.model = own


def _network(model: "SentenceTransformer") -> Any:
    first: Any = model[0]
    return first.auto_model


def _example(model: "SentenceTransformer") -> dict[str, torch.Tensor]:
    features = model.preprocess(EXAMPLE)
    return {name: each for name, each in features.items() if isinstance(each, torch.Tensor)}


class _OnnxNetwork(torch.nn.Module):
    def __init__(self, config: Any, names: list[str], file: Path) -> None:
        super().__init__()
        import onnxruntime

        self.config, self.names = config, names
        self._run = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])

    def forward(self, **features: Any) -> BaseModelOutput:
        inputs = {name: features[name].numpy() for name in self.names}
        return BaseModelOutput(torch.from_numpy(self._run.run([OUTPUT], inputs)[0]))


class _OpenvinoNetwork(torch.nn.Module):
    def __init__(self, config: Any, names: list[str], file: Path) -> None:
        super().__init__()
        from openvino import Core

        self.config, self.names = config, names
        self._run = Core().compile_model(str(file), "CPU", {HINT: PRECISION})

    def forward(self, **features: Any) -> BaseModelOutput:
        inputs = {name: features[name].numpy() for name in self.names}
        return BaseModelOutput(torch.from_numpy(self._run(inputs)[0].copy()))
