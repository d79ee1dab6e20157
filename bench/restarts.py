"""One run of several workers, whose workers are killed and whose servers go away.

    .venv/bin/python bench/restarts.py [--pairs 1200] [--workers 4] [--kills 20] [--restarts 3]
        [--away 120] [--latency 0.5] [--concurrency 16] [--seed 1]

Workers are jobs of a detached supervisor, as `inf runs create --workers N --detach` queues them;
nobody resumes anything. The supervisor was started in another environment, with another server and
key, to which no call may go. Kills (SIGKILL of a worker by chance), restarts of PostgreSQL (ended
at once, as by a power cut) and of the model server come at moments by chance, in calls; each
restart lasts `--away` seconds. Afterwards the same run in peace, whose answers are asked anew, and
every text, verdict, judgment and call of both are compared. The last line is JSON.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT / "tests"), str(ROOT)]  # not this folder: it has a curation.py, too

from curation_runs import run_curation, texts_of  # noqa: E402
from live_server import free_port  # noqa: E402
from postgres_cluster import Cluster  # noqa: E402
from sqlalchemy import func, select  # noqa: E402

from app.jobs.supervisors import try_supervisor_lock  # noqa: E402
from bench.curation import CALLS_PER_PAIR, counts, prepare, server  # noqa: E402
from db.modules import run_module  # noqa: E402
from db.run.runs import get_run  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import Store, open_store  # noqa: E402
from db.tables import Call, Dataset, Job  # noqa: E402

INF = [sys.executable, *run_module("app.cli.main")]


def stored(store: Store) -> int:
    """How many answers are in the store."""
    with store.read() as session:
        return session.scalar(select(func.count()).select_from(Call)) or 0


def supervise(store: Store, wrong_server: str) -> "subprocess.Popen[bytes]":
    """Start a supervisor whose environment is not that of the launcher."""
    wrong = {"OPENAI_BASE_URL": wrong_server, "OPENAI_API_KEY": "sk-of-another-shell"}
    child = subprocess.Popen([*INF, "jobs", "work"], env=os.environ | wrong)
    while (lock := try_supervisor_lock(store)) is not None:
        os.close(lock)
        time.sleep(0.5)
    return child


def wait(wrong_server: str) -> None:
    """A moment; ends the measurement if a call went to the supervisor's own server."""
    if counts(wrong_server)["answered"]:
        sys.exit("a worker works with the server of its supervisor, not of its launcher")
    time.sleep(0.25)


def kill_one(store: Store, chance: random.Random) -> bool:
    """Kill a running worker by chance; whether there was one."""
    with store.read() as session:
        query = select(Job.pid).where(Job.status == "running", Job.pid.is_not(None))
        pids = list(session.scalars(query.order_by(Job.id)))
    if not pids:
        return False
    try:
        os.kill(chance.choice(pids), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=1200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--away", type=float, default=120.0)
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    owners_process(True)
    chance, port = random.Random(wanted.seed), free_port()
    kinds = ["kill"] * wanted.kills + ["database", "model server"] * wanted.restarts
    chance.shuffle(kinds)
    calls = wanted.pairs * CALLS_PER_PAIR
    moments = sorted(chance.sample(range(calls // 50, calls * 9 // 10), len(kinds)))
    with (
        tempfile.TemporaryDirectory(prefix="inf-restarts-") as folder,
        ExitStack() as answering,
        server() as wrong_server,
        ExitStack() as ending,
        Cluster() as cluster,
    ):
        os.environ |= {
            "INF_HOME": folder,
            "INF_DATABASE_URL": cluster.create(),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "OPENAI_API_KEY": "sk-of-the-bench",
        }
        given = {"latency": wanted.latency, "port": port}
        answering.enter_context(server(**given))
        store = open_store()
        run_id = prepare(store.url, wanted.concurrency, wanted.pairs)
        ending.callback(supervise(store, wrong_server).kill)
        joining = ["runs", "join", str(run_id), "--workers", str(wanted.workers), "--detach"]
        subprocess.run([*INF, *joining], check=True)
        began, done = time.monotonic(), []
        for moment, kind in zip(moments, kinds, strict=True):
            while stored(store) < moment:
                wait(wrong_server)
            if kind == "kill":
                while not kill_one(store, chance):
                    wait(wrong_server)
            elif kind == "database":
                cluster.stop()
                time.sleep(wanted.away)
                cluster.start()
            else:
                answering.close()
                time.sleep(wanted.away)
                answering.enter_context(server(**given))
            done.append(kind)
            sys.stderr.write(f"{time.monotonic() - began:7.1f} s: {kind} after {moment} calls\n")
        while True:
            wait(wrong_server)
            with store.read() as session:
                run = get_run(session, run_id)
                found = list(session.scalars(select(Job).order_by(Job.id)))
            status = {job.status for job in found}
            if run.status != "running" and status <= {"done", "failed", "lost", "cancelled"}:
                break
        seconds = time.monotonic() - began
        for job in found:
            if job.status != "done":
                sys.stderr.write(f"job {job.id} is {job.status}: {job.error}\n")
        with store.write() as session:  # the same in peace, asked anew
            session.execute(Call.__table__.update().values(key=Call.key + "-old"))
            session.commit()
        with server() as quick:
            os.environ["OPENAI_BASE_URL"] = quick
            with store.read() as session:
                dataset = session.get_one(Dataset, run.dataset_id).name
            calm = run_curation(
                store,
                dataset=dataset,
                provider="openai",
                settings=["model=small"],
                concurrency=wanted.concurrency,
            )
        report = {
            "status": run.status,
            "jobs": sorted(status),
            "seconds": round(seconds),
            "kills": done.count("kill"),
            "restarts": {kind: done.count(kind) for kind in ("database", "model server")},
            "calls": calls,
            "equal": texts_of(store, run_id) == texts_of(store, calm["run_id"]),
        }
        store.close()
        sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
