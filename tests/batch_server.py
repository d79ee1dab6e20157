"""The Batch API of the test server: files, batches, and the troubles that batches have.

`troubles` are what happens to the next batches, one each, in order; then all is well:

- `cut_create`: the batch is made, but the connection is cut before that is told;
- `queue_full`, `refused`: the whole batch fails before any call is made;
- `some_fail`: every third call ends with 500, in the error file;
- `some_garbled`: every third line of the output is cut in the middle;
- `some_expire`: the batch expires; every third call was not made;
- `quota`: every third call says that the quota is spent.

`outages` are what happens to the next requests of each of STEPS, one each, in order: a status;
`cut`; `page`, a proxy's page under status 200; `lost`, the request is served and the answer to it
cut, that of a file in its middle.
"""

import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

TROUBLES = (
    "cut_create",
    "queue_full",
    "refused",
    "some_fail",
    "some_garbled",
    "some_expire",
    "quota",
)
STEPS = ("upload", "files", "create", "list", "show", "fetch")
CHAT = "/v1/chat/completions"
PAGE = "<html><title>We are restarting</title></html>"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Batches:
    """Files and batches of a `Server`; a batch is done `seconds` after it was made."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.seconds = 0.0
        self.there = True
        self.held = False  # while True no batch comes to its end
        self.troubles: list[str] = []
        self.lost_share = 0  # of 16 calls, by their keys: those never get an answer
        self.files: dict[str, bytes] = {}
        self.names: dict[str, str] = {}
        self.made: dict[str, dict[str, Any]] = {}
        self.trouble_of: dict[str, str] = {}
        self.cancelled: list[str] = []
        self.outages: dict[str, list[str]] = {}
        self.served: Counter[str] = Counter()  # requests of each step that were served

    def add_routes(self, application: web.Application) -> None:
        routes = application.router
        routes.add_post("/v1/files", self._step("upload", self._take_file))
        routes.add_get("/v1/files", self._step("files", self._list_files))
        routes.add_get("/v1/files/{id}/content", self._step("fetch", self._give_file))
        routes.add_post("/v1/batches", self._step("create", self._make))
        routes.add_get("/v1/batches", self._step("list", self._list))
        routes.add_get("/v1/batches/{id}", self._step("show", self._show))
        routes.add_post("/v1/batches/{id}/cancel", self._cancel)

    def calls_in(self, batch_id: str) -> list[dict[str, Any]]:
        """The lines that were sent with a batch."""
        sent = self.files[self.made[batch_id]["input_file_id"]]
        return [json.loads(line) for line in sent.splitlines()]

    def _step(self, step: str, serve: Handler) -> Handler:
        async def serve_or_not(request: web.Request) -> web.StreamResponse:
            outage = self.outages[step].pop(0) if self.outages.get(step) else ""
            if outage.isdecimal():
                error = {"message": f"status {outage}", "type": "server"}
                return web.json_response({"error": error}, status=int(outage))
            if outage == "page":
                return web.Response(text=PAGE, content_type="text/html")
            if outage != "cut":
                served = await serve(request)
                self.served[step] += 1
                if not outage:
                    return served
                if step == "fetch":
                    await self._give_half(request, served)
            assert request.transport is not None
            request.transport.abort()
            return web.Response()

        return serve_or_not

    async def _give_half(self, request: web.Request, whole: Any) -> None:
        part = web.StreamResponse(headers={"Content-Length": str(len(whole.body))})
        await part.prepare(request)
        await part.write(whole.body[: len(whole.body) // 2])
        await asyncio.sleep(0.05)  # it arrives before the connection is cut

    async def _take_file(self, request: web.Request) -> web.Response:
        if not self.there:
            return web.Response(status=404, text="not found")
        form = await request.post()
        assert form["purpose"] == "batch"
        sent: Any = form["file"]
        return web.json_response(self._add_file(sent.file.read(), "batch", sent.filename))

    def _add_file(self, content: bytes, purpose: str, name: str = "out.jsonl") -> dict[str, Any]:
        file_id = f"file-{len(self.files)}"
        self.files[file_id] = content
        self.names[file_id] = name
        return self._about(file_id, purpose)

    def _about(self, file_id: str, purpose: str) -> dict[str, Any]:
        return {
            "id": file_id,
            "object": "file",
            "bytes": len(self.files[file_id]),
            "created_at": 0,
            "filename": self.names[file_id],
            "purpose": purpose,
            "status": "processed",
        }

    async def _list_files(self, request: web.Request) -> web.Response:
        found = [self._about(each, "batch") for each in reversed(self.files)]
        return web.json_response({"object": "list", "data": found, "has_more": False})

    async def _give_file(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["id"]])

    async def _make(self, request: web.Request) -> web.Response:
        body = await request.json()
        assert body["endpoint"] == CHAT and body["completion_window"] == "24h"
        batch_id = f"batch-{len(self.made)}"
        self.made[batch_id] = {
            "id": batch_id,
            "object": "batch",
            "endpoint": CHAT,
            "input_file_id": body["input_file_id"],
            "completion_window": "24h",
            "status": "in_progress",
            "created_at": int(time.time()),
            "metadata": body.get("metadata"),
        }
        lines = self.calls_in(batch_id)
        assert len({line["body"]["model"] for line in lines}) == 1, "one model a batch"
        assert len({line["custom_id"] for line in lines}) == len(lines)
        if self.troubles:
            self.trouble_of[batch_id] = self.troubles.pop(0)
        if self.trouble_of.get(batch_id) == "cut_create":
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(self.made[batch_id])

    async def _list(self, request: web.Request) -> web.Response:
        """Newest first, two a page, so that a reader has to turn pages."""
        ids = list(reversed(self.made))
        start = ids.index(request.query["after"]) + 1 if "after" in request.query else 0
        page = ids[start : start + 2]
        return web.json_response(
            {
                "object": "list",
                "data": [self.made[each] for each in page],
                "first_id": page[0] if page else None,
                "last_id": page[-1] if page else None,
                "has_more": start + 2 < len(ids),
            }
        )

    async def _show(self, request: web.Request) -> web.Response:
        batch = self.made[request.match_info["id"]]
        is_due = not self.held and time.time() >= batch["created_at"] + self.seconds
        if batch["status"] == "in_progress" and is_due:
            self._work_off(batch)
        return web.json_response(batch)

    async def _cancel(self, request: web.Request) -> web.Response:
        batch = self.made[request.match_info["id"]]
        batch["status"] = "cancelled"
        self.cancelled.append(batch["id"])
        return web.json_response(batch)

    def _work_off(self, batch: dict[str, Any]) -> None:
        trouble = self.trouble_of.get(batch["id"])
        if trouble in ("queue_full", "refused"):
            code = "token_limit_exceeded" if trouble == "queue_full" else "invalid_json_line"
            errors = [{"code": code, "message": f"the batch is {trouble}", "line": None}]
            batch |= {"status": "failed", "errors": {"object": "list", "data": errors}}
            return
        good, bad = [], []
        for number, line in enumerate(self.calls_in(batch["id"])):
            hit = number % 3 == 0 and trouble is not None
            if int(line["custom_id"][0], 16) < self.lost_share:
                continue
            if hit and trouble == "some_expire":
                error = {"code": "batch_expired", "message": "the batch expired"}
                bad.append(_line(line, None, None, error))
            elif hit and trouble == "some_fail":
                bad.append(_line(line, 500, {"error": {"message": "oops", "type": "server"}}, None))
            elif hit and trouble == "quota":
                error = {"message": "no credit left", "code": "insufficient_quota"}
                bad.append(_line(line, 429, {"error": error}, None))
            else:
                answer = _line(line, 200, self._answer(line["body"]), None)
                cut = hit and trouble == "some_garbled"
                good.append(answer[: len(answer) // 2] if cut else answer)
        batch["status"] = "expired" if trouble == "some_expire" else "completed"
        batch["completed_at"] = batch["created_at"] + 60
        batch["output_file_id"] = self._add_file(_joined(good), "batch_output")["id"]
        if bad:
            batch["error_file_id"] = self._add_file(_joined(bad), "batch_output")["id"]

    def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt = "\n".join(message["content"] for message in body["messages"])
        self.server.answered[hashlib.sha256(prompt.encode()).hexdigest()] += 1
        found: dict[str, Any] = self.server.completion(body, prompt, None)
        return found


def _line(sent: dict[str, Any], status: int | None, body: Any, error: Any) -> str:
    response = None
    if status is not None:
        response = {"status_code": status, "request_id": "r", "body": body}
    line = {"id": "l", "custom_id": sent["custom_id"], "response": response, "error": error}
    return json.dumps(line, ensure_ascii=False)


def _joined(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()
