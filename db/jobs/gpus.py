"""Facts and load of this machine's GPUs, as reported by NVIDIA's driver."""

import logging
import subprocess
from shutil import which

log = logging.getLogger("inf.job")
QUERY_TIMEOUT_SECONDS = 20.0


def query_gpus(field: str, gpu: str | None = None) -> list[int]:
    """The value of a field of `nvidia-smi --query-gpu` for every GPU, or for one by its id.

    Integers without their unit (`memory.total` in MiB, `utilization.gpu` in percent); a GPU that
    does not report the field is omitted. Empty without a driver or when it does not answer.
    """
    program = which("nvidia-smi")
    if program is None:
        return []
    command = [program, f"--query-gpu={field}", "--format=csv,noheader,nounits"]
    if gpu is not None:
        command.append(f"--id={gpu}")
    try:
        output = subprocess.run(
            command, capture_output=True, text=True, timeout=QUERY_TIMEOUT_SECONDS, check=True
        ).stdout
    except (subprocess.SubprocessError, OSError) as error:  # a driver without a card
        log.info("nvidia-smi does not report %s: %s", field, error)
        return []
    return [int(line) for line in output.splitlines() if line.strip().isdecimal()]
