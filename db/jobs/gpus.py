"""What the GPUs of this machine are and do, as NVIDIA's driver says it."""

import logging
import subprocess
from shutil import which

log = logging.getLogger("inf.job")
ASK_SECONDS = 20.0


def ask_gpus(field: str, gpu: str | None = None) -> list[int]:
    """The value of a field of `nvidia-smi --query-gpu` for every GPU, or for one by its id.

    Whole numbers without their unit (`memory.total` in MiB, `utilization.gpu` in percent); a GPU
    that does not say one is left out. Empty where there is no driver, or it does not answer.
    """
    program = which("nvidia-smi")
    if program is None:
        return []
    words = [program, f"--query-gpu={field}", "--format=csv,noheader,nounits"]
    if gpu is not None:
        words.append(f"--id={gpu}")
    try:
        said = subprocess.run(
            words, capture_output=True, text=True, timeout=ASK_SECONDS, check=True
        ).stdout
    except (subprocess.SubprocessError, OSError) as error:  # a driver without a card
        log.info("nvidia-smi does not say %s: %s", field, error)
        return []
    return [int(line) for line in said.splitlines() if line.strip().isdecimal()]
