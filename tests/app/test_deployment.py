"""Dockerfile, compose.yaml and the systemd unit: linted, and held to rules."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose, PyOptions
from conftest import require

from db.store.environment import VARIABLES

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists():
        pytest.skip("hadolint is not installed")
    done = subprocess.run([program, "Dockerfile"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout


def test_the_image_runs_without_rights_as_one_process_group_with_a_volume_and_a_check() -> None:
    final = DOCKERFILE.split("\nFROM ")[-1]
    lines = final.splitlines()
    assert "USER 10001" in lines and "VOLUME /data" in lines
    assert lines.index("USER 10001") > max(
        number for number, line in enumerate(lines) if line.startswith(("RUN", "COPY"))
    )
    assert 'ENTRYPOINT ["tini", "-g", "--", "inf"]' in lines
    assert ":8501/health" in final and "HEALTHCHECK" in final
    assert not re.search(r"(PASSWORD|SECRET|TOKEN|_KEY)=\S", DOCKERFILE)
    version = re.findall(r"FROM python:(\S+?)-slim", DOCKERFILE)
    assert set(version) == {"3.11"}  # the one that the tests run on


def test_compose_has_app_worker_and_postgresql_and_no_secret_of_its_own() -> None:
    services = COMPOSE["services"]
    assert {"app", "worker", "db"} <= set(services)
    for name, service in services.items():
        if name == "db":
            continue
        assert service["environment"]["INF_DATABASE_URL"].startswith("postgresql://")
        assert service["cap_drop"] == ["ALL"] and "privileged" not in service
    text = (ROOT / "compose.yaml").read_text()
    for line in re.findall(r"(?:PASSWORD): .*", text):
        assert "${" in line and ":?" in line, line
    for name in ("app", "worker"):
        waits = services[name]["depends_on"]
        assert waits["upgrade"]["condition"] == "service_completed_successfully"
    assert services["app"]["ports"] == ["127.0.0.1:8501:8501"]
    assert set(COMPOSE["volumes"]) == {"studio", "database"}


def test_every_command_of_the_deployment_is_one_that_inf_has() -> None:
    from click.testing import CliRunner

    from app.cli.main import inf

    words = [service["command"] for service in COMPOSE["services"].values() if "command" in service]
    for given in words:
        names = [word for word in given if not word.startswith("-")][:2]
        path = [names[0]] + ([names[1]] if given[:2] == ["jobs", "work"] else [])
        shown = CliRunner().invoke(inf, [*path, "--help"])
        assert shown.exit_code == 0
        for option in (word for word in given if word.startswith("--")):
            assert option in shown.output


def test_the_systemd_unit_is_complete_and_names_known_variables() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(ROOT / "deploy" / "inf-studio.service")
    service = unit["Service"]
    assert service["User"] == "inf-studio" and service["KillMode"] == "control-group"
    assert service["OOMPolicy"] == "continue"
    assert service["ExecStart"].split()[:2] == ["/opt/inf-studio/bin/inf", "serve"]
    known = {one.name for listed in VARIABLES.values() for one in listed}
    text = (ROOT / "deploy" / "inf-studio.service").read_text()
    assert set(re.findall(r"INF_[A-Z_]+", text)) <= known
    assert "/var/cache/inf-studio" in unit_value("NUMBA_CACHE_DIR")
    assert "/var/cache/inf-studio" in unit_value("HF_HOME")
    assert service["CacheDirectory"] == service["StateDirectory"] == "inf-studio"


def unit_value(name: str) -> str:
    """What the unit sets a variable to."""
    text = (ROOT / "deploy" / "inf-studio.service").read_text()
    (value,) = re.findall(rf"^Environment={name}=(\S+)$", text, re.MULTILINE)
    return str(value)


def test_systemd_finds_nothing_in_the_unit() -> None:
    """But that its program is not installed here."""
    if shutil.which("systemd-analyze") is None:
        require("systemd", "no systemd-analyze (Debian's package systemd)")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(ROOT / "deploy" / "inf-studio.service")],
        capture_output=True,
        text=True,
    )
    complaints = [line for line in done.stderr.splitlines() if "is not executable" not in line]
    assert [line for line in complaints if "inf-studio" in line] == []


def parsed(compose: str) -> PyCompose:
    """The file by compose_spec, a parser of the Compose specification: names, types and enumerated
    values of every field. Not that of Docker, whose program is not here: images are not pulled, and
    variables (`${NAME:?}`) are not resolved. Raises ValueError.
    """
    options = PyOptions()
    options.apply_merge = True
    return options.from_yaml(compose)


def test_compose_is_accepted_by_a_parser_of_its_specification() -> None:
    text = (ROOT / "compose.yaml").read_text()
    assert set(parsed(text).service_names()) == set(COMPOSE["services"])


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ("interval: 5s", "interval: soon"),
        ("healthcheck:", "healthchek:"),
        ("retries: 12", "retries: [1]"),
        ("condition: service_completed_successfully", "condition: service_done"),
        ("127.0.0.1:8501:8501", "host:port:x"),
    ],
)
def test_the_parser_refuses_what_a_list_of_names_let_through(written: str, wrong: str) -> None:
    text = (ROOT / "compose.yaml").read_text()
    assert written in text
    with pytest.raises(ValueError):
        parsed(text.replace(written, wrong, 1))


def test_compose_names_only_what_it_itself_and_the_dockerfile_have() -> None:
    for name, service in COMPOSE["services"].items():
        assert set(service.get("depends_on", {})) <= set(COMPOSE["services"]), name
        for mount in service.get("volumes", []):
            assert mount.split(":")[0] in COMPOSE["volumes"], name
        build = service.get("build", ".")
        arguments = build.get("args", {}) if isinstance(build, dict) else {}
        assert all(f"ARG {one}" in DOCKERFILE for one in arguments), name
