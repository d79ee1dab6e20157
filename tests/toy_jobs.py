"""A package of jobs for the tests of launching: `python -m toy_jobs JOB ATTEMPT`."""

import logging
import os
import subprocess
import sys
import time

from pydantic import ConfigDict

from app.jobs.kinds import KINDS
from db.errors import BadInput
from db.jobs.runner import JobHandle, main
from db.rows import Row

log = logging.getLogger("inf.toy")


class Counted(Row):
    """Whatever a toy found."""

    model_config = ConfigDict(extra="allow")


def toy(handle: JobHandle) -> Counted:
    """Count to `steps`, a tenth of a second each; then do what `ending` says."""
    ending = handle.config.get("ending", "done")
    steps = int(handle.config.get("steps", 2))
    if ending == "parent":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        handle.report(0, steps, message=f"child {child.pid}")
    for step in range(steps):
        if ending != "deaf":
            handle.check()
        if ending != "parent":
            handle.report(step, steps, message=f"step {step}")
        handle.metrics(step, {"loss": 1.0 / (step + 1)})
        time.sleep(0.1)
    if ending == "bad":
        raise BadInput("line 3 of toys.jsonl has no `name`", "add one", code="no_name")
    if ending == "crash":
        raise ZeroDivisionError("toys divided by none")
    if ending == "leaks":
        secret = os.environ["TOY_API_KEY"]
        handle.report(steps, steps, message=f"asking with {secret}")
        log.warning("asked with %s", secret)
        sys.stderr.write(f"answer to {secret}\n")
        raise ZeroDivisionError(f"refused {secret}")
    if ending == "tells":
        names = ("OPENAI_BASE_URL", "OPENAI_API_KEY")
        url, other = (os.environ.get(name) for name in names)
        return Counted(url=url, key_length=len(os.environ["LAB_API_KEY"]), other=other)
    if ending == "talks":
        log.warning("counted to %d", steps)
        sys.stdout.write("and that is all\n")
    if ending == "killed":
        os.kill(os.getpid(), 9)
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES")
    return Counted(counted=steps, pid=os.getpid(), gpu=gpu)


if __name__ == "__main__":
    sys.exit(main(dict.fromkeys(KINDS, toy)))
