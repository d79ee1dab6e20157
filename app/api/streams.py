"""What is read or sent in pieces: pairs as JSON lines, and events as they happen (SSE)."""

import hashlib
import json
import shutil
import uuid
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import anyio
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app.access.identity import TokenHolder
from app.access.permissions import require
from app.api.limits import AT_A_TIME, NO_STORE, Limits, Shared
from app.api.problems import of_error, problem
from app.operations import datasets, jobs, releases
from app.operations.doors import events, tokens
from curation.importing.imported import FilesImported
from curation.importing.request import DatasetImport
from db.errors import BadInput, InfError
from db.home import home, space_in
from db.jobs.jobs import OVER
from db.requests import Request as Wanted
from db.requests import option
from db.rows import as_text

EVENTS, OF_JOB = "/events", "/jobs/{id:int}/events"
ARCHIVE = "/releases/{id:int}/archive"
STREAMS = (EVENTS, OF_JOB, ARCHIVE)
MAX_STREAMS = 4
EVERY_SECONDS = 1.0
BEAT_SECONDS = 15.0
MAX_UPLOAD_BYTES = 1024 * 1024 * 1024
MAX_LINE_BYTES = 4 * 1024 * 1024
STATE = ("status", "done", "total", "message", "error", "code", "remedy", "summary")
BYTES = "application/octet-stream"
LINES = ("application/x-ndjson", "application/jsonl")
MAX_ID = 2**53


class Upload(Wanted):
    """Pairs and passages as JSON lines: `query_id`, `query`, `passage_id`, `passage`; a line
    without a `query` is a passage: `passage_id`, `text`, `title`."""

    name: str = option(..., "Name of the dataset; created if missing.", min_length=1)
    source: str = option("", "Origin of the texts.")
    licence: str = option("", "Licence of the texts, e.g. cc-by-sa-3.0.")
    skip_bad: bool = option(False, "Skip bad rows and list them.")
    usual_columns: bool = option(False, "Map usual names (question, answer, …).")


async def upload_pairs(api: Shared, request: Request, holder: TokenHolder) -> Response:
    """Import what the body has, line by line, once all of it has arrived.

    It is written to a folder of its own, which is deleted afterwards. Raises InfError.
    """
    require(holder, datasets.IMPORT)
    wanted = Upload.read(query_of(Upload, request))
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in LINES:
        return problem(415, f"send {LINES[0]}", code="media_type")
    folder = home() / "uploads" / uuid.uuid4().hex
    await api.in_thread(lambda: folder.mkdir(parents=True, mode=0o700))
    try:
        body = folder / "body"
        size, digest = 0, hashlib.sha256()
        with (
            space_in("INF_HOME", lambda: f"an upload, {size:,} bytes so far"),
            body.open("wb") as file,
        ):
            async for chunk in request.stream():
                size += len(chunk)
                if size > MAX_UPLOAD_BYTES:
                    return problem(
                        *(413, f"an upload has at most {MAX_UPLOAD_BYTES:,} bytes"),
                        code="body_too_large",
                        headers={"Connection": "close"},
                    )
                digest.update(chunk)
                await api.in_thread(partial(file.write, chunk))

        async def imported() -> Response:
            report = await api.in_thread(lambda: import_lines(holder, wanted, body))
            return Response(as_text(report), 201, media_type="application/json")

        about = f"{wanted.config()}\n{digest.hexdigest()}"
        return await api.once(request, holder, about, imported)
    finally:
        with anyio.CancelScope(shield=True):
            await api.in_thread(lambda: shutil.rmtree(folder, ignore_errors=True))


def import_lines(holder: Any, wanted: Upload, body: Path) -> dict[str, Any]:
    """Import a file of JSON lines into a dataset; returns the report. Raises InfError."""
    pairs, passages = body.with_name("pairs.jsonl"), body.with_name("passages.jsonl")
    with body.open("rb") as lines, pairs.open("wb") as one, passages.open("wb") as other:
        has_passages = _split(lines, one, other)
    given = wanted.model_dump() | {"pairs": str(pairs)}
    request = DatasetImport.read(given | ({"passages": str(passages)} if has_passages else {}))
    done: FilesImported = datasets.import_files(
        holder, request, datasets.here(lambda *_: None), uploads=body.parent
    )
    return done.as_json()


def _split(lines: IO[bytes], pairs: IO[bytes], passages: IO[bytes]) -> bool:
    """Write each line to the pairs, or without a query to the passages; whether there are any."""
    number, has_passages = 0, False
    while line := lines.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise BadInput(
                f"line {number} has more than {MAX_LINE_BYTES:,} bytes",
                "split the text",
                code="line_too_long",
            )
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadInput(
                f"line {number} is no JSON: {error}", "send one object a line", code="line_invalid"
            ) from error
        if not isinstance(row, dict):
            raise BadInput(
                f"line {number} is no JSON object", "send one a line", code="line_invalid"
            )
        is_passage = "passage_id" in row and not {"query", "query_id", "question"} & row.keys()
        has_passages |= is_passage
        (passages if is_passage else pairs).write(line.rstrip(b"\n") + b"\n")
    return has_passages


def query_of(model: type[BaseModel], request: Request) -> dict[str, Any]:
    """The fields of a query, a repeated one as a list. Raises BadInput."""
    found: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        field = model.model_fields.get(name)
        is_list = field is not None and "tuple" in str(field.annotation)
        if not is_list and len(values) > 1:
            raise BadInput(
                f"{name} is given {len(values)} times", "give it once", code="request_invalid"
            )
        found[name] = values if is_list else values[0]
    return found


async def stream_of(
    api: Shared, request: Request, holder: TokenHolder, name: str, parameters: dict[str, Any]
) -> Response:
    """A stream of events, or a release as a zip. Raises InfError before it begins."""
    if name == ARCHIVE:
        with api.limits.one_of("requests at a time", holder.token_id, AT_A_TIME):
            found = await api.in_thread(lambda: releases.archive(holder, parameters["id"]))
        named = {"Content-Disposition": f'attachment; filename="{found.name}"'}
        return StreamingResponse(found.chunks, media_type=BYTES, headers=NO_STORE | named)
    last = request.headers.get("last-event-id", "")
    if name == EVENTS:
        after = await api.in_thread(lambda: _after(holder, last))
        return _streamed(api.limits, holder, _events(api, holder, after))
    job_id = parameters["id"]
    await api.in_thread(lambda: jobs.show(holder, job_id))
    return _streamed(api.limits, holder, _of_job(api, holder, job_id, last))


def _after(holder: TokenHolder, last: str) -> int:
    newest = events.newest(holder)
    if not last:
        return newest
    if not (last.isascii() and last.isdigit() and int(last[:17]) < MAX_ID):
        raise BadInput(f"{last[:40]!r} is no id of an event", "omit it", code="event_id_invalid")
    return min(int(last), newest)


def _streamed(limits: Limits, holder: TokenHolder, found: AsyncIterator[str]) -> Response:
    async def counted() -> AsyncIterator[str]:
        with limits.one_of("streams", holder.token_id, MAX_STREAMS):
            async for text in found:
                yield text

    with limits.one_of("streams", holder.token_id, MAX_STREAMS):  # else refused before it begins
        pass
    headers = NO_STORE | {"X-Accel-Buffering": "no"}
    return StreamingResponse(counted(), media_type="text/event-stream", headers=headers)


async def _events(api: Shared, holder: TokenHolder, after: int) -> AsyncIterator[str]:
    """Events after this one, until the token ends or the client leaves."""
    yield _message("", id=str(after))
    waited = 0.0
    while (now := await _still(api, holder)) is not None:
        try:
            found = await api.in_thread(partial(events.list_after, now, after))
        except InfError as error:  # of a right that was withdrawn
            yield _ended(error)
            return
        for row in found.data:
            yield _message(as_text(row.as_json()), id=str(row.id), event=row.name)
        if found.last != after:
            after, waited = found.last, 0.0
            if not found.data:
                yield _message("", id=str(after))
            continue
        await anyio.sleep(EVERY_SECONDS)
        waited += EVERY_SECONDS
        if waited >= BEAT_SECONDS:
            waited = 0.0
            yield ":\n\n"
    yield _message(as_text({"code": "token_revoked"}), event="end")


async def _of_job(api: Shared, holder: TokenHolder, job_id: int, last: str) -> AsyncIterator[str]:
    """The states of a job whenever one changed, until it is over."""
    waited = 0.0
    while (now := await _still(api, holder)) is not None:
        try:
            row = await api.in_thread(partial(jobs.show, now, job_id))
        except InfError as error:
            yield _ended(error)
            return
        state = {name: getattr(row, name) for name in STATE}
        at = f"{row.attempt}-{row.status}-{row.done}-{row.total or 0}-{len(row.message)}"
        if at != last:
            last, waited = at, 0.0
            yield _message(as_text({"id": job_id, **state}), id=at, event=f"job.{row.status}")
        if row.status in OVER:
            yield _message(as_text({"code": "job_over"}), event="end")
            return
        await anyio.sleep(EVERY_SECONDS)
        waited += EVERY_SECONDS
        if waited >= BEAT_SECONDS:
            waited = 0.0
            yield ":\n\n"
    yield _message(as_text({"code": "token_revoked"}), event="end")


async def _still(api: Shared, holder: TokenHolder) -> TokenHolder | None:
    return await api.in_thread(lambda: tokens.still_presented(holder))


def _ended(error: InfError) -> str:
    return _message(bytes(of_error(error).body).decode(), event="end")


def _message(data: str, **fields: str) -> str:
    """One message of a stream; `id` is what `Last-Event-ID` gives back."""
    lines = [f"{name}: {value}" for name, value in fields.items()]
    lines += [f"data: {data}"] if data else []
    return "\n".join(lines) + "\n\n"
