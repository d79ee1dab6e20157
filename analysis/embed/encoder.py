"""The fastest exact way from texts to vectors that this machine has, verified before it is used.

    graphics card      the model under autocast to bfloat16
    OpenVINO installed the network compiled for the processor, float32
    otherwise          SentenceTransformer as it is: the reference

A faster way is tried once enough text has gone through the reference to be worth its seconds. Its
vectors of a spread of the texts at hand, the longest and the shortest in one batch, must have a
cosine of 0.9999 or more with the reference's; else the reference stays, and the log says why.
Loads torch when it encodes: for jobs only.
"""

import contextlib
import logging
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

BATCH = 32
WORTH_CHARACTERS = 100_000  # the reference takes about four seconds for them on two cores
PROBES, CLOSE = 16, 0.9999
log = logging.getLogger(__name__)


class Encoder:
    """A loaded model. `how` says in a sentence which way it takes and why."""

    def __init__(self, model: "SentenceTransformer") -> None:
        self.model = model
        self.how = "PyTorch, the reference"
        self._bfloat16 = False
        self._tried = False
        self._characters = 0

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of length one: float32, shape (texts, dimensions)."""
        self._characters += sum(map(len, texts))
        if not self._tried and self._characters > WORTH_CHARACTERS:
            self._tried = True
            self._try_faster(texts)
        return self._encode(texts)

    def _encode(self, texts: Sequence[str]) -> np.ndarray:
        import torch

        way = (
            torch.autocast(self.model.device.type, torch.bfloat16)
            if self._bfloat16
            else contextlib.nullcontext()
        )
        with way:
            vectors = self.model.encode(
                list(texts),
                batch_size=BATCH,
                show_progress_bar=False,
                convert_to_tensor=True,
                normalize_embeddings=False,
            )
        whole = torch.nn.functional.normalize(vectors.float(), dim=1)
        found: np.ndarray = whole.cpu().numpy()
        return found

    def _try_faster(self, texts: Sequence[str]) -> None:
        probes = spread(texts)
        reference = self._encode(probes)
        if self.model.device.type != "cpu":
            self._bfloat16 = True
            off = self._mismatch(probes, reference)
            if off is not None:
                self._bfloat16 = False
            self._log_choice("bfloat16 on the graphics card", off)
        elif find_spec("openvino") is None:
            self._log_choice("OpenVINO", "is not installed (the extra `fast`)")
        else:
            self._log_choice("OpenVINO", self._compile(probes, reference))

    def _compile(self, probes: Sequence[str], reference: np.ndarray) -> str | None:
        """Put the compiled network in the network's place; else put it back and say why."""
        from analysis.embed.compiled_network import compile_network

        network = getattr(self.model[0], "model", None)
        if network is None:  # a table of words (StaticEmbedding)
            return "has nothing to compile in this model"
        try:
            self.model[0].model = compile_network(self.model)
            off = self._mismatch(probes, reference)
        except Exception as error:  # whatever the tracer or OpenVINO raise: the reference works
            off = f"cannot run this model ({next(iter(str(error).splitlines()), '')})"
        if off is not None:
            self.model[0].model = network
        return off

    def _mismatch(self, probes: Sequence[str], reference: np.ndarray) -> str | None:
        """Why the way that is set cannot stand for the reference; None where it can."""
        cosine = float((self._encode(probes) * reference).sum(axis=1).min())
        return None if cosine >= CLOSE else f"differs from the reference: cosine {cosine:.6f}"

    def _log_choice(self, way: str, off: str | None) -> None:
        if off is None:
            self.how = f"{way}, verified: cosine with PyTorch at least {CLOSE}"
        else:
            self.how = f"PyTorch, the reference: {way} {off}"
        log.info("embedding by %s", self.how)


def spread(texts: Sequence[str]) -> list[str]:
    """At most 16 of the texts, evenly over their lengths, the longest and the shortest included."""
    by_length = sorted(texts, key=len)
    places = np.linspace(0, len(by_length) - 1, min(PROBES, len(by_length))).round().astype(int)
    return [by_length[place] for place in places]
