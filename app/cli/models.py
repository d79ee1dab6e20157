"""`inf models`: list, show, push, export, serve and search with models."""

import subprocess
import sys
from pathlib import Path

import click

from app.access.identity import Actor, owner
from app.cli.data.releases import push_command
from app.cli.kit.doors import Noun
from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, lines, me, reporting
from app.cli.kit.table import table
from app.operations import models as operations
from app.operations import try_it
from app.operations.models import ModelIndexed
from app.operations.try_it import Search
from db.errors import Refused
from db.modules import run_module
from db.rows import Listed

models = Noun("models")
models.listed(
    operations.list_some,
    click.option("--dataset", help="Only models trained on releases of this dataset."),
    columns=(
        *("id", "name", ("base", "base_model"), "objective", ("release", "release_id")),
        ("created", lambda row: row["created_at"][:16]),
        ("", lambda row: "OFFLINE" if row["offline"] else ""),
    ),
    empty="no models yet: inf trainings create --release RELEASE --out FOLDER",
    then="inf models show {id}",
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
        (
            f"{row['network']} {row['dimensions'] or ''}".strip(),
            ", ".join(
                [
                    f"largest difference {row['difference']:.1e}",
                    *(f"{name} {value:.4f}" for name, value in row["metrics"].items() if value),
                ]
            ),
        )
        for row in result["rows"]
    ]
    servers = "; ".join(result["server_problems"]) or "layout of text-embeddings-inference and vLLM"
    return lines(("written to", result["path"]), ("servers", servers), *rows)


@models.command()
@click.argument("model", metavar="CHECKPOINT")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new folder.")
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(["onnx", "openvino"]),
    help="Repeatable; default: both.",
)
@click.option("--int8", is_flag=True, help="Also in 8 bits, with its loss; needs --release.")
@click.option(
    "--release", help="Release by number or folder, whose groups the loss is measured on."
)
@reporting(_human)
def export(
    model: str, out: Path, formats: tuple[str, ...], int8: bool, release: str | None
) -> Result:
    """Write a checkpoint (number or folder) for serving: merged weights, ONNX and OpenVINO.

    Each network is compared with the model's own vectors. The card gets what 8 bits and each
    trained Matryoshka dimension cost, on held-out groups of the release where it has some.
    """
    report = operations.export(
        _actor(model, release),
        model,
        out,
        formats=formats,
        int8=int8,
        release=release,
        say=lambda words: click.echo(words, err=True),
    )
    return {"path": str(out), **report}


@models.command()
@click.argument("model", metavar="CHECKPOINT")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8600, show_default=True, type=click.IntRange(1, 65535))
@reporting(lambda result: f"stopped serving {result['model']} on {result['url']}")
def serve(model: str, host: str, port: int) -> Result:
    """Serve a checkpoint (number or folder) or a model by name as OpenAI's /v1/embeddings.

    A request may have `instruction`: the checkpoint's template joins it with the query. Set
    INF_EMBEDDINGS_TOKEN to require a token; beyond this machine it is needed.
    """
    name = operations.folder_of(_actor(model), model)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
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


@models.command()
@click.argument("model", metavar="MODEL")
@click.option("--dataset", required=True, help="Whose passages are embedded.")
@reporting(
    lambda found: lines(
        ("passages", f"{found['passages']:,} of {found['dimensions']} numbers"),
        ("embedded", f"{found['seconds']:.1f} s" if found["made"] else "stored before"),
    )
)
def index(model: str, dataset: str) -> ModelIndexed:
    """Store the vectors of a dataset's passages by a model (checkpoint or name) for Try it.

    A checkpoint whose index stays reads those of its base model, and the other way round.
    """
    return operations.index(
        command_actor(),
        model,
        dataset,
        progress=lambda done, total: click.echo(f"{done:,} of {total:,} passages", err=True),
    )


def _ranked(result: Result) -> str:
    parts = []
    for found in result["data"]:
        head = ("place", "passage", "score", "text")
        rows = [
            (place, hit["passage_id"], f"{hit['score']:.4f}", " ".join(hit["text"].split())[:80])
            for place, hit in enumerate(found["hits"], 1)
        ]
        about = f"{found['model']}: {found['passages']:,} passages"
        note = f"; {found['note']}" if found["note"] else ""
        parts.append(f"{about}{note}\n{table(head, rows, empty='nothing found')}")
    return "\n\n".join(parts)


@models.command()
@request_options(Search)
@click.argument("query", metavar="QUERY")
@reporting(_ranked)
def search(request: Search) -> Listed[try_it.Searched]:
    """Search with one model or several, in a dataset's passages or in an index of your own.

    An index is taken where a model reads passages as the one that made it: its base, or a
    checkpoint with trained_side=query. INF_INDEX_KEY: the key of a Qdrant or Elasticsearch server.
    """
    actor = command_actor()
    models = tuple(operations.folder_of(actor, model) for model in request.models)
    found = try_it.search(actor, request.model_copy(update={"models": models}))
    return Listed[try_it.Searched].all(list(found))


def _actor(model: str, release: str | None = None) -> Actor:
    """Who runs the command; a model in a folder is served and exported without a store."""
    return command_actor() if model.isdecimal() or release else owner(me())
