"""An embedding model behind an OpenAI-compatible server, by the name `openai:MODEL`.

`OPENAI_BASE_URL` (with its `/v1`) and `OPENAI_API_KEY` say where, as for the vendor's own client.
"""

import os
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from analysis.embed.plain_model import PlainModel
from db.errors import BadInput

PREFIX = "openai:"
VENDOR = "https://api.openai.com/v1"
TIMEOUT_SECONDS = 60.0
TRIES = 5
MAX_WAIT_SECONDS = 30.0
TRY_AGAIN = (408, 409, 429, 500, 502, 503, 504)
CHECK_ADDRESS = (
    "check that OPENAI_BASE_URL is the address of an OpenAI-compatible server, up to /v1"
)


def base_url() -> str:
    """Where the server is: `OPENAI_BASE_URL` (the first of several), else the vendor's."""
    first = (os.environ.get("OPENAI_BASE_URL") or VENDOR).partition(",")[0]
    return first.strip().rstrip("/")


def server_identity(name: str) -> str:
    """The model with its server (host, port and path, no credentials): two servers may give one
    name to different models."""
    where = urlsplit(base_url())
    port = f":{where.port}" if where.port else ""
    return f"{name}@{where.scheme}://{where.hostname}{port}{where.path}"


class EmbeddingServer(PlainModel):
    """Vectors by POST /embeddings. Raises BadInput where the server refuses or is not reached."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.model = name.removeprefix(PREFIX)
        if not self.model:
            raise BadInput(f"{name!r} names no model", "give openai:MODEL", code="model_missing")
        self.url = base_url() + "/embeddings"
        self.key = os.environ.get("OPENAI_API_KEY") or ""

    def _encode(self, texts: Sequence[str], at_once: int) -> np.ndarray:
        parts = [self._request(texts[at : at + at_once]) for at in range(0, len(texts), at_once)]
        vectors = np.concatenate(parts)
        unit: np.ndarray = vectors / np.maximum(
            np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12
        )
        return unit

    def _request(self, texts: Sequence[str]) -> np.ndarray:
        # No vendor takes an empty text, and an empty one has to have a vector here.
        given = {"model": self.model, "input": [text or " " for text in texts]}
        answer = self._post(given)
        try:
            rows = sorted(answer["data"], key=lambda row: row["index"])
            vectors = np.asarray([row["embedding"] for row in rows], dtype=np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(
                f"{self.url} returned no list of embeddings",
                CHECK_ADDRESS,
                code="embeddings_invalid",
            ) from error
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise BadInput(
                f"{self.url} returned {len(rows)} embeddings for {len(texts)} texts, or some that "
                "are NaN or infinite",
                "look at the server's model",
                code="embeddings_invalid",
            )
        return vectors

    def _post(self, given: dict[str, Any]) -> Any:
        import httpx

        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        why = ""
        for attempt in range(TRIES):
            wait = 0.5 * 2**attempt
            try:
                answer = httpx.post(self.url, json=given, headers=headers, timeout=TIMEOUT_SECONDS)
            except httpx.HTTPError as error:
                why = f"{type(error).__name__}: {error}"
            else:
                why = f"{answer.status_code}: {answer.text[:200]}"
                if answer.status_code == 200:
                    try:
                        return answer.json()
                    except ValueError as error:
                        raise BadInput(
                            f"{self.url} returned invalid JSON",
                            CHECK_ADDRESS,
                            code="embeddings_invalid",
                        ) from error
                if answer.status_code not in TRY_AGAIN:
                    break
                retry_after = answer.headers.get("Retry-After", "")
                wait = float(retry_after) if retry_after.replace(".", "", 1).isdigit() else wait
            if attempt + 1 < TRIES:
                time.sleep(min(wait, MAX_WAIT_SECONDS))
        raise BadInput(
            f"{self.url} gave no embeddings of {self.model!r} ({why})",
            "look at OPENAI_BASE_URL, OPENAI_API_KEY and the model's name",
            code="embeddings_missing",
        )
