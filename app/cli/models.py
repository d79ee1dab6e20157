"""`inf models`: list, show, push, export, serve and search with models."""

import subprocess
import sys

import click

from app.access.identity import Actor, owner
from app.cli.data.releases import push_command
from app.cli.kit.doors import Noun
from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, lines, me, reporting
from app.cli.kit.table import one_line, sheet
from app.operations import models as operations
from app.operations import try_it
from app.operations.models import ModelServe
from db.errors import Refused
from db.machine import url_of
from db.modules import run_module

MAX_TEXT = 80
models = Noun("models")
models.listed(
    operations.list_some,
    click.option("--dataset", help="Only models trained on releases of this dataset."),
    columns=(
        *("id", "name", ("base", "base_model"), "objective", ("release", "release_id")),
        ("created", lambda row: row["created_at"][:16]),
        ("made", lambda row: "OFFLINE" if row["offline"] else ""),
    ),
    empty="no models yet",
)


def _shown(result: Result) -> str:
    facts = ((name, value) for name, value in result.items() if name not in ("settings", "summary"))
    model, release = result["path"], result["release_id"] or "RELEASE"
    return f"{lines(*facts)}\nnext: inf evaluations create --model {model} --release {release}"


models.door(
    operations.show,
    text=_shown,
    about="Show one trained model; --json includes its settings and what its training reported.",
)
push_command(models, "a trained model to the Hub", click.argument("checkpoint_id", type=int))


def _human(result: Result) -> str:
    rows = [
        {key: row[key] for key in ("network", "dimensions")}
        | {"largest difference": f"{row['difference']:.1e}", **row["metrics"]}
        for row in result["rows"]
    ]
    servers = "; ".join(result["server_problems"]) or "layout of text-embeddings-inference and vLLM"
    return f"{lines(('written to', result['path']), ('servers', servers))}\n{sheet(rows)}"


models.door(
    operations.export,
    text=_human,
    actor=lambda given: _actor(given["model"], given["release"]),
)


@models.command()
@request_options(ModelServe)
@reporting(lambda result: f"stopped serving {result['model']} on {result['url']}")
def serve(request: ModelServe) -> Result:
    """Serve a checkpoint (number or folder) or a model by name as OpenAI's /v1/embeddings.

    A request may have `instruction`: the checkpoint's template joins it with the query. Set
    INF_EMBEDDINGS_TOKEN to require a token; beyond this machine it is needed.
    """
    model, host, port = request.model, request.host, request.port
    name = operations.folder_of(_actor(model), model)
    url = url_of(host, port)
    click.echo(f"{model} on {url}/v1/embeddings; stop with Ctrl-C", err=True)
    module = run_module("trainer.serve.embeddings_server")
    process = subprocess.Popen([sys.executable, *module, name, host, str(port)])
    try:
        code = process.wait()
    except KeyboardInterrupt:  # of this process alone, or of a terminal's whole group
        process.terminate()
        code = min(0, process.wait())
    if code > 0:
        raise Refused(
            f"the server ended with status {code}",
            "see the line before this one",
            code="server_ended",
        )
    return {"model": model, "url": url}


models.door(
    operations.index,
    text=(
        ("passages", lambda found: f"{found['passages']:,} of {found['dimensions']} numbers"),
        (
            "embedded",
            lambda found: f"{found['seconds']:.1f} s" if found["made"] else "stored before",
        ),
    ),
    title="embedding passages of {dataset}",
    unit=" passages",
)


def _ranked(result: Result) -> str:
    parts = []
    for found in result["data"]:
        rows = [
            {"place": place, "passage": hit["passage_id"], "score": hit["score"]}
            | {"text": one_line(hit["text"], MAX_TEXT)}
            for place, hit in enumerate(found["hits"], 1)
        ]
        about = f"{found['model']}: {found['passages']:,} passages"
        note = f"; {found['note']}" if found["note"] else ""
        parts.append(f"{about}{note}\n{sheet(rows, empty='nothing found')}")
    return "\n\n".join(parts)


models.door(
    try_it.search,
    text=_ranked,
    about="Search with one model or several, in a dataset's passages or in an index of your own."
    "\n\nAn index is taken where a model reads passages as the one that made it: its base, or a "
    "checkpoint with trained_side=query. INF_INDEX_KEY: the key of a Qdrant or Elasticsearch "
    "server.",
)


def _actor(model: str, release: str | None = None) -> Actor:
    """Who runs the command; a model in a folder is served and exported without a store."""
    return command_actor() if model.isdecimal() or release else owner(me())
