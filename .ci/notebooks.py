"""Run the notebooks of `examples/`, each in a folder and a store of its own, and keep no output.

    PYTHON .ci/notebooks.py [NOTEBOOK … | --one]    with nbclient and ipykernel in its environment

--one takes the next one each day, for a gate whose time is limited.

Ends with an error where a cell raises, with the cell and its traceback.
"""

import os
import shutil
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CELL_SECONDS = 400


def main(names: list[str]) -> int:
    """Run these notebooks, or all; returns the exit status."""
    paths = sorted(EXAMPLES.glob("*.ipynb"))
    if names == ["--one"]:
        paths = [paths[date.today().toordinal() % len(paths)]]
    elif names:
        paths = [Path(name).resolve() for name in names]
    failed = 0
    for path in paths:
        began = time.monotonic()
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        with tempfile.TemporaryDirectory(prefix="inf-notebook-") as folder:
            for data in EXAMPLES.glob("*.jsonl"):
                shutil.copy(data, folder)
            os.environ |= {"INF_HOME": f"{folder}/.inf"}
            os.environ.pop("INF_DATABASE_URL", None)
            # over files, not ports: two kernels that start at once may choose the same ones
            kernel = AsyncKernelManager(transport="ipc", ip=f"{folder}/kernel")
            resources = {"metadata": {"path": folder}}
            client = NotebookClient(notebook, kernel, timeout=CELL_SECONDS, resources=resources)
            try:
                client.execute()
            except CellExecutionError as error:
                print(f"{path.name}: {error}", file=sys.stderr)
                failed += 1
        print(f"{path.name}: {time.monotonic() - began:.0f} s")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
