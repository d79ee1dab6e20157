"""The OpenAPI 3.1 document of the routes, and the page to try them, which loads nothing of others.

The document is made of the same table as the routes (`app.api.routes`), with the schemas of the
requests and rows that commands and pages have.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.responses import Response

from app.access.permissions import NEEDS
from app.api.problems import MEDIA_TYPE, TITLES
from app.api.routes import Route, routes
from app.api.streams import ARCHIVE, BYTES, EVENTS, LINES, OF_JOB, Upload
from db.rows import as_text

FOLDER = Path(__file__).parent
REFERENCE = "#/components/schemas/{model}"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
ABOUT = """\
A program acts for a person by a token (`inf tokens create`, or the page *Tokens*), sent as
`Authorization: Bearer inf_…`; cookies are not read. Lists have `data`, `next` and `total`; `next`
is the `cursor` of the part after. A POST with an `Idempotency-Key` is done once, a repeated one
within a day is answered again. A PATCH needs `If-Match` with the `ETag` of what was read. Errors
are `application/problem+json` with `code` and `remedy`."""


@cache
def document() -> dict[str, Any]:
    """The document."""
    found, schemas = _schemas()
    paths: dict[str, dict[str, Any]] = {}
    for route in routes():
        paths.setdefault(_plain(route.path), {})[route.method.lower()] = _operation(route, found)
    paths.setdefault("/datasets", {})["post"] = _upload()
    paths[EVENTS] = {"get": _stream("events follow", "jobs", "Events of what the token sees.", ())}
    paths[_plain(OF_JOB)] = {
        "get": _stream("jobs follow", "jobs", "States of a job until it is over.", ("id",))
    }
    paths[_plain(ARCHIVE)] = {"get": _archive()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "InF Studio", "version": version("inf-studio"), "description": ABOUT},
        "servers": [{"url": "/api/v1"}],
        "security": [{"token": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": dict(sorted(schemas.items())) | {"Problem": PROBLEM},
        },
    }


REPORT = {"application/json": {"schema": {"type": "object", "additionalProperties": True}}}
PROBLEM = {
    "type": "object",
    "title": "Problem",
    "required": ["type", "title", "status", "detail", "code", "remedy"],
    "properties": {
        **{name: {"type": "string"} for name in ("type", "title", "detail", "code", "remedy")},
        "status": {"type": "integer"},
    },
}


def _schemas() -> tuple[Mapping[Any, dict[str, Any]], dict[str, Any]]:
    """The schema of each model by (model, mode), and all of them by name."""
    wanted: list[tuple[type[BaseModel], Any]] = []
    for route in routes():
        wanted += [(route.request, "validation"), (route.answers, "serialization")]
    found, definitions = models_json_schema(
        list(dict.fromkeys(wanted)), by_alias=True, ref_template=REFERENCE
    )
    return found, definitions.get("$defs", {})


def _operation(route: Route, found: Mapping[Any, dict[str, Any]]) -> dict[str, Any]:
    doc = (route.request.__doc__ or "").strip().splitlines()[0]
    answer = {"application/json": {"schema": found[route.answers, "serialization"]}}
    operation: dict[str, Any] = {
        "operationId": route.name.replace(" ", "_"),
        "tags": [route.noun],
        "summary": f"{route.name}: {doc}",
        "x-permission": route.permission,
        "x-rights": list(NEEDS[route.permission].rights),
        "parameters": _parameters(route),
        "responses": {str(route.status): {"description": "Done", "content": answer}} | _problems(),
    }
    if route.has_body and set(route.request.model_fields) - set(route.in_path):
        operation["requestBody"] = {
            "required": any(
                field.is_required()
                for name, field in route.request.model_fields.items()
                if name not in route.in_path
            ),
            "content": {"application/json": {"schema": _body(route)}},
        }
    return operation


def _body(route: Route) -> dict[str, Any]:
    """The schema of the body: the request without what the path names."""
    schema = route.request.model_json_schema(ref_template=REFERENCE)
    schema.pop("$defs", None)
    schema["properties"] = {
        name: each for name, each in schema["properties"].items() if name not in route.in_path
    }
    schema["required"] = [one for one in schema.get("required", ()) if one not in route.in_path]
    return schema


def _parameters(route: Route) -> list[dict[str, Any]]:
    schema = route.request.model_json_schema(ref_template=REFERENCE)
    properties = schema.get("properties", {})
    found = [
        {"name": name, "in": "path", "required": True, "schema": _of_path(properties[name])}
        for name in route.in_path
    ]
    if not route.has_body:
        found += [
            {
                "name": name,
                "in": "query",
                "required": name in schema.get("required", ()),
                "description": each.get("description", ""),
                "schema": each,
            }
            for name, each in properties.items()
            if name not in route.in_path
        ]
    if route.method == "POST":
        found.append(_header("Idempotency-Key", required=False))
    if route.method == "PATCH":
        found.append(_header("If-Match", required=True))
    return found


def _of_path(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field that a path names: it is there, though other doors may leave it out."""
    given = {name: each for name, each in schema.items() if name not in ("anyOf", "default")}
    kind: dict[str, Any]
    (kind,) = (one for one in schema.get("anyOf", [{}]) if one != {"type": "null"})
    return kind | given


def _header(name: str, *, required: bool) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": required, "schema": {"type": "string"}}


def _problems() -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        str(status): {"description": TITLES[status], "content": content}
        for status in (401, 403, 404, 409, 412, 413, 415, 422, 428, 429)
    }


def _upload() -> dict[str, Any]:
    schema = Upload.model_json_schema()
    return {
        "operationId": "datasets_import",
        "tags": ["datasets"],
        "summary": "datasets import: pairs and passages as a stream of JSON lines",
        "description": Upload.__doc__,
        "x-permission": "import",
        "x-rights": ["curate"],
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": name in schema["required"],
                "description": each["description"],
                "schema": each,
            }
            for name, each in schema["properties"].items()
        ]
        + [_header("Idempotency-Key", required=False)],
        "requestBody": {
            "required": True,
            "content": {LINES[0]: {"schema": {"type": "string", "format": "binary"}}},
        },
        "responses": {"201": {"description": "The report of the import", "content": REPORT}}
        | _problems(),
    }


def _archive() -> dict[str, Any]:
    content = {BYTES: {"schema": {"type": "string", "format": "binary"}}}
    found = _stream("releases download", "export", "A zip of its folder.", ("id",))
    found["parameters"] = found["parameters"][:1]
    return found | {
        "responses": {"200": {"description": "A zip", "content": content}} | _problems()
    }


def _stream(name: str, permission: str, about: str, path: tuple[str, ...]) -> dict[str, Any]:
    return {
        "operationId": name.replace(" ", "_"),
        "tags": [name.partition(" ")[0]],
        "summary": f"{name}: {about}",
        "x-permission": permission,
        "x-rights": list(NEEDS[permission].rights),
        "parameters": [
            *(
                {"name": one, "in": "path", "required": True, "schema": {"type": "integer"}}
                for one in path
            ),
            _header("Last-Event-ID", required=False),
        ],
        "responses": {
            "200": {"description": "Server-sent events", "content": {"text/event-stream": {}}}
        }
        | _problems(),
    }


def _plain(path: str) -> str:
    """A path as OpenAPI writes it: without the types of its parameters."""
    head, *rest = path.split("{")
    plain = [f"{one.partition('}')[0].partition(':')[0]}}}{one.partition('}')[2]}" for one in rest]
    return "{".join([head, *plain])


def json_file() -> Response:
    """The document as a file."""
    return Response(as_text(document()), media_type="application/json", headers=OPEN)


OPEN = {"Cache-Control": "no-cache", "Content-Security-Policy": POLICY}


def _file(name: str, kind: str) -> Callable[[], Response]:
    def answer() -> Response:
        return Response((FOLDER / name).read_bytes(), media_type=kind, headers=OPEN)

    return answer


# Open to everybody: they are the same for all, and hold nothing of a store.
FILES: Mapping[str, Callable[[], Response]] = {
    "/openapi.json": json_file,
    "/docs": _file("docs.html", "text/html"),
    "/docs/try.js": _file("docs.js", "text/javascript"),
    "/docs/style.css": _file("docs.css", "text/css"),
}
