"""What the server loads before the first page asks for it: what pages import, nothing heavy."""

import gc
import subprocess
import sys

import pytest

from app.cli.start import without_collection
from app.server.warm_up import page_modules

HEAVY = ("torch", "transformers", "matplotlib", "scipy", "sklearn", "umap")


@pytest.mark.long
def test_a_page_finds_its_modules_loaded_and_no_training_library_came_with_them() -> None:
    code = f"""
import sys, threading
from app.kit.menu import FILES
from app.server import warm_up
warm_up.DELAY_SECONDS = 0.0
warm_up.compress_figures = warm_up.count_newest_run = lambda: None
warm_up._load_after(threading.Event())
print([name for name in warm_up.page_modules() if name not in sys.modules])
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]


def test_pandas_comes_first_and_the_pages_own_modules_after_it() -> None:
    found = page_modules()
    assert found[0] == "pandas"
    assert {"app.groups.workbench", "app.agreement.validators", "app.curate.run_live"} <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.long
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


@pytest.mark.long
def test_what_the_server_does_not_need_to_answer_is_not_loaded_before() -> None:
    code = """
import sys
import app.cli.demo, app.cli.serve, app.server.web
late = ("alembic", "numpy", "pyarrow", "pandas", "tokenizers")
print([name for name in late if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["[]"], done.stdout


@pytest.mark.long
def test_streamlit_reads_no_packages_metadata_at_its_start() -> None:
    code = """
import importlib.metadata
from streamlit.components.v2.component_manager import BidiComponentManager
read = []
def distributions(**_):
    read.append(1)
    return []
importlib.metadata.distributions = distributions
BidiComponentManager().discover_and_register_components(start_file_watching=False)
before = len(read)
import app.server.web  # pydantic looks for its plugins once, when the first model is made
read.clear()
BidiComponentManager().discover_and_register_components(start_file_watching=False)
print(before, len(read))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["1", "0"], "the search there is, and not in ours"


def test_modules_are_loaded_without_the_garbage_collector_and_it_goes_on_after() -> None:
    with without_collection():
        assert not gc.isenabled()
        with without_collection():
            pass
        assert not gc.isenabled(), "the outer one goes on"
    assert gc.isenabled()
    gc.unfreeze()
