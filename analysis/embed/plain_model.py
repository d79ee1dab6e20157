"""An embedding model that is not a SentenceTransformer: vectors of queries and documents, no more.

Queries and documents are embedded alike; what a model wants before them are its prefixes
(`--query-prefix`, `--passage-prefix`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np


class PlainModel:
    """What scoring and analysis use of a model; `_encode` gives unit vectors of texts.

    chat_template: "off" where texts are known to be read as they are.
    """

    chat_template: str | None = None

    def __init__(self) -> None:
        self.prompts: dict[str, str] = {"query": "", "document": ""}

    def encode_query(self, texts: Sequence[str], *, batch_size: int = 32, **_: Any) -> np.ndarray:
        """Unit vectors of queries (n, d), float32."""
        return self._encode([self.prompts["query"] + text for text in texts], batch_size)

    def encode_document(
        self, texts: Sequence[str], *, batch_size: int = 32, **_: Any
    ) -> np.ndarray:
        """Unit vectors of documents (n, d), float32."""
        return self._encode([self.prompts["document"] + text for text in texts], batch_size)

    def tokens(self, text: str) -> list[str] | None:
        """The tokens that the network receives of a text; None where that is unknown."""
        return None

    def _encode(self, texts: Sequence[str], at_once: int) -> np.ndarray:
        raise NotImplementedError
