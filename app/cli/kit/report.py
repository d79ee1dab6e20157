"""Shared by all commands: `--json`, `--detach`, errors, the progress bar, the report.

A command returns its result, a row or a dictionary (printed unrounded by `--json`), and has a
function that formats it as a short report. Exit status: 0 done, 1 failed, 2 wrong arguments, 3
paused at its budget.
"""

import functools
import getpass
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from app.access.identity import Actor
from app.cli.kit.formerly import NOW
from app.cli.kit.options import wrong_arguments
from app.cli.kit.progress import progress_bar
from app.cli.kit.table import Column, and_more, cell, cell_of, head_of
from app.jobs import launching
from app.jobs.ray_cluster import checked_address
from app.operations.acting import Launch, in_foreground, owner_of_store, queue
from app.text.next_steps import SAID, next_step
from app.text.remedies import in_commands
from db.errors import BadInput, InfError, Paused
from db.extras import missing_extra
from db.jobs.jobs import LOCAL
from db.rows import Listed, Row, as_text
from db.tables import Job

Result = dict[str, Any]
WITHOUT_ESTIMATE = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"


class Failed(click.ClickException):
    """An InfError of a command: exit status 1, or 3 if the work is paused."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        # click declares the exit status for the class; `main` reads it from the instance
        self.exit_code = exit_code  # type: ignore[misc]


@contextmanager
def errors_translated() -> Iterator[None]:
    """Raise our errors, and a missing extra, in the words of commands; `--json` has the parts of
    the error that is the cause."""
    try:
        yield
    except (InfError, ImportError) as error:
        known = missing_extra(error) or error
        if not isinstance(known, InfError):
            raise
        is_wrong = isinstance(known, BadInput) and known.code == "request_invalid"
        code = 3 if isinstance(known, Paused) else 2 if is_wrong else 1
        raise Failed(in_commands(str(known)), code) from known


def reporting(
    human: Callable[[Any], str], *, former: Mapping[str, str] | None = None
) -> Callable[..., Any]:
    """Decorate a command: add `--json`, print its result, translate our errors.

    human: what a person reads, of the row that its parameter is annotated as, else of the JSON.
    A result with `"paused": true` exits with 3. former: keys of a row that an earlier version had,
    and what they are now, as far as the result has them.
    """

    def decorate(
        function: Callable[..., Result | Row | Listed[Any]],
    ) -> Callable[..., None]:
        @click.option("--json", "as_json", is_flag=True, help="Print one JSON object only.")
        @functools.wraps(function)
        def wrapper(*args: Any, as_json: bool, **kwargs: Any) -> None:
            with errors_translated():
                found = function(*args, **kwargs)
            result = found if isinstance(found, dict) else found.as_json()
            known = ((old, new) for old, new in (former or {}).items() if new in result)
            result = {old: result[new] for old, new in known} | result
            if as_json:
                click.echo(as_text(result))
            else:
                is_queued = set(result) == {"job_id"}
                shown = "" if is_queued else human(_as_read(human, result)) + and_more(result)
                click.echo(shown or _detached(result))
                if shown and not SAID.search(shown):
                    # beside the report, which may be a file's contents (`inf studies people`)
                    context = click.get_current_context()
                    name = context.meta.get(NOW, context.command_path)
                    if then := next_step(name, result, context.params):
                        click.echo(then, err=True)
            if result.get("paused"):
                click.get_current_context().exit(3)

        return wrapper

    return decorate


def _as_read(human: Callable[[Any], str], result: Result) -> Any:
    """What the report is made of: the row that it reads, of this command or of a job's result."""
    row = next(iter(inspect.signature(human).parameters.values())).annotation
    if not (isinstance(row, type) and issubclass(row, Row)):
        return result
    return row.model_validate({key: result[key] for key in row.model_fields if key in result})


def me() -> str:
    """Who runs the command, for the audit log: the operating system account."""
    return f"cli:{getpass.getuser()}"


def command_actor() -> Actor:
    """Whoever runs the command: the store's owner, with every right. Raises as that."""
    return owner_of_store(me())


def launcher_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--launcher` and `--address`, which set INF_RAY_ADDRESS."""

    @click.option(
        "--launcher",
        type=click.Choice(["local", "ray"]),
        help="Where the job runs: this machine, or a Ray cluster (also INF_RAY_ADDRESS).",
    )
    @click.option("--address", metavar="URL", help="The cluster's dashboard, http://HEAD:8265.")
    @functools.wraps(command)
    def wrapper(*args: Any, launcher: str | None, address: str | None, **given: Any) -> Any:
        if address is not None and launcher != "ray":
            raise click.UsageError("--address requires --launcher ray")
        if launcher == "local":
            os.environ.pop("INF_RAY_ADDRESS", None)
        elif address is not None:
            with wrong_arguments():
                os.environ["INF_RAY_ADDRESS"] = checked_address(address)
        elif launcher == "ray" and not os.environ.get("INF_RAY_ADDRESS"):
            raise click.UsageError("--launcher ray requires --address URL or INF_RAY_ADDRESS")
        click.get_current_context().meta["inf.launcher"] = launcher
        return command(*args, **given)

    return wrapper


class Launching:
    """How the job of a command starts: here with a progress bar, or where its options say."""

    def __init__(self, *, is_detached: bool) -> None:
        self.is_detached = is_detached

    def __call__(self, title: str, after: int | None = None) -> Launch[Result]:
        """The launch of the job under this title; it returns its result with its `job_id`."""

        how: dict[str, Any] = {"detach": self.is_detached, "title": title, "after": after}
        return lambda actor, kind, request: work(actor, kind, request.config(), **how)

    @property
    def is_here(self) -> bool:
        """Whether this process may do the work itself."""
        return not self.is_detached and launching.chosen_launcher() == LOCAL


def launched(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--detach` and the launcher options; the command takes `launch`."""

    @click.option("--detach", is_flag=True, help="Queue the work as a job and print its id.")
    @launcher_options
    @functools.wraps(command)
    def wrapper(*args: Any, detach: bool, **given: Any) -> Any:
        return command(*args, launch=Launching(is_detached=detach), **given)

    return wrapper


def work(
    actor: Actor,
    kind: str,
    config: dict[str, Any],
    *,
    detach: bool,
    title: str,
    after: int | None = None,
) -> Result:
    """Run a job in the foreground with a progress bar, or detached; its id is greater than `after`.

    Returns the job's result with its `job_id`.
    """
    if detach:
        return {"job_id": queue(actor, kind, config, after=after)}
    # curation's own estimate is in its message: tqdm's is from the rate since the start
    bar_format = WITHOUT_ESTIMATE if kind == "curate" else None
    with progress_bar(title, "", bar_format) as show:

        def watch(job: Job) -> None:
            show(job.done, job.total, job.message)

        job = in_foreground(actor, kind, config, watch=watch, after=after)
    return {**(job.result or {}), "job_id": job.id}


def lines(*pairs: tuple[str, object]) -> str:
    """Aligned `name  value` lines."""
    width = max(len(name) for name, _ in pairs)
    shown = [(name, each if isinstance(each, str) else cell(each)) for name, each in pairs]
    return "\n".join(f"{name:<{width}}  {value}" for name, value in shown)


def facts(*columns: Column) -> Callable[[Result], str]:
    """The report of a row: a line for each of these, as `app.cli.kit.table` has them."""
    return lambda row: lines(*((head_of(each), cell_of(each, row)) for each in columns))


def counts(values: Mapping[str, int]) -> str:
    """`a 3 · b 1`, largest first; "none" where there are none."""
    ordered = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))
    return " · ".join(f"{name} {number:,}" for name, number in ordered) or "none"


def _detached(result: Result) -> str:
    return f"job {result['job_id']} is queued; follow it with `inf jobs show {result['job_id']}`"
