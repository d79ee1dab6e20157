"""`inf models serve`: a model behind OpenAI's `/v1/embeddings`, with one field more.

Clients that send texts alone lose the template that joins an instruction and a query, silently.
Here `instruction` is a field of the request: the server applies the stored template and prefix and
chooses the door (`trainer.model.doors`). Without it a text is a passage, or a query with
`input_type: "query"`. Everything else is as OpenAI documents the route, base64 too, which its SDK
requests by default.
"""

import base64
import hmac
import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from db.errors import BadInput, InfError, Refused
from db.machine import is_loopback
from trainer.model.backbone import load_model, read_memory
from trainer.model.inference import has_instructed_door

if TYPE_CHECKING:
    from trainer.model.inference import InstructedModel

log = logging.getLogger("inf.embeddings")
MAX_TEXTS = 2048  # of OpenAI's route, too
MAX_BYTES = 32_000_000
SECRET = "INF_EMBEDDINGS_TOKEN"


class EmbeddingRequest(BaseModel):
    """The body of a request. Unknown fields are refused: a misspelt `instruction` would be lost."""

    model_config = ConfigDict(extra="forbid")

    input: str | list[str] = Field(description="A text, or up to 2,048.")
    model: str = Field("", description="Not read: the server has one model.")
    instruction: str | list[str] | None = Field(
        None, description="Of all queries, or one for each; the template joins them."
    )
    input_type: Literal["query", "document"] | None = Field(
        None, description="What the texts are; with an instruction they are queries."
    )
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, ge=1, description="A length that was trained too.")
    user: str | None = None

    def texts(self) -> list[str]:
        """The texts. Raises BadInput for none, too many, or an empty one."""
        found = [self.input] if isinstance(self.input, str) else self.input
        if not 1 <= len(found) <= MAX_TEXTS or not all(each.strip() for each in found):
            raise BadInput(
                "input",
                f"give 1 to {MAX_TEXTS} texts, none of them empty",
                code="input_invalid",
            )
        return found

    def given_instruction(self) -> str | list[str] | None:
        """The instruction of all texts, or one for each; None without one."""
        if isinstance(self.instruction, list):
            return [each.strip() for each in self.instruction]
        return (self.instruction or "").strip() or None


class Embedder:
    """A model that one request at a time encodes with."""

    def __init__(self, name: str) -> None:
        self.name = Path(name).name
        self.model: InstructedModel = load_model(name)  # type: ignore[assignment]
        settings = read_memory(name).get("settings") or {}
        sizes = str(settings.get("matryoshka") or "").replace(",", " ").split()
        self.sizes = {int(size) for size in sizes}
        self.keeps_index = has_instructed_door(self.model)
        self._lock = threading.Lock()

    def embed(self, request: EmbeddingRequest) -> tuple[np.ndarray, int]:
        """(vectors (texts, d) float32, number of tokens): of length one, but for those of a model
        whose index stays, which are as its base makes them. Raises BadInput for the request."""
        texts = request.texts()
        instruction = request.given_instruction()
        if instruction is not None and request.input_type == "document":
            raise BadInput(
                "input_type: passages have no instruction",
                "leave one of the two out",
                code="passages_exclude_instruction",
            )
        whole = self.model.get_embedding_dimension()
        size = request.dimensions
        if size is not None and size != whole and size not in self.sizes:
            known = ", ".join(map(str, sorted({whole or 0, *self.sizes})))
            raise BadInput(
                f"dimensions: {size} was not trained",
                f"give one of {known}",
                code="dimensions_not_trained",
            )
        options: dict[str, Any] = {
            "truncate_dim": size,
            # a base whose vectors have other lengths made the index: they stay as they are
            "normalize_embeddings": size is not None or not self.keeps_index,
            "convert_to_numpy": True,
        }
        with self._lock:
            if instruction is not None:
                found = self.model.encode_query(texts, instruction=instruction, **options)
            elif request.input_type == "query":
                found = self.model.encode_query(texts, **options)
            else:
                found = self.model.encode_document(texts, **options)
            counted = self.model.tokenizer(texts, truncation=True)["input_ids"]
        return np.asarray(found, dtype=np.float32), sum(map(len, counted))


def as_response(vectors: np.ndarray, tokens: int, name: str, encoding: str) -> dict[str, Any]:
    """The answer as OpenAI's route gives it; base64 is of little-endian float32."""
    data = [
        {
            "object": "embedding",
            "index": place,
            "embedding": base64.b64encode(row.astype("<f4").tobytes()).decode()
            if encoding == "base64"
            else [float(value) for value in row],
        }
        for place, row in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": name, "usage": usage}


def app(embedder: Embedder, token: str = "") -> Starlette:
    """The routes: POST /v1/embeddings, GET /v1/models, GET /health.

    token: what `Authorization: Bearer` must give; empty: none is needed.
    """

    def refusal(status: int, message: str, code: str) -> JSONResponse:
        kind = "invalid_request_error"
        return JSONResponse({"error": {"message": message, "type": kind, "code": code}}, status)

    def is_allowed(request: Request) -> bool:
        given = request.headers.get("Authorization", "").encode()
        return not token or hmac.compare_digest(given, f"Bearer {token}".encode())

    async def embeddings(request: Request) -> JSONResponse:
        if not is_allowed(request):
            return refusal(401, "the token is missing or wrong", "invalid_api_key")
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MAX_BYTES:
                return refusal(413, f"the body is larger than {MAX_BYTES} bytes", "too_large")
        try:
            wanted = EmbeddingRequest.model_validate(json.loads(body))
            vectors, tokens = await run_in_threadpool(embedder.embed, wanted)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            return refusal(400, f"{place}: {first['msg']}", "invalid_request")
        except (ValueError, InfError) as error:
            return refusal(400, str(error), "invalid_request")
        return JSONResponse(as_response(vectors, tokens, embedder.name, wanted.encoding_format))

    async def models(request: Request) -> JSONResponse:
        if not is_allowed(request):
            return refusal(401, "the token is missing or wrong", "invalid_api_key")
        one = {"id": embedder.name, "object": "model", "owned_by": "inf-studio"}
        return JSONResponse({"object": "list", "data": [one]})

    async def health(_: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    return Starlette(
        routes=[
            Route("/v1/embeddings", embeddings, methods=["POST"]),
            Route("/v1/models", models),
            Route("/health", health),
        ]
    )


def serve(name: str, host: str, port: int) -> None:
    """Listen until stopped. Raises Refused for an address beyond this machine without a token."""
    import uvicorn

    token = os.environ.get(SECRET, "")
    if not token and not is_loopback(host):
        raise Refused(
            f"anyone who reaches {host} could use the model",
            f"set {SECRET} to a token first",
            code="public_server_needs_token",
        )
    uvicorn.run(app(Embedder(name), token), host=host, port=port, log_level="warning")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    try:
        serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    except InfError as error:
        sys.exit(f"error: {error}")
