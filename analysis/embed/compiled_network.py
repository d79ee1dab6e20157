"""The network of a SentenceTransformer compiled by OpenVINO for the CPU, in float32.

OpenVINO reads the traced PyTorch network itself: no ONNX file and no second tokeniser lie between,
and everything around the network (truncation, pooling, normalising) stays the model's own code.

Note: `openvino.convert_model` is not used, since it reports its use to Intel where
the package `openvino-telemetry` is installed. The front end beneath it reports nothing.
Loads torch and openvino when it is called: for jobs only.
"""

import warnings
from typing import TYPE_CHECKING, Any

import torch
from openvino import Core
from openvino.frontend import FrontEndManager
from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder
from transformers.modeling_outputs import BaseModelOutput

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

EXAMPLE = ["two different lengths", "show the tracer that a batch is padded to its longest text"]


class CompiledNetwork(torch.nn.Module):
    """Stands where the transformer stood: the same inputs, the same `last_hidden_state`."""

    def __init__(self, network: torch.nn.Module, example: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.config = network.config
        self.names = list(example)
        traced = Positional(network, self.names).eval()
        decoder = TorchScriptPythonDecoder(traced, example_input=tuple(example.values()))
        frontend = FrontEndManager().load_by_framework("pytorch")
        settings: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        }
        self._run = Core().compile_model(frontend.convert(frontend.load(decoder)), "CPU", settings)

    def forward(self, **features: Any) -> BaseModelOutput:
        """Token vectors, shape (texts, tokens, dimensions)."""
        hidden = self._run([features[name].numpy() for name in self.names])[0]
        return BaseModelOutput(last_hidden_state=torch.from_numpy(hidden.copy()))


class Positional(torch.nn.Module):
    """The network, with its features by place: a tracer knows no names."""

    def __init__(self, network: torch.nn.Module, names: list[str]) -> None:
        super().__init__()
        self.network, self.names = network, names

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        features = dict(zip(self.names, inputs, strict=True))
        hidden: torch.Tensor = self.network(**features).last_hidden_state
        return hidden


def compile_network(model: "SentenceTransformer") -> CompiledNetwork:
    """The model's first module's network, compiled. Raises whatever torch and OpenVINO raise for a
    network they cannot read."""
    features = model.preprocess(EXAMPLE)
    example = {name: each for name, each in features.items() if isinstance(each, torch.Tensor)}
    network: Any = model[0].auto_model
    with torch.no_grad(), warnings.catch_warnings():
        # the tracer warns of every branch it fixes; what it made is compared with the reference
        warnings.simplefilter("ignore")
        return CompiledNetwork(network, example)
