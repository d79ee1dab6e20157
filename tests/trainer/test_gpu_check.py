"""`inf gpu-check`: the report, and the whole of it where little more than PyTorch is installed."""

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from trainer.check import encoding, gpu_check, sizes, steps
from trainer.check.report import Clock, Part, Report, Skip
from trainer.check.stand_ins import stand_in

ROOT = Path(__file__).parents[2]
LACKING = ("streamlit", "sqlalchemy", "click", "datasets", "scikit-learn", "alembic", "pandas")
LACKING_MODULES = {"streamlit", "sqlalchemy", "click", "datasets", "sklearn", "alembic", "pandas"}
LACKING_MODULES |= {"pyarrow", "bm25s", "Stemmer", "openai", "psycopg", "fsspec_", "inf_studio"}


def bare_environment(folder: Path) -> Path:
    """Every installed package but those that a GPU machine lacks, as links; and our code."""
    site = Path(str(distribution("torch").locate_file("")))
    folder.mkdir()
    lacking = {name.replace("-", "_") for name in (*LACKING, "pyarrow", "openai", "inf_studio")}
    for entry in site.iterdir():
        name = entry.name.split("-")[0]
        if entry.suffix == ".pth" or name in lacking | LACKING_MODULES:
            continue
        (folder / entry.name).symlink_to(entry)
    for package in ("trainer", "analysis", "db"):
        (folder / package).symlink_to(ROOT / package)
    (folder / "curation").mkdir()
    (folder / "curation" / "demo").symlink_to(ROOT / "curation" / "demo")
    return folder


def run_bare(folder: Path, out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    site = bare_environment(folder)
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "INF_"))
    }
    environment |= {"PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    code = (
        "import runpy, sys\n"
        "sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n"
        "for name in ('streamlit', 'sqlalchemy', 'click', 'datasets', 'sklearn', 'pyarrow'):\n"
        "    try: __import__(name)\n"
        "    except ImportError: continue\n"
        "    raise SystemExit(name + ' is there')\n"
        "runpy.run_module('trainer.check.gpu_check', run_name='__main__', alter_sys=True)\n"
    )
    return subprocess.run(
        [sys.executable, "-S", "-P", "-c", code, "--small", "--out", str(out), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )


def parts_of(file: Path) -> dict[str, dict[str, Any]]:
    return {part["name"]: part for part in json.loads(file.read_text())["parts"]}


@pytest.mark.long
def test_it_runs_where_the_app_the_store_and_the_data_packages_are_missing(
    tmp_path: Path,
) -> None:
    out = tmp_path / "check.json"
    ran = run_bare(tmp_path / "site", out, "--minutes", "8")
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    report = json.loads(out.read_text())
    assert (report["finished"] and "CPU" in report["device"]) or torch.cuda.is_available()
    parts = parts_of(out)
    assert tuple(parts) == gpu_check.PARTS
    assert {part["status"] for part in parts.values()} == {"ok"}
    assert any("a stand-in serves" in note for note in parts["environment"]["notes"])
    assert {row["trained"] for row in parts["traps"]["rows"]} == {"float32"}
    assert {row["extra_tokens"] for row in parts["traps"]["rows"]} == {0}
    steps = {(row["model"], row["way"], row["rows"]) for row in parts["steps"]["rows"]}
    for model in ("Qwen2 tiny", "Llama tiny"):
        assert {(model, way, 4) for way in ("stock", "flat", "packed")} <= steps
    assert "skipped: GPU: PyTorch sees none" in parts["environment"]["notes"][0]
    markdown = out.with_suffix(".md").read_text()
    assert "## traps: ok" in markdown and "every part was reached" in markdown


def test_ways_are_compared_with_as_many_rows_as_all_of_them_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An emulated card that a plain list of texts of more than two rows does not fit."""
    real = steps._step

    def small_card(model: Any, way: str, rows: int) -> Any:
        if way == "stock" and rows > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(model, way, rows)

    monkeypatch.setattr(steps, "_step", small_card)
    part = Part("steps")
    few = replace(sizes.ON_A_CPU, rows=(4,), encoders={}, decoders={"Qwen2 tiny": ("qwen2", {})})
    steps.measure_steps(part, few, torch.device("cpu"), Clock(600))
    assert {(row["way"], row["rows"]) for row in part.rows} == {
        *((way, 2) for way in ("stock", "flat", "packed")),
        *((f"{slow} / packed", 2) for slow in ("flat", "stock")),
    }
    assert any("4 rows: not every way fits; all do with 2" in note for note in part.notes)


def test_steps_and_encoding_are_timed_after_warm_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that gets faster with every run, by a clock of the test: the least time of too few
    warm ones would be a slow one."""
    now, runs, cold = [0.0], [0], (100.0, 50.0, 3.0, 2.0)

    def run(_: Any = None) -> int:
        now[0] += cold[runs[0]] if runs[0] < len(cold) else 1.0
        runs[0] += 1
        return 10

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(steps, "_step", lambda *_: run)
    model = SimpleNamespace(device=torch.device("cpu"), zero_grad=lambda **_: None)
    assert steps._measure_way(model, "flat", 1)["seconds"] == 1.0
    runs[0] = len(cold) - 1
    assert encoding._pace(run, ["a"] * 64) == 64.0


def test_make_gpu_check_runs_the_command() -> None:
    shown = subprocess.run(
        ["make", "--no-print-directory", "-n", "gpu-check", "FLAGS=--small"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[-1].endswith("bin/inf gpu-check --small")


def read(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(report.file.read_text())
    return found


def test_the_report_is_whole_after_every_part_and_says_if_it_ended(tmp_path: Path) -> None:
    report = Report(tmp_path / "sub" / "a.json", {"device": "CPU"})
    assert read(report)["parts"] == [] and not read(report)["finished"]

    def lacking(part: Part) -> None:
        raise Skip("no GPU | here")

    def broken(part: Part) -> None:
        part.add(way="flat", seconds=1.5)
        raise ValueError("odd")

    report.run("one", lambda part: part.add(way="flat", seconds=None))
    assert [part["name"] for part in read(report)["parts"]] == ["one"]
    report.run("two", lacking)
    report.run("three", broken)
    report.run("four", lambda part: part.require(False, "packed differs"))
    states = [(part["status"], part["reason"]) for part in read(report)["parts"]]
    assert states == [
        ("ok", ""),
        ("skipped", "no GPU | here"),
        ("failed", "ValueError: odd"),
        ("failed", "packed differs"),
    ]
    assert read(report)["parts"][2]["rows"] == [{"way": "flat", "seconds": 1.5}]
    assert report.failed and not read(report)["finished"]
    assert "interrupted, or still running" in report.file.with_suffix(".md").read_text()


def test_an_interruption_leaves_the_parts_before_it_and_the_rows_of_its_own(
    tmp_path: Path,
) -> None:
    report = Report(tmp_path / "a.json", {})
    report.run("one", lambda part: None)

    def interrupted(part: Part) -> None:
        part.add(rows=8)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        report.run("two", interrupted)
    parts = parts_of(report.file)
    assert parts["one"]["status"] == "ok"
    assert parts["two"]["rows"] == [{"rows": 8}] and "interrupted" in parts["two"]["reason"]
    assert [path.suffix for path in sorted(tmp_path.iterdir())] == [".json", ".md"]


def test_a_write_that_fails_leaves_the_report_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Report(tmp_path / "a.json", {})
    report.run("one", lambda part: None)
    before = report.file.read_text()

    def full(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        report.run("two", lambda part: None)
    assert report.file.read_text() == before


def test_a_clock_counts_from_the_start_and_goes_below_zero() -> None:
    now = [100.0]
    clock = Clock(60, now=lambda: now[0])
    assert clock.left() == 60
    now[0] = 170.0
    assert clock.left() == -10


def test_parts_beyond_the_minutes_are_skipped_with_the_reason(tmp_path: Path) -> None:
    given = gpu_check.parse(["--minutes", "0.0001", "--out", str(tmp_path / "a.json")])
    assert gpu_check.check(given, []) == 0
    parts = parts_of(tmp_path / "a.json")
    assert set(parts) == set(gpu_check.PARTS)
    assert parts["steps"]["reason"] == "the 0.0001 minutes are used up"


@pytest.mark.parametrize(
    "wrong", [["--minutes", "0"], ["--minutes", "nan"], ["--model", "/nowhere"], ["--part", "x"]]
)
def test_wrong_options_are_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        gpu_check.parse(wrong)
    assert refused.value.code == 2 and wrong[0] in capsys.readouterr().err


def test_an_installed_package_is_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stand_in(tmp_path) == [] and list(tmp_path.iterdir()) == []
    monkeypatch.setattr("trainer.check.stand_ins.find_spec", lambda name: None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert stand_in(tmp_path) == ["sklearn", "datasets"]
    assert sys.path[-1] == str(tmp_path)
    shutil.rmtree(tmp_path)


def test_a_models_wrong_dtype_or_template_fails_the_part() -> None:
    part = Part("traps")
    part.require(True, "never")
    part.require(False, "x trains in bfloat16")
    part.require(False, "a chat template")
    assert (part.status, part.reason) == ("failed", "x trains in bfloat16; a chat template")


def test_the_command_passes_its_options_on_and_returns_the_status(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from click.testing import CliRunner

    from app.cli.gpu_check import gpu_check as command

    ran: list[list[str]] = []

    def run(words: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        ran.append(words)
        return subprocess.CompletedProcess(words, 1)

    monkeypatch.setattr("app.cli.gpu_check.subprocess.run", run)
    options = ["--minutes", "2", "--model", str(tmp_path), "--part", "traps", "--small"]
    assert CliRunner().invoke(command, options).exit_code == 1
    given = gpu_check.parse(ran[0][ran[0].index("trainer.check.gpu_check") + 1 :])
    assert (given.minutes, given.model, given.part, given.small) == (
        2,
        [str(tmp_path)],
        ["traps"],
        True,
    )
