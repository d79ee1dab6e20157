"""`inf models`: export trained models for serving, serve one, store the vectors of passages."""

import subprocess
import sys
import time
from pathlib import Path

import click

from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, lines, ready_store, reporting
from app.cli.kit.table import table
from app.operations import try_it as operations
from app.operations.rows import Listed
from app.operations.try_it import Search
from db.corpus.datasets import get_dataset
from db.errors import Refused
from db.modules import run_module
from db.outcome.checkpoints import get_checkpoint


@click.group()
def models() -> None:
    """Export trained models for serving, serve one, store the vectors of passages."""


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
    from trainer.data.release_files import find_release, read_release
    from trainer.export.exporting import FORMATS, export_for_serving

    model = _folder_of(model)
    groups, measured_on = [], ""
    if release is not None:
        found = read_release(find_release(ready_store(), release))
        kept = [group for group in found.groups if not group.dropped]
        groups = [group for group in kept if group.set_aside]
        measured_on = f"{found.name}, held out"
        if not groups:
            groups, measured_on = kept, f"{found.name} (not held out: the model may know them)"
    report = export_for_serving(
        model,
        out.expanduser().absolute(),
        formats=formats or FORMATS,
        int8=int8,
        groups=groups,
        measured_on=measured_on,
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
    name, url = _folder_of(model), f"http://{f'[{host}]' if ':' in host else host}:{port}"
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
            code="server_ended_status",
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
def index(model: str, dataset: str) -> Result:
    """Store the vectors of a dataset's passages by a model (checkpoint or name) for Try it.

    A checkpoint whose index stays reads those of its base model, and the other way round.
    """
    from trainer.model.backbone import load_model
    from trainer.serve.passage_vectors import vectors_by

    store, began, made = ready_store(), time.monotonic(), 0
    with store.read() as session:
        dataset_id = get_dataset(session, dataset).id

    def progress(done: int, total: int) -> None:
        nonlocal made
        made = done
        click.echo(f"{done:,} of {total:,} passages", err=True)

    found = vectors_by(store, dataset_id, load_model(_folder_of(model)), progress=progress)
    passages, dimensions = found.vectors.shape
    seconds = time.monotonic() - began
    return {"passages": passages, "dimensions": dimensions, "made": made, "seconds": seconds}


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
@click.argument("query", metavar="QUERY")
@request_options(Search, without=("query",))
@reporting(_ranked)
def search(request: Search) -> Result:
    """Search with one model or several, in a dataset's passages or in an index of your own.

    An index is taken where a model reads passages as the one that made it: its base, or a
    checkpoint with trained_side=query. INF_INDEX_KEY: the key of a Qdrant or Elasticsearch server.
    """
    ready_store()
    wanted = request.model_copy(update={"models": tuple(map(_folder_of, request.models))})
    found = operations.search(command_actor(), wanted)
    return Listed[operations.Searched].all(list(found)).as_json()


def _folder_of(model: str) -> str:
    """The folder of a checkpoint's number; any other name as it is."""
    if model.isdecimal() and not Path(model).is_dir():
        with ready_store().read() as session:
            return get_checkpoint(session, int(model)).path
    return model
