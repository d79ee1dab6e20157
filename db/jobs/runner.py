"""Running one claimed job in this process: `app.jobs.entry JOB_ID ATTEMPT` ends up here.

The entry passes its handlers by kind. A handler takes a `JobHandle` and returns the job's result as
JSON; it reports progress, checks `handle.stopping` between pieces of work, and stores results as
it goes, so that a requeued job continues from them.

Note: when the process that launched a foreground job dies, the job ends too (it watches the process
that `INF_LIFELINE` names). Detached jobs have no lifeline.
"""

import argparse
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TextIO, TypeVar

from sqlalchemy.orm import Session

from db.errors import InfError, Refused, StoreBehind
from db.extras import missing_extra
from db.home import full_disk
from db.jobs import jobs
from db.jobs.resources import Meter
from db.logs import formatter
from db.machine import is_dead, kill_this_process
from db.patience import PATIENCE_MINUTES, is_away, patience_of, patiently
from db.rows import Row
from db.store.schema import require_not_newer
from db.store.secrets import RedactedStream, load_secrets
from db.store.settings import owners_process
from db.store.store import Store, open_store

log = logging.getLogger("inf.job")
REPORT_SECONDS = 0.3
LAST_LINES = 12
LIFELINE_SECONDS = 0.2
_before: list[TextIO] = []  # a reference: a collected stream would close the file beneath it


T = TypeVar("T")


class Cancelled(InfError):
    """The job was requested to stop and did."""


class Lost(InfError):
    """A machine that the job needs is gone; a resumed job continues from what was stored."""


class ShutDown(Lost):
    """A signal ended the process, and no person had stopped the job: its machine shuts down."""


class JobHandle:
    """A handler's interface to its job.

    `works_elsewhere`: processes on other machines do the work and one of them reports progress;
    this one only keeps the heartbeat.
    """

    works_elsewhere = False

    def __init__(self, store: Store, job_id: int, attempt: int) -> None:
        self.store, self.id, self.attempt = store, job_id, attempt
        with store.read() as session:
            job = jobs.get_job(session, job_id)
            self.kind, self.config, self.started_by = job.kind, dict(job.config), job.started_by
            self.launcher, self.home, self.key = job.launcher, job.home, jobs.key_of(job)
            self.created_at = job.created_at
        self.meter = Meter()
        self._stop, self._is_signalled = threading.Event(), False
        self._lost = False
        self._last_report = 0.0
        self._progress: dict[str, Any] = {}
        self._over = threading.Event()
        self._recording = list[Callable[[Session], None]]()

    @property
    def stopping(self) -> bool:
        """Whether a stop was requested."""
        return self._stop.is_set()

    def check(self) -> None:
        """Raise Cancelled if a stop was requested."""
        if self.stopping:
            if self._lost:
                raise Refused(
                    "the job was given to another process, or its store was upgraded",
                    code="job_taken_over",
                )
            raise Cancelled(
                "stopped on request",
                "resume continues from here",
                code="job_stopped",
            )

    def stop(self, *, by_signal: bool = False) -> None:
        """Request the handler to stop (a signal, or Cancel on a page)."""
        self._is_signalled |= by_signal
        self._stop.set()

    def check_for_shutdown(self) -> None:
        """Raise ShutDown if a signal ends the process, or it was taken for dead while it was cut
        off, and no person stopped the job."""
        if not (self._is_signalled or self._lost):
            return
        with self.store.read() as session:
            job = jobs.get_job(session, self.id)
        goes_on = job.status in ("running", "lost", "queued") and not job.stop_requested
        if goes_on or job.attempt != self.attempt:
            raise ShutDown(
                "a signal ended the process, as when its machine shuts down"
                if self._is_signalled
                else "the job was taken for lost while its process was cut off",
                "resume continues from what is stored",
                code="job_process_ended",
            )

    def patiently(self, work: Callable[[], T]) -> T:
        """The result of the work, tried again while the store is away, as the config says."""
        return patiently(work, patience_of(self.config), stopped=lambda: self.stopping)

    def report(self, done: int, total: int | None = None, message: str | None = None) -> None:
        """Report progress; cheap to call often (written about three times a second)."""
        self._progress = {"done": done, "total": total}
        if message is not None:
            self._progress["message"] = message
        now = time.monotonic()
        if now - self._last_report >= REPORT_SECONDS or done == total:
            self._last_report = now
            self._beat()

    def metrics(self, step: int, values: dict[str, float]) -> None:
        """Store numbers of one step (loss curves)."""
        with self.store.write() as session:
            jobs.record_metrics(session, self.id, step, values)
            session.commit()

    def show(self, **parts: Any) -> None:
        """Show some of the work on the pages: texts, as JSON."""
        with self.store.write() as session:
            jobs.show_work(session, self.id, self.attempt, **parts)
            session.commit()

    def record(self, recording: Callable[[Session], None]) -> None:
        """Record what was done outside of the store in the transaction that stores the result."""
        self._recording.append(recording)

    def note_place(self) -> None:
        """Store which process runs the job, on which machine."""
        with self.store.write() as session:
            jobs.note_place(session, self.id, self.attempt)
            session.commit()

    def beat_until_over(self) -> None:
        """The heartbeat thread."""
        while not self._over.wait(jobs.HEARTBEAT_SECONDS):
            self._beat()

    def finish(self, ending: dict[str, Any]) -> None:
        """Store how the job ended, unless that is stored: a commit may be cut off from its
        answer."""
        with self.store.write() as session:
            job = jobs.get_job(session, self.id)
            if (job.attempt, job.status) == (self.attempt, ending["status"]):
                return
            jobs.finish_job(session, self.id, self.attempt, **ending)
            for recording in self._recording if ending["status"] == "done" else ():
                recording(session)
            session.commit()

    def over(self) -> None:
        """End the heartbeat."""
        self._over.set()

    def _beat(self) -> None:
        try:
            values = {} if self.works_elsewhere else self._progress | {"used": self.meter.read()}
            with self.store.write() as session:
                stop = jobs.beat(session, self.id, self.attempt, **values)
                session.commit()
        except (Refused, StoreBehind) as error:
            if not self._lost:
                log.error("%s", error)
            self._lost = stop = True
        except Exception as error:  # the next beat tries again
            if not is_away(error):
                log.exception("heartbeat failed")
            return
        if stop:
            self._stop.set()


Handler = Callable[[JobHandle], Row]


def main(handlers: Mapping[str, Handler], argv: list[str] | None = None) -> int:
    """Run the job named on the command line. Returns the exit status (0 done, 1 failed)."""
    parser = argparse.ArgumentParser(description="Run one claimed job (launched by `inf`).")
    parser.add_argument("job_id", type=int)
    parser.add_argument("attempt", type=int)
    arguments = parser.parse_args(argv)
    log_without_secrets()
    owners_process(True)  # what the job may touch was checked when it was launched
    _watch_lifeline()
    # its own patience is in the store, too; whoever launched it in the foreground ends it
    opened = partial(JobHandle, open_store(), arguments.job_id, arguments.attempt)
    handle = patiently(opened, 60 * PATIENCE_MINUTES)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: handle.stop(by_signal=True))
    if handle.launcher != jobs.LOCAL:
        handle.patiently(handle.note_place)
    threading.Thread(target=handle.beat_until_over, daemon=True).start()
    return run(handle, handlers[handle.kind])


def log_without_secrets() -> None:
    """Load the secrets file; remove secrets from everything this process prints."""
    load_secrets()
    _before.extend((sys.stdout, sys.stderr))
    sys.stdout = RedactedStream(sys.stdout.buffer)
    sys.stderr = RedactedStream(sys.stderr.buffer)
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")
    handler.setFormatter(formatter(text))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for storage in ("aiobotocore", "botocore"):  # where it found its credentials, in every log
        logging.getLogger(storage).setLevel(logging.WARNING)


def run_beside_heartbeat(handle: JobHandle, handler: Callable[[JobHandle], T]) -> T:
    """Call the handler when another process writes how the job ended."""
    beating = threading.Thread(target=handle.beat_until_over, daemon=True)
    beating.start()
    try:
        return handler(handle)
    finally:
        handle.over()
        beating.join()


def run(handle: JobHandle, handler: Handler) -> int:
    """Call the handler and write how it ended."""
    ending: dict[str, Any]
    try:
        handle.patiently(partial(require_not_newer, handle.store))
        ending = {"status": "done", "result": handler(handle).as_json()}
    except Cancelled as stopped:
        ending = {"status": "cancelled", "error": stopped}
    except Lost as error:
        log.error("%s", error)
        is_stopped = handle.stopping and not isinstance(error, ShutDown)
        ending = {"status": "cancelled" if is_stopped else "lost", "error": error}
    except InfError as error:
        log.error("%s", error)
        ending = {"status": "failed", "error": missing_extra(error) or error}
    except BaseException as error:
        lines = traceback.format_exc().strip().splitlines()
        log.error("%s", "\n".join(lines))
        crash = full_disk(error) or InfError("\n".join(lines[-LAST_LINES:]), code="unexpected")
        ending = {"status": "failed", "error": missing_extra(error) or crash}
        if isinstance(error, KeyboardInterrupt | SystemExit):
            ending["status"] = "cancelled"
    handle.over()
    try:
        handle.patiently(partial(handle.finish, ending))
    except (Refused, StoreBehind) as error:  # it is another process's, or will be
        log.error("%s", error)
        return 1
    return 0 if ending["status"] == "done" else 1


def _watch_lifeline() -> None:
    owner = os.environ.pop("INF_LIFELINE", None)
    if owner is None:
        return

    def wait_for_the_end() -> None:
        while not is_dead(owner):
            time.sleep(LIFELINE_SECONDS)
        kill_this_process()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
