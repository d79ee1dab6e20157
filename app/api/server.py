"""`/api/v1` as an ASGI app, mounted in the server behind its one stack of middleware.

Who asks is said by a bearer token and nothing else: cookies are never read here, so that no page
of another site can act by a browser's sign-in. A body is read after the token is known, up to a
limit. Operations run in threads of their own, so that many requests leave the pages theirs.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from anyio import to_thread
from sqlalchemy.exc import DataError, NoResultFound
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from app.access.identity import ACCOUNT, TokenHolder
from app.access.permissions import require
from app.api import document
from app.api.limits import AT_A_TIME, NO_STORE, Limits, Shared, TooMany
from app.api.problems import of_error, problem
from app.api.routes import Route, routes
from app.api.streams import STREAMS, query_of, stream_of, upload_pairs
from app.operations.doors import tokens
from db.errors import BadInput, InfError, Refused

MAX_BODY_BYTES = 1024 * 1024


class Stopped(Exception):
    """The answer is known before an operation is called."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


class Programs(Shared):
    """A door of programs: who asks is known by a token, errors are problem documents."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        response: ASGIApp
        try:
            response = await self._answer(request)
        except Stopped as stopped:
            response = stopped.response
        except TooMany as error:
            response = problem(
                *(429, error.message),
                code=error.code,
                headers={"Retry-After": str(error.seconds)},
            )
        except (InfError, NoResultFound, ImportError) as error:
            response = of_error(error)
        except (OverflowError, DataError):
            response = problem(422, "a number is out of range", code="request_invalid")
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> ASGIApp:
        raise NotImplementedError

    async def _holder(self, request: Request) -> TokenHolder:
        """Who presents the token; the request is counted. Raises Refused, TooMany."""
        given = request.headers.getlist("authorization")
        kind, _, text = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        if kind.lower() != "bearer" or not text.strip():
            raise Refused("no token", "send `Authorization: Bearer inf_…`", code="token_missing")
        holder = await self.in_thread(lambda: tokens.presented(text.strip()))
        request.scope[ACCOUNT] = holder.account_id
        self.limits.count(holder.token_id)
        return holder


class Api(Programs):
    """The routes; its limits are of this process."""

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(limits or Limits())
        self._paths = [(compile_path(one.path), one) for one in routes()]
        self._streams = [(compile_path(path), path) for path in STREAMS]
        self._changing: dict[str, asyncio.Lock] = {}

    async def _answer(self, request: Request) -> ASGIApp:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        if request.method in ("GET", "HEAD") and path in document.FILES:
            return await to_thread.run_sync(document.FILES[path])
        holder = await self._holder(request)
        if (found := self._stream(request, path)) is not None:
            name, parameters = found
            return await stream_of(self, request, holder, name, parameters)
        if (request.method, path) == ("POST", "/datasets"):
            with self.limits.one_of("uploads", holder.token_id, 1):
                return await upload_pairs(self, request, holder)
        route, parameters = self._route(request, path)
        with self.limits.one_of("requests at a time", holder.token_id, AT_A_TIME):
            return await self._called(request, holder, route, parameters)

    def _stream(self, request: Request, path: str) -> tuple[str, dict[str, Any]] | None:
        for (regex, _, converters), name in self._streams:
            if request.method == "GET" and (match := regex.match(path)):
                return name, _converted(match.groupdict(), converters)
        return None

    def _route(self, request: Request, path: str) -> tuple[Route, dict[str, Any]]:
        allowed = []
        for (regex, _, converters), route in self._paths:
            if match := regex.match(path):
                if route.method == request.method:
                    return route, _converted(match.groupdict(), converters)
                allowed.append(route.method)
        if allowed:
            allow = ", ".join(sorted(allowed))
            raise Stopped(
                problem(
                    *(405, f"{request.method} is not one of {allow}"),
                    code="method_not_allowed",
                    headers={"Allow": allow},
                )
            )
        raise Stopped(problem(404, "no such route", code="route_unknown", remedy="see `/docs`"))

    async def _called(
        self, request: Request, holder: TokenHolder, route: Route, parameters: dict[str, Any]
    ) -> Response:
        require(holder, route.permission)  # before what it asks for
        body = await body_of(request) if route.has_body else b""
        wanted = _request(route, request, parameters, body)
        if route.method == "PATCH":
            return await self._patched(request, holder, route, wanted)
        about = str(wanted.config())
        return await self.once(request, holder, about, lambda: self._done(holder, route, wanted))

    async def _done(self, holder: TokenHolder, route: Route, wanted: Any) -> Response:
        text = await self.in_thread(lambda: route.text(holder, wanted))
        return _json(text, route.status, {"ETag": etag(text)} if route.method == "GET" else {})

    async def _patched(
        self, request: Request, holder: TokenHolder, route: Route, wanted: Any
    ) -> Response:
        """Change a thing that is as its `ETag` says; another change waits meanwhile.

        Two servers of one store do not wait for each other: their last change stays.
        """
        given = request.headers.get("if-match")
        if given is None:
            raise Stopped(
                problem(
                    *(428, "a change needs `If-Match` with the ETag of what is changed"),
                    code="etag_missing",
                )
            )
        shown = next(one for one in routes() if (one.path, one.method) == (route.path, "GET"))
        lock = self._changing.setdefault(request.url.path, asyncio.Lock())
        try:
            async with lock:
                one = shown.request.read({"id": wanted.id})
                before = await self.in_thread(lambda: shown.text(holder, one))
                if given.strip() not in (etag(before), "*"):
                    raise Stopped(
                        problem(412, "it was changed since it was read", code="etag_stale")
                    )
                response = await self._done(holder, route, wanted)
                after = await self.in_thread(lambda: shown.text(holder, one))
                response.headers["ETag"] = etag(after)
                return response
        finally:
            if not lock.locked():
                self._changing.pop(request.url.path, None)


async def body_of(request: Request) -> bytes:
    """The body, read up to MAX_BODY_BYTES. Raises Stopped beyond that."""
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > MAX_BODY_BYTES:
            raise Stopped(
                problem(
                    *(413, f"a body has at most {MAX_BODY_BYTES:,} bytes"),
                    code="body_too_large",
                    headers={"Connection": "close"},
                )
            )
    return bytes(found)


def etag(text: str) -> str:
    """The ETag of an answer."""
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def _json(text: str, status: int, headers: Mapping[str, str]) -> Response:
    return Response(text, status, NO_STORE | dict(headers), "application/json")


def _request(route: Route, request: Request, parameters: dict[str, Any], body: bytes) -> Any:
    """The request of path and query, or path and body. Raises BadInput, Stopped."""
    if not route.has_body:
        given = query_of(route.request, request)
    else:
        if request.url.query:
            raise BadInput("this route has no query", "give it in the body", code="request_invalid")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind != "application/json":
            raise Stopped(problem(415, "send application/json", code="media_type"))
        try:
            given = json.loads(body or b"{}")
        except (ValueError, RecursionError) as error:
            raise BadInput(
                f"the body is no JSON: {error}", "send an object", code="request_invalid"
            ) from error
        if not isinstance(given, dict):
            raise BadInput("the body is no JSON object", "send one", code="request_invalid")
    if twice := [name for name in given if name in route.in_path]:
        raise BadInput(f"{twice[0]} is given by the path", "omit it", code="request_invalid")
    return route.request.read(given | parameters)


def _converted(found: dict[str, str], converters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: converters[name].convert(value) for name, value in found.items()}
