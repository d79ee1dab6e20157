"""A server that speaks the Hub's protocol, for the real `huggingface_hub`: repositories, commits,
large files, revisions, tags, pull requests; and errors on demand.

`kill` is (pid, requests, when): that process is killed at its so-many-th request, "before" it is
worked on or "after" it. `faults` maps "METHOD word-in-path" to a list of answers, taken one per
request: a status, "cut" (the connection ends without an answer), or None (as usual).
"""

import base64
import copy
import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from hub_card_rules import card_errors

LARGE = (".parquet", ".safetensors", ".bin")
TOKENS = {"hf_writer": "write", "hf_reader": "read"}


@dataclass
class Repo:
    private: bool
    blobs: dict[str, dict[str, bytes]] = field(default_factory=dict)  # commit → files
    refs: dict[str, str] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    tags: set[str] = field(default_factory=set)

    def commit(self, files: dict[str, bytes], ref: str | None) -> str:
        told = json.dumps(sorted((k, hashlib.sha256(v).hexdigest()) for k, v in files.items()))
        oid = hashlib.sha1(f"{told}{len(self.blobs)}".encode()).hexdigest()
        self.blobs[oid] = files
        if ref:
            self.refs[ref] = oid
        return oid

    def find(self, revision: str) -> str | None:
        revision = unquote(revision)
        return self.refs.get(revision) or (revision if revision in self.blobs else None)


@dataclass
class Hub:
    url: str = ""
    repos: dict[str, Repo] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[Any]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    slow: dict[str, float] = field(default_factory=dict)  # method → seconds before its answer
    whoami: dict[str, Any] = field(default_factory=dict)  # instead of what it says of a user
    owners: set[str] = field(default_factory=lambda: {"ada"})  # where this user may create
    kill: tuple[int, int, str] | None = None
    watch: Callable[[], Any] = dict  # what "/_state" answers
    saved: dict[str, Repo] = field(default_factory=dict)  # what "/_kill" puts back

    def publish(self, name: str, folder: Path, kind: str = "datasets") -> None:
        """A public data set (or one of `models`) with the files of a folder."""
        found = (file for file in folder.rglob("*") if file.is_file())
        repo = Repo(private=False)
        repo.commit({str(file.relative_to(folder)): file.read_bytes() for file in found}, "main")
        self.repos[f"{kind}/{name}"] = repo

    def files(self, name: str, revision: str = "main") -> dict[str, bytes]:
        repo = self.repos[name]
        oid = repo.find(revision)
        assert oid is not None
        return repo.blobs[oid]


class Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        self._answer("GET")

    def do_HEAD(self) -> None:
        self._answer("HEAD")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def _answer(self, method: str) -> None:
        split = urlsplit(self.path)
        self.words, self.query = split.path, parse_qs(split.query)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.hub.seen.append(f"{method} {self.words}")
        for name, answers in self.hub.faults.items():
            wanted, word = name.split(" ", 1)
            if wanted == method and word in self.words and answers:
                fault = answers.pop(0)
                if fault == "cut":
                    self.close_connection = True
                    self.connection.close()
                    return
                if fault is not None:
                    return self._json({"error": "injected"}, fault)
        time.sleep(self.hub.slow.get(method, 0.0))
        if self._killed("before"):
            return
        self._route(method, body)

    def _killed(self, when: str) -> bool:
        """Count a request of the process that is to be killed; whether this was its last."""
        if self.hub.kill is None or self.words.startswith("/_"):
            return False
        pid, left, wanted = self.hub.kill
        if when != wanted:
            return False
        self.hub.kill = (pid, left - 1, wanted)
        if left > 1:
            return False
        self.hub.kill = None
        os.kill(pid, signal.SIGKILL)
        return True

    def _route(self, method: str, body: bytes) -> None:
        words = self.words
        role = TOKENS.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
        if words == "/_kill":
            pid, requests, when = json.loads(body)
            self.hub.repos = copy.deepcopy(self.hub.saved)
            self.hub.kill = (pid, requests, when)
            return self._json({})
        if words == "/_state":
            return self._json(self.hub.watch())
        if words == "/_kill_is_open":
            still, self.hub.kill = self.hub.kill is not None, None
            return self._json(still)
        if words == "/_faults":
            self.hub.faults = json.loads(body)
            return self._json({})
        if words == "/_whoami":
            self.hub.whoami = json.loads(body)
            return self._json({})
        if words == "/_moved_tag":
            for repo in self.hub.repos.values():
                repo.refs |= dict.fromkeys(repo.tags, repo.commit({"other": b""}, None))
            return self._json({})
        if words == "/api/whoami-v2":
            if role is None:
                return self._json({"error": "Invalid user token."}, 401)
            token = {"displayName": "t", "role": role}
            told = {"type": "user", "name": "ada", "orgs": [], "auth": {"accessToken": token}}
            return self._json(told | self.hub.whoami)
        if words == "/api/validate-yaml":
            card = json.loads(body)
            found = [{"message": each} for each in card_errors(card["content"], card["repoType"])]
            return self._json({"errors": found, "warnings": []}, 400 if found else 200)
        if words.startswith("/upload/"):
            self.hub.objects[words.removeprefix("/upload/")] = body
            return self._json({})
        if method == "POST" and role != "write":
            return self._json({"error": "forbidden"}, 403)
        if words == "/api/repos/create":
            return self._create(json.loads(body))
        for kind in ("datasets", "models"):
            if words.startswith(f"/api/{kind}/"):
                return self._api(kind, words.removeprefix(f"/api/{kind}/"), body)
        kind, rest = "models", words[1:]
        if rest.startswith("datasets/"):
            kind, rest = "datasets", rest.removeprefix("datasets/")
        if rest.endswith(".git/info/lfs/objects/batch"):
            return self._batch(json.loads(body))
        parts = rest.split("/")
        if parts[2:3] == ["resolve"]:
            owner, name, _, revision, *path = parts
            return self._file(f"{kind}/{owner}/{name}", revision, unquote("/".join(path)))
        self._json({"error": "not found"}, 404)

    def _create(self, told: dict[str, Any]) -> None:
        owner = told.get("organization") or "ada"
        if owner not in self.hub.owners:
            return self._json({"error": "You don't have the rights to create it"}, 403)
        full = f"{told.get('type', 'model')}s/{owner}/{told['name']}"
        if full in self.hub.repos:
            return self._json({"error": "You already created this repo"}, 409)
        repo = Repo(private=told.get("private", told.get("visibility") == "private"))
        self.hub.repos[full] = repo
        repo.commit({".gitattributes": b"*.parquet filter=lfs\n"}, "main")
        prefix = "datasets/" if full.startswith("datasets") else ""
        self._json({"url": f"{self.hub.url}/{prefix}{owner}/{told['name']}", "name": told["name"]})

    def _api(self, kind: str, rest: str, body: bytes) -> None:
        if "/" not in rest:
            return self._json({"error": "not found"}, 404, {"X-Error-Code": "RepoNotFound"})
        owner, name, *more = rest.split("/", 3)
        full = f"{kind}/{owner}/{name}"
        repo = self.hub.repos.get(full)
        if repo is None:
            return self._json(
                {"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"}
            )
        verb = more[0] if more else "revision"
        if verb == "refs":
            return self._refs(repo)
        revision = more[1].split("/")[0] if len(more) > 1 else "main"
        if verb == "branch":
            if unquote(revision) in repo.refs:
                return self._json({"error": "Reference already exists"}, 409)
            start = repo.find(json.loads(body or b"{}").get("startingPoint") or "main")
            if start is None:
                return self._json({"error": "Invalid starting point"}, 404)
            repo.refs[unquote(revision)] = start  # a copy of main, or of that commit
            return self._json({})
        oid = repo.find(revision)
        if oid is None:
            told = {"X-Error-Code": "RevisionNotFound"}
            return self._json({"error": "Invalid rev id"}, 404, told)
        files = repo.blobs[oid]
        if verb == "revision":
            siblings = [{"rfilename": path} for path in files]
            told = {"id": f"{owner}/{name}", "sha": oid, "private": repo.private}
            return self._json({**told, "siblings": siblings, "tags": [], "downloads": 0})
        if verb == "tag":
            tag = json.loads(body)["tag"]
            if tag in repo.refs:
                return self._json({"error": "Tag exists"}, 409)
            repo.refs[tag] = oid
            repo.tags.add(tag)
            return self._json({})
        if verb == "tree":
            below = unquote(more[1].partition("/")[2])
            return self._json(self._tree(repo, files, f"{below}/" if below else ""))
        if verb == "paths-info":
            wanted = parse_qs(body.decode()).get("paths") or json.loads(body)["paths"]
            return self._json([self._entry(repo, p, files[p]) for p in wanted if p in files])
        if verb == "preupload":
            told = [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if file["path"].endswith(LARGE) else "regular",
                    "shouldIgnore": False,
                }
                for file in json.loads(body)["files"]
            ]
            return self._json({"files": told})
        if verb == "commit":
            return self._commit(full, unquote(revision), oid, body)
        self._json({"error": f"no {verb}"}, 404)

    def _refs(self, repo: Repo) -> None:
        told: dict[str, list[dict[str, str]]] = {"branches": [], "converts": [], "tags": []}
        for name, oid in repo.refs.items():
            kind, ref = ("tags", "tags") if name in repo.tags else ("branches", "heads")
            told[kind].append({"name": name, "ref": f"refs/{ref}/{name}", "targetCommit": oid})
        self._json(told)

    def _tree(self, repo: Repo, files: dict[str, bytes], below: str) -> list[dict[str, Any]]:
        """What lies in a folder; all below it where the request says so."""
        inside = {path: data for path, data in files.items() if path.startswith(below)}
        if self.query.get("recursive", ["false"])[0].lower() in ("true", "1"):
            return [self._entry(repo, path, data) for path, data in inside.items()]
        rest = {path: path.removeprefix(below) for path in inside}
        folders = dict.fromkeys(below + name.split("/")[0] for name in rest.values() if "/" in name)
        return [
            *({"type": "directory", "path": path, "size": 0, "oid": "0" * 40} for path in folders),
            *(
                self._entry(repo, path, inside[path])
                for path, name in rest.items()
                if "/" not in name
            ),
        ]

    def _commit(self, full: str, ref: str, head: str, body: bytes) -> None:
        repo, place = self.hub.repos[full], full.removeprefix("models/")
        files = dict(repo.blobs[head])
        for line in map(json.loads, body.decode().splitlines()):
            value = line["value"]
            if line["key"] == "header" and value.get("parentCommit", head) != head:
                return self._json({"error": "A commit has happened since"}, 412)
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            if line["key"] == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
                repo.large.add(value["path"])
            if line["key"] == "deletedFile":
                del files[value["path"]]
        aside = "create_pr" in self.query
        oid = repo.commit(files, "refs/pr/1" if aside else ref)
        told: dict[str, Any] = {"commitOid": oid}
        told["commitUrl"] = f"{self.hub.url}/{place}/commit/{oid}"
        if aside:
            told["pullRequestUrl"] = f"{self.hub.url}/{place}/discussions/1"
        self._json(told)

    def _batch(self, told: dict[str, Any]) -> None:
        objects = []
        for one in told["objects"]:
            entry: dict[str, Any] = {"oid": one["oid"], "size": one["size"]}
            if one["oid"] not in self.hub.objects:
                entry["actions"] = {"upload": {"href": f"{self.hub.url}/upload/{one['oid']}"}}
            objects.append(entry)
        self._json({"transfer": "basic", "objects": objects})

    def _file(self, full: str, revision: str, path: str) -> None:
        repo = self.hub.repos.get(full)
        if repo is None:
            return self._json({"error": "no repo"}, 404, {"X-Error-Code": "RepoNotFound"})
        oid = repo.find(revision)
        if oid is None:
            return self._json({"error": "no rev"}, 404, {"X-Error-Code": "RevisionNotFound"})
        data = repo.blobs[oid].get(path)
        if data is None:
            return self._json({"error": "no file"}, 404, {"X-Error-Code": "EntryNotFound"})
        etag = f'"{hashlib.sha256(data).hexdigest()}"'
        self._bytes(data, 200, {"X-Repo-Commit": oid, "ETag": etag})

    def _entry(self, repo: Repo, path: str, data: bytes) -> dict[str, Any]:
        git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        entry: dict[str, Any] = {"type": "file", "path": path, "size": len(data), "oid": git}
        if path in repo.large:
            oid = hashlib.sha256(data).hexdigest()
            entry["lfs"] = {"oid": oid, "size": len(data), "pointerSize": 130}
        return entry

    def _json(self, told: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        headers = {"Content-Type": "application/json", **(headers or {})}
        self._bytes(json.dumps(told).encode(), status, headers)

    def _bytes(self, data: bytes, status: int, headers: dict[str, str]) -> None:
        if self._killed("after"):
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@contextmanager
def hub_server() -> Iterator[Hub]:
    """A running server; its address is `url`."""
    hub = Hub()
    handler = type("BoundHandler", (Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
