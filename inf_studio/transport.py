"""How a `Studio` reaches its operations: in this process, or over HTTP. Internal.

Both take the name of an operation with its fields and return the text that `--json` prints.
"""

import getpass
import json
import os
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from db.errors import BadInput, InfError, NotFound, ProviderError, Refused
from db.modules import is_here, load

Lines = Iterable[Mapping[str, Any]]
EVERY_SECONDS = 0.5
BEAT_SECONDS = 60  # of silence in a stream: its server writes every 15
AWAY_SECONDS = 600  # for which a stream waits for a server that went away
PROXY_STATUSES = (502, 503, 504)  # of a proxy whose server is away
SECONDS = 600  # between two pieces of an answer: an import of many pairs takes a while


class Transport(Protocol):
    """What a `Studio` needs of wherever its operations are."""

    def text(self, name: str, fields: Mapping[str, Any]) -> str:
        """The answer of an operation as JSON. Raises InfError."""
        ...

    def upload(self, lines: Lines, about: Mapping[str, Any]) -> str:
        """Import pairs and passages; the report as JSON. Raises InfError."""
        ...

    def follow(self, job_id: int) -> Iterator[dict[str, Any]]:
        """The states of a job until it is over."""
        ...

    def folder(self, release_id: int, path: str) -> AbstractContextManager[Path]:
        """The folder of a release, to be read in this block. Raises InfError."""
        ...


class InProcess:
    """The store's owner, in this process: every right, as the command line."""

    def __init__(self) -> None:
        self.actor = load("app.access.identity:owner")(f"python:{getpass.getuser()}", "python")

    def text(self, name: str, fields: Mapping[str, Any]) -> str:
        """As `Transport.text`."""
        route = load("app.api.routes:by_name")()[name]
        return str(route.text(self.actor, route.request.read(fields)))

    def upload(self, lines: Lines, about: Mapping[str, Any]) -> str:
        """As `Transport.upload`."""
        wanted = load("app.api.streams:Upload").read(about)
        with tempfile.TemporaryDirectory(prefix="inf-") as folder:
            body = Path(folder) / "body"
            with body.open("wb") as file:
                for line in _encoded(lines):
                    file.write(line)
            report = load("app.api.streams:import_lines")(self.actor, wanted, body)
        return str(load("db.rows:as_text")(report))

    def follow(self, job_id: int) -> Iterator[dict[str, Any]]:
        """As `Transport.follow`."""
        last = None
        while True:
            found = json.loads(self.text("jobs show", {"id": job_id}))
            state = {name: found[name] for name in STATE}
            if state != last:
                last = state
                yield state
            if found["status"] in load("db.jobs.jobs:OVER"):
                return
            time.sleep(EVERY_SECONDS)

    @contextmanager
    def folder(self, release_id: int, path: str) -> Iterator[Path]:
        """As `Transport.folder`."""
        yield Path(path)


STATE = ("id", "status", "done", "total", "message", "error", "code", "remedy", "summary")
ERRORS: Mapping[int, type[InfError]] = {
    404: NotFound,
    422: BadInput,
    502: ProviderError,
    **dict.fromkeys((401, 403, 409, 412), Refused),
}


class Away(InfError):
    """The server cannot be reached for now."""


class OverHttp:
    """A server's `/api/v1`, by a token, which stays in this object and is not shown."""

    def __init__(self, url: str, token: str, client: Any = None) -> None:
        import httpx

        if not url.startswith(("http://", "https://")):
            raise BadInput(
                f"{url!r} is no address of a server", "give http://HOST:PORT", code="url_invalid"
            )
        self.url = url.rstrip("/")
        self._client = client or httpx.Client(timeout=SECONDS, follow_redirects=False)
        self._bearer = {"Authorization": f"Bearer {token}"}
        self._routes = {
            operation["operationId"]: (method.upper(), path, operation)
            for path, methods in self._send("GET", "/openapi.json").json()["paths"].items()
            for method, operation in methods.items()
        }

    def text(self, name: str, fields: Mapping[str, Any]) -> str:
        """As `Transport.text`."""
        method, path, operation = self._routes[name.replace(" ", "_")]
        rest, headers = dict(fields), {}
        for parameter in operation["parameters"]:
            if parameter["in"] == "path":
                value = str(rest.pop(parameter["name"]))
                path = path.replace(f"{{{parameter['name']}}}", value)
        if method == "PATCH":
            headers["If-Match"] = self._send("GET", path).headers["etag"]
        given: dict[str, Any] = {"json": rest} if "requestBody" in operation else {}
        if not given:
            given = {"params": {key: value for key, value in rest.items() if value is not None}}
        return str(self._send(method, path, headers=headers, **given).text)

    def upload(self, lines: Lines, about: Mapping[str, Any]) -> str:
        """As `Transport.upload`."""
        answer = self._send(
            *("POST", "/datasets"),
            params=dict(about),
            headers={"Content-Type": "application/x-ndjson"},
            content=_encoded(lines),
        )
        return str(answer.text)

    def follow(self, job_id: int) -> Iterator[dict[str, Any]]:
        """As `Transport.follow`; a server that goes away is waited for, and no state is lost."""
        last, until = "", time.monotonic() + AWAY_SECONDS
        while True:
            try:
                for kind, number, data in self._messages(f"/jobs/{job_id}/events", last):
                    if kind == "end":
                        return
                    last = number
                    yield json.loads(data)
                    until = time.monotonic() + AWAY_SECONDS
            except Away:
                if time.monotonic() > until:
                    raise
            time.sleep(EVERY_SECONDS)

    def _messages(self, path: str, last: str) -> Iterator[tuple[str, str, str]]:
        """Kind, id and data of the messages of a stream after the one of this id. Raises Away."""
        from httpx import TransportError

        url, kind = f"{self.url}/api/v1{path}", ""
        headers = self._bearer | ({"Last-Event-ID": last} if last else {})
        try:
            with self._client.stream("GET", url, headers=headers, timeout=BEAT_SECONDS) as answer:
                if answer.status_code != 200:
                    answer.read()
                    raise _error(answer)
                for line in answer.iter_lines():
                    name, _, value = line.partition(": ")
                    if name == "id":
                        last = value
                    elif name == "event":
                        kind = value
                    elif name == "data":
                        yield kind, last, value
        except TransportError as error:
            raise _away(self.url, error) from error

    @contextmanager
    def folder(self, release_id: int, path: str) -> Iterator[Path]:
        """As `Transport.folder`: downloaded, and removed after the block."""
        with tempfile.TemporaryDirectory(prefix="inf-release-") as place:
            packed, folder = Path(place) / "release.zip", Path(place) / "release"
            with packed.open("wb") as file:
                for chunk in self._download(f"/releases/{release_id}/archive"):
                    file.write(chunk)
            with zipfile.ZipFile(packed) as archive:
                archive.extractall(folder)
            packed.unlink()
            yield folder

    def _download(self, path: str) -> Iterator[bytes]:
        from httpx import TransportError

        url = f"{self.url}/api/v1{path}"
        try:
            with self._client.stream("GET", url, headers=self._bearer) as answer:
                if answer.status_code != 200:
                    answer.read()
                    raise _error(answer)
                yield from answer.iter_bytes()
        except TransportError as error:
            raise _away(self.url, error) from error

    def _send(self, method: str, path: str, **given: Any) -> Any:
        from httpx import TransportError

        headers = self._bearer | given.pop("headers", {})
        url = f"{self.url}/api/v1{path}"
        try:
            answer = self._client.request(method, url, headers=headers, **given)
        except TransportError as error:
            raise _away(self.url, error) from error
        if answer.status_code >= 400:
            raise _error(answer)
        return answer


def _error(answer: Any) -> InfError:
    """The error of a problem document, as the operation raised it."""
    try:
        found = answer.json()
        message, code = str(found["detail"]), str(found["code"])
    except (ValueError, KeyError, TypeError):
        kind = Away if answer.status_code in PROXY_STATUSES else InfError
        return kind(f"the server answered {answer.status_code}", code="server_failed")
    kind = ERRORS.get(answer.status_code, InfError)
    return kind(message, str(found.get("remedy") or ""), code=code)


def _away(url: str, error: Exception) -> Away:
    reason = str(error) or type(error).__name__
    return Away(f"{url} cannot be reached: {reason}", "is it running?", code="server_unreachable")


def _encoded(lines: Lines) -> Iterator[bytes]:
    for line in lines:
        yield json.dumps(dict(line), ensure_ascii=False, default=str).encode() + b"\n"


def open_here(url: str | None) -> InProcess:
    """The store of this address, or of the environment; created or migrated where it is a file.

    Raises Refused where this is the remote client.
    """
    if not is_here("db.store.settings"):
        raise Refused(
            "this is inf-studio-client, which opens no store",
            "use `connect(URL, token=…)`, or install inf-studio in its place",
            code="remote_client",
        )
    if url is not None:
        os.environ["INF_DATABASE_URL"] = url  # the processes of its jobs read it, too
    load("db.store.settings:owners_unless_decided")()
    here = InProcess()
    if load("db.home:database_url")().startswith("sqlite:"):
        request = load("app.operations.store:StoreUpgrade")()
        load("app.operations.store:upgrade")(here.actor, request)
    else:
        load("app.operations.acting:owner_of_store")(here.actor.name)
    return here
