"""The steps of docs/running as written: nginx before two servers, the systemd unit's steps, and the
turning over of logs."""

import grp
import gzip
import os
import pwd
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from conftest import require
from curation_runs import pairs_file
from live_server import Server, free_port, serving
from pgbouncer import write_certificate
from remote_journey import journey
from trainer_jobs import TINY
from waiting import until

from analysis.embed.embedding import encode
from app.access.identity import COOKIE, owner
from app.jobs import supervisors
from app.jobs.launching import launch
from app.jobs.supervisors import ensure_supervisor
from app.operations import analyses, models, people
from app.operations.doors import tokens
from app.operations.doors.tokens import TokenCreate
from db.home import home
from db.people.accounts import add_account, get_account
from db.store import revision, schema
from db.store.settings import logs
from db.store.store import Store, open_store
from inf_studio.client import Studio
from inf_studio.transport import OverHttp

ROOT = Path(__file__).resolve().parents[2]
INSTALL = (ROOT / "docs" / "running" / "install.md").read_text()
OPERATIONS = (ROOT / "docs" / "running" / "operations.md").read_text()
UNIT = (ROOT / "deploy" / "inf-studio.service").read_text()
PASSWORD = "correct horse battery"
COMMAND = owner("root")


def block_after(heading: str, language: str) -> str:
    """The first fenced block of a language below a heading of docs/running/install.md."""
    found = re.search(rf"```{language}\n(.*?)```", INSTALL.partition(heading)[2], re.DOTALL)
    assert found is not None, heading
    return found[1]


@contextmanager
def nginx(
    folder: Path, backends: list[int], *, in_turns: bool = False
) -> Iterator[tuple[str, Path, Path]]:
    """nginx with the documented block, on a port of its own: its address, authority and log.

    in_turns: without TLS, each request to the next server, whoever sends it.
    """
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        require("nginx", "no nginx: its program is missing (Debian's package nginx)")
    folder.mkdir()
    authority, port = write_certificate(folder), free_port()
    block = block_after("nginx, as", "nginx")
    moves = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "server_name studio.example.org": "server_name 127.0.0.1",
        "/etc/letsencrypt/live/studio.example.org/fullchain.pem": f"{folder}/cert.pem",
        "/etc/letsencrypt/live/studio.example.org/privkey.pem": f"{folder}/key.pem",
        "127.0.0.1:8501": f"127.0.0.1:{backends[0]}",
        "127.0.0.1:8502": f"127.0.0.1:{backends[1]}",
    }
    for documented, here in moves.items():
        assert block.count(documented) == 1, documented
        block = block.replace(documented, here)
    if in_turns:
        block = re.sub(r"\n +(hash|ssl_certificate)\S* .*;.*|(?<=\d) ssl(?=;)", "", block)
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"{'user root;' if os.geteuid() == 0 else ''}\n"
        "events {}\nhttp {\n"
        "log_format where '$status $upstream_addr $cookie_inf_session $request_uri';\n"
        f"access_log {folder}/access.log where;\n{temporary}{block}}}\n"
    )
    words = [program, "-e", f"{folder}/error.log", "-p", str(folder), "-c", f"{folder}/nginx.conf"]
    checked = subprocess.run([*words, "-t"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        scheme = "http" if in_turns else "https"
        yield f"{scheme}://127.0.0.1:{port}", authority, folder / "access.log"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def team_url(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("operated") / "inf.db"
    shutil.copy(sqlite_template, path)
    store = open_store(f"sqlite:///{path}")
    with store.write() as session:
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        session.commit()
    store.close()
    return store.url


def sign_in(url: str, verify: ssl.SSLContext) -> httpx.Response:
    """The form as a browser posts it: with the address of its page, port included."""
    form = {"name": "root", "password": PASSWORD}
    with httpx.Client(verify=verify, timeout=60) as client:
        return client.post(f"{url}/sign-in", data=form, headers={"origin": url})


@contextmanager
def answering(port: int) -> Iterator[None]:
    """A backend that answers 200 at once, until the end."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_server_that_came_back_is_used_at_once_by_the_documented_nginx(tmp_path: Path) -> None:
    """By default nginx gives one up for 10 s after a failure: 502 if the other one ends then."""
    ports = [free_port(), free_port()]
    with nginx(tmp_path / "nginx", ports) as (url, authority, _):
        verify = ssl.create_default_context(cafile=str(authority))

        def statuses() -> set[int]:
            with httpx.Client(verify=verify, timeout=30) as client:
                return {
                    client.get(url, headers={"cookie": f"{COOKIE}={number}"}).status_code
                    for number in range(20)
                }

        with answering(ports[0]), answering(ports[1]):
            assert statuses() == {200}
        with answering(ports[0]):
            assert statuses() == {200}
        with answering(ports[1]):
            assert statuses() == {200}
        assert statuses() == {502}


@pytest.mark.long
def test_behind_the_documented_nginx_people_sign_in_and_a_killed_server_costs_no_502(
    team_url: str, tmp_path: Path
) -> None:
    environment = {"INF_DATABASE_URL": team_url, "INF_TRUSTED_PROXIES": "127.0.0.1"}
    ports = [free_port(), free_port()]

    def start(servers: ExitStack, number: int) -> Server:
        folder = tmp_path / f"server-{number}"
        environment["INF_HOME"] = str(folder)
        return servers.enter_context(serving(folder, port=ports[number], **environment))

    with ExitStack() as servers, nginx(tmp_path / "nginx", ports) as (url, authority, log):
        first, _second = start(servers, 0), start(servers, 1)
        verify = ssl.create_default_context(cafile=str(authority))
        answers = [sign_in(url, verify) for _ in range(12)]
        assert {answer.status_code for answer in answers} == {303}
        assert all("secure" in answer.headers["set-cookie"].lower() for answer in answers)
        sessions = [answer.cookies[COOKIE] for answer in answers]

        def ask(session: str) -> int:
            with httpx.Client(verify=verify, timeout=60, cookies={COOKIE: session}) as client:
                return client.get(f"{url}/account").status_code

        assert [ask(session) for session in sessions for _ in range(3)] == [200] * 36
        places: dict[str, set[str]] = {}
        for line in log.read_text().splitlines():
            _status, place, session, _path = line.split(" ", 3)
            places.setdefault(session, set()).add(place)
        assert all(len(places[session]) == 1 for session in sessions), "a browser stays"
        assert {place for session in sessions for place in places[session]} == {
            f"127.0.0.1:{port}" for port in ports
        }
        assert websocket_status(url, verify, sessions[0]) == 101

        first.process.kill()
        first.process.wait()
        codes = [ask(session) for _ in range(3) for session in sessions]
        assert set(codes) == {200}


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("files", ["one folder", "INF_FILES"])
def test_two_servers_are_one_to_a_program_and_outlive_each_other(
    files: str, postgres_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request goes to the other server: what one was given or made, the other one has."""
    people.add(COMMAND, people.PersonAdd(name="cora", role="curator"), PASSWORD)
    rights = ["curate", "review", "release", "train"]
    wanted = {"name": "remote", "rights": rights, "person": "cora"}
    token = tokens.create(COMMAND, TokenCreate.read(wanted)).token
    monkeypatch.chdir(tmp_path)
    ports, pairs = [free_port(), free_port()], pairs_file(tmp_path, 30)
    homes = [home(), home()]
    if files == "INF_FILES":
        monkeypatch.setenv("INF_FILES", f"file://{tmp_path}/common")
        homes = [tmp_path / "first/home", tmp_path / "second/home"]
    with ExitStack() as both, nginx(tmp_path / "nginx", ports, in_turns=True) as (url, _, log):
        first, second = (
            both.enter_context(serving(tmp_path / name, port=port, INF_HOME=str(place)))
            for name, port, place in zip(("first", "second"), ports, homes, strict=True)
        )
        studios = first_studio, second_studio, any_studio = [
            Studio(OverHttp(where, token, both.enter_context(httpx.Client(timeout=60))))
            for where in (first.url, second.url, url)
        ]
        found = journey(any_studio, pairs)
        assert found["groups"] > 0
        asked = Counter(line.split(" ")[1] for line in log.read_text().splitlines())
        assert min(asked[f"127.0.0.1:{port}"] for port in ports) > 10, asked
        settings = {**TINY, "max_steps": "1"}
        trained = first_studio.releases.get(found["release"]).train(**settings).wait().model
        with monkeypatch.context() as patched:  # an upload to a page of the first server
            patched.setenv("INF_HOME", str(homes[0]))
            corpus = analyses.keep_file(COMMAND, "texts.jsonl", b'{"text": "one"}\n')
            config = {"what": "near_duplicates", "texts": [corpus]}
            compared = launch(postgres_store, "embed", config, actor=COMMAND)
        assert second_studio.job(compared).wait().row["status"] == "done"
        of_both = [each.call("jobs list")["data"] for each in studios[:2]]
        assert of_both[0] == of_both[1] and of_both[0]
        for job in of_both[0]:
            logs_of_both = {each.call("jobs log", id=job["id"])["text"] for each in studios[:2]}
            assert len(logs_of_both) == 1 and "another server" not in logs_of_both.pop()
        for name, maker, user in (("one", *studios[:2]), ("two", *studios[1::-1])):
            made = maker.runs.get(found["run"]).release(name)
            copied = user.releases.get(made.id).download(f"release-{made.id}")
            assert (copied / "release.json").is_file()
        for place in homes:
            monkeypatch.setenv("INF_HOME", str(place))
            assert len(encode(["one"], models.show(COMMAND, trained.id).path)) == 1
        first.process.kill()
        first.process.wait()
        monkeypatch.chdir(tmp_path / "second")
        again = journey(any_studio, pairs)
        assert again["groups"] == found["groups"]


def websocket_status(url: str, verify: ssl.SSLContext, session: str) -> int:
    """The status of Streamlit's WebSocket for a page under this address."""
    host, port = url.removeprefix("https://").split(":")
    lines = [
        "GET /_stcore/stream HTTP/1.1",
        f"Host: {host}:{port}",
        f"Origin: {url}",
        f"Cookie: {COOKIE}={session}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]
    with (
        socket.create_connection((host, int(port)), timeout=60) as plain,
        verify.wrap_socket(plain, server_hostname=host) as wire,
    ):
        wire.sendall("\r\n".join([*lines, "", ""]).encode())
        with wire.makefile("rb") as answer:
            return int(answer.readline().split()[1])


# What systemd-run does with the documented options, simulated: none runs without systemd as PID 1.
# Lines of the file are taken whole, as systemd takes lines without quotes.
SIMULATED_RUN = """
while :; do
  case "$1" in
    --property=EnvironmentFile=*) file="${1#--property=EnvironmentFile=}" ;;
    --setenv=*) export "${1#--setenv=}" ;;
    --*) ;;
    *) break ;;
  esac
  shift
done
while IFS= read -r line; do export "$line"; done < "$file"
exec "$@"
"""


def test_systemd_run_has_the_documented_options() -> None:
    """By the program itself: options are read before the version is printed."""
    if shutil.which("systemd-run") is None:
        require("systemd", "no systemd-run (Debian's package systemd)")
    found = re.search(r"systemd-run (.*?) \"\$@\"", block_after("## systemd", "sh"))
    assert found is not None
    options = found[1].split()
    done = subprocess.run(["systemd-run", *options, "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and "systemd" in done.stdout, done.stderr
    wrong = subprocess.run(["systemd-run", "--propperty=x", "--version"], capture_output=True)
    assert wrong.returncode != 0


def test_caddy_accepts_the_documented_block(tmp_path: Path) -> None:
    program = shutil.which("caddy")
    if program is None:
        pytest.skip("no caddy (Debian's package caddy): its block is not validated here")
    (tmp_path / "Caddyfile").write_text(block_after("Caddy gets", ""))

    def validated() -> subprocess.CompletedProcess[str]:
        words = [program, "validate", "--adapter", "caddyfile", "--config", "Caddyfile"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        return subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )

    done = validated()
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "Caddyfile").read_text()
    (tmp_path / "Caddyfile").write_text(text.replace("lb_policy cookie", "lb_policy biscuit"))
    assert validated().returncode != 0


@pytest.mark.long
def test_the_units_steps_make_tables_and_a_first_account(tmp_path: Path) -> None:
    """As written, with every folder under one of the test's; root's programs are replaced."""
    steps = block_after("## systemd", "sh")
    for place in ("/opt/inf-studio", "/etc/", "/var/lib/inf-studio"):
        assert place in steps
        steps = steps.replace(place, f"{tmp_path}{place}")
    # an unquoted `&`, as systemd takes it: a shell that reads the file ends the command there
    url = f"sqlite:///{tmp_path}/var/lib/team.db?timeout=30&cached_statements=64"
    file = f"{tmp_path}/etc/inf-studio.env"
    made = next(line for line in steps.splitlines() if line.startswith("install -m 600"))
    steps = steps.replace(made, f"{made}\nprintf '%s\\n' 'INF_DATABASE_URL={url}' > {file}")
    user, group = (
        subprocess.run(["id", flag, "-n"], capture_output=True, text=True).stdout.strip()
        for flag in ("-u", "-g")
    )
    steps = steps.replace("-o inf-studio -g inf-studio", f"-o {user} -g {group}")
    for folder in ("etc/systemd/system", "var/lib", "opt/inf-studio/bin", "stub"):
        (tmp_path / folder).mkdir(parents=True)
    stubs = {
        "stub/useradd": 'echo "$0 $*" >> "$CALLS"',
        "stub/systemctl": 'echo "$0 $*" >> "$CALLS"',
        "stub/python3": 'echo "$0 $*" >> "$CALLS"',
        "stub/systemd-run": SIMULATED_RUN,
        "opt/inf-studio/bin/pip": 'echo "$0 $*" >> "$CALLS"',
        "opt/inf-studio/bin/inf": f'exec {sys.executable} -P -m app.cli.main "$@"',
    }
    for name, text in stubs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}/stub:/usr/bin:/bin",
        "CALLS": str(tmp_path / "calls"),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        ["sh", "-euc", steps],
        cwd=ROOT,
        env=environment,
        input=f"{PASSWORD}\n{PASSWORD}\n",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    store = open_store(url)
    assert schema.current(store) == revision.head()
    with store.read() as session:
        assert get_account(session, "ada").role == "admin"
    store.close()
    assert (tmp_path / "etc/systemd/system/inf-studio.service").read_text() == UNIT
    assert "enable --now inf-studio" in (tmp_path / "calls").read_text()


def unit_environment(folder: Path) -> dict[str, str]:
    """What the unit sets, its folders under one of the test's, and no other place to write."""
    found = dict(re.findall(r"^Environment=(\w+)=(\S+)$", UNIT, re.MULTILINE))
    moved = {name: value.replace("/var/", f"{folder}/var/") for name, value in found.items()}
    return {**moved, "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


@pytest.mark.long
def test_under_the_unit_the_map_compiles_and_the_hubs_cache_can_be_written(tmp_path: Path) -> None:
    """Both in the unit's cache folder: the program's folder and homes are read-only there."""
    state, cache = tmp_path / "var/lib/inf-studio", tmp_path / "var/cache/inf-studio"
    for folder in (state, cache):
        folder.mkdir(parents=True)
    code = (
        "import pynndescent, huggingface_hub.constants as hub, pathlib\n"
        "pathlib.Path(hub.HF_HUB_CACHE).mkdir(parents=True)\n"
        "print(pynndescent.__version__)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=state,
        env=unit_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    assert list((cache / "numba").rglob("*.nbi"))
    assert (cache / "huggingface" / "hub").is_dir()


def test_logrotate_turns_over_a_log_that_a_running_supervisor_goes_on_writing(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documented block, for this folder and user: checked by -d, then run twice."""
    program = shutil.which("logrotate") or shutil.which("logrotate", path="/usr/sbin")
    if program is None:
        require("logrotate", "no logrotate: its program is missing (Debian's package logrotate)")
    found = re.search(r"```\n(/\S+ \{\n.*?\})\n```", OPERATIONS, re.DOTALL)
    assert found is not None
    (unit_home,) = re.findall(r"^Environment=INF_HOME=(\S+)$", UNIT, re.MULTILINE)
    (unit_user,) = re.findall(r"^User=(\S+)$", UNIT, re.MULTILINE)
    user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
    block = found[1] + "\n"
    for documented, here in {
        f"{unit_home}/logs/*.log": f"{logs()}/*.log",
        f"su {unit_user} {unit_user}": f"su {user} {group}",
    }.items():
        assert block.count(documented) == 1, documented
        block = block.replace(documented, here)
    (tmp_path / "rotation").write_text(block)
    (tmp_path / "rotation").chmod(0o644)

    def rotate(*options: str) -> str:
        words = [program, "-s", str(tmp_path / "state"), *options, str(tmp_path / "rotation")]
        done = subprocess.run(words, capture_output=True, text=True)
        said = done.stdout + done.stderr
        assert done.returncode == 0 and "error" not in said.lower(), said
        return said

    lines = "import time\nwhile True: print('x' * 99, flush=True); time.sleep(0.01)"
    monkeypatch.setattr(supervisors, "run_module", lambda name: ["-c", lines])
    ensure_supervisor(sqlite_store)
    log, process = logs() / "supervisor.log", supervisors._started[-1]
    (logs() / "job-1-1.log").write_text("")
    try:
        for number in (1, 2):
            until(lambda: log.stat().st_size > 5000, seconds=10)
            assert "supervisor.log" in rotate("-d")
            rotate("--force")
            with gzip.open(logs() / "supervisor.log.1.gz") as old:
                assert set(old.read().split()) == {b"x" * 99}, f"rotation {number}"
            until(lambda: log.stat().st_size > 0, seconds=10)
            # appended from the beginning: no hole of zeros where the old lines were
            assert set(log.read_bytes().split()) <= {b"x" * 99} | {b"x" * n for n in range(1, 99)}
        assert {path.name for path in logs().iterdir()} == {
            *("supervisor.log", "supervisor.log.1.gz", "supervisor.log.2.gz"),
            "job-1-1.log",  # empty: not turned over
        }
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
