"""The script that runs the Dockerfile's steps reads them as Docker would."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("steps", ROOT / ".ci" / "dockerfile_steps.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_continued_lines_are_one_step_and_comments_none(script: ModuleType) -> None:
    text = 'FROM x\n# a comment\nRUN a \\\n    && b\nCMD ["c"]\n'
    assert script.steps_of(text) == [("FROM", "x"), ("RUN", "a  && b"), ("CMD", '["c"]')]


def test_every_folder_of_the_image_is_moved_and_nothing_else(script: ModuleType) -> None:
    moved = script.moved(
        "/opt/a/bin/pip -o /dist . $(ls /dist/*.whl) ./data/x /usr/opt", Path("/f")
    )
    assert moved == "/f/opt/a/bin/pip -o /f/dist . $(ls /f/dist/*.whl) ./data/x /usr/opt"


def test_every_step_of_our_dockerfile_is_known(script: ModuleType) -> None:
    steps = script.steps_of((ROOT / "Dockerfile").read_text())
    known = {"FROM", "WORKDIR", "COPY", "RUN", "ARG", "ENV", "USER", "VOLUME", "EXPOSE"}
    assert {name for name, _ in steps} == known | {"HEALTHCHECK", "ENTRYPOINT", "CMD"}
    left_out = [rest for name, rest in steps if name == "RUN" and "apt-get" in rest]
    assert len(left_out) == 1, "only what needs Debian's packages is left out"
