"""What the server loads before the first page asks for it: what pages import, nothing heavy."""

import subprocess
import sys

from app.server.warm_up import page_modules

HEAVY = ("torch", "transformers", "matplotlib", "scipy", "sklearn", "umap")


def test_a_page_finds_its_modules_loaded_and_no_training_library_came_with_them() -> None:
    code = f"""
import sys, threading
from app.kit.menu import FILES
from app.server import warm_up
warm_up.DELAY_SECONDS = 0.0
warm_up.compress_figures = lambda: None
warm_up._load_after(threading.Event())
print([name for name in warm_up.page_modules() if name not in sys.modules])
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]


def test_pandas_comes_first_and_the_pages_own_modules_after_it() -> None:
    found = page_modules()
    assert found[0] == "pandas"
    assert {"app.groups.workbench", "app.agreement.validators", "app.curate.batches"} <= set(found)
    assert len(found) == len(set(found))


def test_a_server_that_ends_loads_nothing_more() -> None:
    code = """
import sys, threading
from app.server import warm_up
ended = threading.Event()
ended.set()
warm_up._load_after(ended)
print("pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["False"]
