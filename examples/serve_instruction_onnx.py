"""OpenAI's /v1/embeddings with an `instruction`, by onnxruntime and tokenizers alone: FOLDER [BASE]
[--port PORT].

FOLDER and BASE are what `inf models export` wrote, of a checkpoint and of its base model. A request
with `instruction` (a text for all, or a list with one for each) is read by FOLDER: instruction and
query become one text by the template in its `inf_embed.json`, behind the query's prefix. One
without is a query or, with `input_type` "document" (the default), a passage: read by BASE where
the checkpoint was trained with trained_side=query and the index stays, else by FOLDER.
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from serve_onnxruntime import encode


def read_json(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def prefix_of(folder: Path, role: str) -> str:
    """The prompt of queries or documents that the model was saved with."""
    prompts = read_json(folder / "config_sentence_transformers.json").get("prompts") or {}
    return prompts.get(role) or ""


def texts_of(folder: Path, base: Path | None, request: dict[str, Any]) -> tuple[Path, list[str]]:
    """(the folder that reads the request, its texts as the model reads them). Raises ValueError."""
    given = request["input"]
    inputs = [given] if isinstance(given, str) else list(given)
    instruction, role = request.get("instruction"), request.get("input_type", "document")
    memory = read_json(folder / "inf_embed.json")
    if instruction:
        if role == "document" and "input_type" in request:
            raise ValueError("input_type: passages have no instruction")
        each = [instruction] * len(inputs) if isinstance(instruction, str) else list(instruction)
        if len(each) != len(inputs) or not all(each):
            raise ValueError("instruction: give one text for all queries, or one for each")
        template = memory.get("template", "{instruction} {query}")
        prefix = prefix_of(folder, "query")
        pairs = zip(each, inputs, strict=True)
        return folder, [prefix + template.format(instruction=i, query=q) for i, q in pairs]
    if role not in ("query", "document"):
        raise ValueError("input_type: query or document")
    keeps_index = (memory.get("settings") or {}).get("trained_side") == "query"
    if keeps_index and base is None:
        raise ValueError("without an instruction the base model reads texts: give its folder too")
    reader = base if keeps_index and base else folder
    return reader, [prefix_of(reader, role) + text for text in inputs]


class Handler(BaseHTTPRequestHandler):
    folder: Path
    base: Path | None = None

    def do_POST(self) -> None:
        try:
            if self.path != "/v1/embeddings":
                raise ValueError("POST /v1/embeddings")
            length = int(self.headers.get("Content-Length") or 0)
            reader, texts = texts_of(self.folder, self.base, json.loads(self.rfile.read(length)))
            vectors = encode(reader, texts)
        except (ValueError, KeyError, TypeError) as error:
            self.answer(400, {"error": {"message": str(error), "type": "invalid_request_error"}})
            return
        data = [
            {"object": "embedding", "index": place, "embedding": vector.tolist()}
            for place, vector in enumerate(vectors)
        ]
        self.answer(200, {"object": "list", "model": self.folder.name, "data": data})

    def answer(self, status: int, body: dict[str, Any]) -> None:
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("base", type=Path, nargs="?")
    parser.add_argument("--port", type=int, default=8600)
    given = parser.parse_args()
    Handler.folder, Handler.base = given.folder, given.base
    with ThreadingHTTPServer(("127.0.0.1", given.port), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/v1/embeddings", flush=True)
        server.serve_forever()
