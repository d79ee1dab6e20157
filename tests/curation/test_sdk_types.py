"""The SDK's types by name: the same names, loaded one by one."""

import json
import subprocess
import sys

from curation.providers.sdk_types import names_handed_on

EVERY_NAME = """
import importlib, json, sys
from pathlib import Path
from curation.providers.sdk_types import PACKAGE, load_types_by_name, names_handed_on
load_types_by_name()
load_types_by_name()
import openai
at_first = sum(name.startswith(PACKAGE) for name in sys.modules)
root = Path(openai.__file__).parent / "types"
strangers, wrong, names = [], [], 0
for file in sorted(root.rglob("__init__.py")):
    handed_on = names_handed_on(file.read_text())
    package = ".".join((PACKAGE, *file.parent.relative_to(root).parts))
    if handed_on is None:
        strangers.append(package)
        continue
    module = importlib.import_module(package)
    for name, (place, there) in handed_on.items():
        names += 1
        value = getattr(module, name)
        if value is not getattr(importlib.import_module(place, package), there):
            wrong.append(f"{package}.{name}")
from openai.types.chat import completion_create_params
from openai.types import *
print(json.dumps({
    "at_first": at_first, "at_last": sum(name.startswith(PACKAGE) for name in sys.modules),
    "strangers": strangers, "wrong": wrong, "names": names,
    "module": completion_create_params.__name__, "starred": Batch.__name__,
    "missing": hasattr(openai.types, "NoSuchType"), "listed": "Batch" in dir(openai.types),
}))
"""


def test_every_name_of_the_sdk_is_there_but_hardly_a_module_is_loaded_before_it_is_asked_for():
    ended = subprocess.run(
        [sys.executable, "-c", EVERY_NAME], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["strangers"] == [] and found["wrong"] == [] and found["names"] > 500
    assert found["at_first"] * 4 < found["at_last"]
    assert found["module"] == "openai.types.chat.completion_create_params"
    assert found["starred"] == "Batch"
    assert not found["missing"] and found["listed"]


def test_names_are_read_in_every_form_in_which_a_package_hands_them_on():
    source = (
        "# generated\n\nfrom __future__ import annotations\n\n"
        "from .a import One as One\n"
        "from .b.c import (\n    Two as Two,  \n    three as Three,\n)\n"
        "from .d import Four"
    )
    assert names_handed_on(source) == {
        "One": (".a", "One"),
        "Two": (".b.c", "Two"),
        "Three": (".b.c", "three"),
        "Four": (".d", "Four"),
    }


def test_a_package_that_does_more_than_hand_on_is_not_taken_for_one():
    assert names_handed_on("from .a import One\nOne.model_rebuild()\n") is None
    assert names_handed_on("import os\n") is None
    assert names_handed_on("from .a import *\n") is None
    assert names_handed_on("from other import One\n") is None
