"""What NVIDIA's driver is asked, of a program that answers as it does."""

from pathlib import Path

import pytest

from app.jobs.supervisor import slots, visible_gpus
from db.errors import BadInput
from db.jobs.gpus import query_gpus
from trainer.launch.forecast import available_bytes

DRIVER = """#!/bin/sh
case "$*" in
  "--query-gpu=index --format=csv,noheader,nounits") printf '0\\n1\\n' ;;
  "--query-gpu=memory.total --format=csv,noheader,nounits") printf '81559\\n143771\\n' ;;
  "--query-gpu=utilization.gpu --format=csv,noheader,nounits --id=GPU-1") echo 37 ;;
  "--query-gpu=utilization.gpu --format=csv,noheader,nounits --id=GPU-2") echo '[N/A]' ;;
  *) echo 'No devices were found'; exit 6 ;;
esac
"""


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only program in the path."""
    program = tmp_path / "nvidia-smi"
    program.write_text(DRIVER)
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return program


def test_the_driver_says_how_busy_a_gpu_is(driver: Path) -> None:
    assert query_gpus("utilization.gpu", "GPU-1") == [37]
    assert query_gpus("utilization.gpu", "GPU-2") == []  # a part of a GPU does not say
    assert query_gpus("utilization.gpu", "GPU-3") == []  # it ends with an error


def test_a_slot_for_each_gpu_and_the_memory_of_the_largest(driver: Path) -> None:
    assert visible_gpus() == ["0", "1"]
    assert [one.name for one in slots() if not one.joins] == ["files", "curation", "gpu0", "gpu1"]
    available_bytes.cache_clear()
    assert available_bytes() == 143771 * 2**20
    available_bytes.cache_clear()


def test_a_machine_takes_the_queues_that_it_names(
    driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_QUEUES", "models, files")
    assert [one.name for one in slots()] == ["files", "gpu0", "gpu1"]
    monkeypatch.setenv("INF_QUEUES", "none")
    assert slots() == []
    monkeypatch.setenv("INF_QUEUES", "trainings")
    with pytest.raises(BadInput) as refused:
        slots()
    assert refused.value.code == "queue_unknown" and "models" in (refused.value.remedy or "")


def test_without_a_driver_there_is_no_gpu(driver: Path) -> None:
    driver.unlink()
    assert query_gpus("index") == []
    assert [one.name for one in slots() if not one.joins] == ["files", "curation", "models"]
