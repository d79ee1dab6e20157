"""Run the steps of the Dockerfile in a clean folder, for machines without Docker.

    .ci/dockerfile_steps.py FOLDER [--build-arg NAME=VALUE …] [--list]

Every absolute folder of the image (/src, /dist, /opt, /data) stands under FOLDER. COPY and RUN are
done as they are written; steps that need Debian's packages or root (apt-get, useradd) are named and
left out. At the end the image's own command line is checked with its ENV: `inf --version`, a new
store, `inf serve`, and the HEALTHCHECK against it; as a user without rights where this runs as
root and that user can read the Python it runs on.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("/src", "/dist", "/opt", "/data")
NEEDS_IMAGE = ("apt-get", "useradd")
NOBODY = 65534
Step = tuple[str, str]


def steps_of(dockerfile: str) -> list[Step]:
    """(instruction, rest) of every step; comments dropped, continued lines joined."""
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    found = (line.strip().partition(" ") for line in joined.splitlines() if line.strip())
    return [(name.upper(), rest.strip()) for name, _, rest in found]


def moved(text: str, folder: Path) -> str:
    """The text with the image's folders under `folder`."""
    return re.sub(rf"(?<![\w/.])({'|'.join(PLACES)})(?=[/\s\"':;)]|$)", rf"{folder}\1", text)


def run_steps(steps: list[Step], folder: Path, arguments: dict[str, str]) -> dict[str, str]:
    """Run RUN and COPY; returns the environment that the image's ENV gives."""
    environment = dict(os.environ)
    image: dict[str, str] = {}
    work = folder
    for name, rest in steps:
        if name == "ARG":
            key, _, default = rest.partition("=")
            environment[key] = arguments.get(key, default.strip('"'))
        elif name == "WORKDIR":
            work = Path(moved(rest, folder))
            work.mkdir(parents=True, exist_ok=True)
        elif name == "ENV":
            for pair in shlex.split(rest):
                key, _, value = pair.partition("=")
                image[key] = moved(value, folder)
        elif name == "COPY":
            _copy(rest, folder, work)
        elif name == "RUN" and any(word in rest for word in NEEDS_IMAGE):
            print(f"left out (needs the image): {rest[:60]}…")
        elif name == "RUN":
            print(f"RUN {rest[:70]}…", flush=True)
            subprocess.run(
                ["sh", "-ec", moved(rest, folder)], cwd=work, env=environment, check=True
            )
    return image


def _copy(rest: str, folder: Path, work: Path) -> None:
    words = [word for word in rest.split() if not word.startswith("--")]
    if "--from=" in rest:
        for word in words:
            if not Path(moved(word, folder)).exists():
                sys.exit(f"COPY {rest}: {word} was not made")
        return  # both stages share the folder
    if words[-1] not in (".", "./"):
        sys.exit(f"COPY {rest}: only copies to `.` and `--from` are known here")
    command = ["git", "ls-files", "-z", "--", *words[:-1]]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, work / name)


def check_command(steps: list[Step], folder: Path, image: dict[str, str]) -> None:
    """Run the image's program with its environment, and its health check against it."""
    path = image["PATH"].replace("$PATH", os.environ["PATH"])
    environment = {**os.environ, **image, "PATH": path}
    data = Path(image["INF_HOME"])
    data.mkdir(parents=True, exist_ok=True)
    user: dict[str, object] = {}
    python = Path(moved("/opt/inf-studio/bin/python", folder)).resolve()
    is_readable = all(each.stat().st_mode & 0o001 for each in [python, *python.parents])
    if os.geteuid() == 0 and is_readable:
        os.chown(data, NOBODY, NOBODY)
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    elif os.geteuid() == 0:
        print(f"as root: another user cannot read {python}")
    environment["HOME"] = str(data)
    run = {"env": environment, "cwd": data, **user}
    program = moved("/opt/inf-studio/bin/inf", folder)
    for words in (["--version"], ["db", "upgrade"], ["db", "check"]):
        subprocess.run([program, *words], check=True, **run)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve = subprocess.Popen([program, "serve", "--port", str(port)], **run)
    health = next(rest for name, rest in steps if name == "HEALTHCHECK").partition("CMD ")[2]
    words = [word.replace(":8501", f":{port}") for word in json.loads(health)]
    try:
        for _ in range(60):
            if subprocess.run(words, capture_output=True, check=False, **run).returncode == 0:
                print("healthy")
                break
            time.sleep(1)
        else:
            sys.exit("the health check failed for 60 seconds")
    finally:
        serve.send_signal(signal.SIGTERM)
        serve.wait(20)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--build-arg", action="append", default=[])
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    steps = steps_of((ROOT / "Dockerfile").read_text())
    if given.list:
        print("\n".join(f"{name} {rest}" for name, rest in steps))
        sys.exit()
    folder = given.folder.absolute()
    folder.mkdir(parents=True)  # clean: it must not exist
    folder.chmod(0o755)
    pairs = dict(each.split("=", 1) for each in given.build_arg)
    check_command(steps, folder, run_steps(steps, folder, pairs))
