"""A private PostgreSQL cluster in a temporary folder, with its own socket, as a non-root user."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self
from uuid import uuid4

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

NOBODY = "nobody"
DISK = Path("/tmp")
# A database of its own for each test is a few hundred files, which a busy disk takes seconds for.
MEMORY = Path("/dev/shm")
ROOM_NEEDED = 4 * 2**30


def programs() -> Path | None:
    """The folder of PostgreSQL's server programs, the newest version found."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    if found:
        return found[0].parent
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else None


def missing_programs() -> str | None:
    """Why there can be no cluster here; None where there can."""
    if programs() is None:
        return "no PostgreSQL: its server programs are missing (Debian's package postgresql)"
    return None


def memory() -> Path:
    """Where many short-lived databases lie: in memory, or /tmp where it is short of that."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM_NEEDED
    return MEMORY if has_room else DISK


class Cluster:
    """`with Cluster() as cluster: url = cluster.create()`; everything goes away at the end."""

    def __init__(self, place: Path = DISK, *, listens: str = "") -> None:
        """listens: on which address besides its socket; none."""
        self.place, self.listens = place, listens

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="inf-pg-", dir=self.place))
        self.folder.chmod(0o755)
        if os.geteuid() == 0:
            nobody = pwd.getpwnam(NOBODY)
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        self._run("initdb", "-D", self._data, "-U", "inf", "-A", "trust", "-E", "UTF8", "-N")
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start the server."""
        listens = f"-c listen_addresses='{self.listens}'"
        options = f"-k {self.folder} {listens} -c fsync=off -c max_connections=200"
        self._run(
            "pg_ctl", "-D", self._data, "-l", self.folder / "log", "-o", options, "-w", "start"
        )

    def stop(self, *, how: str = "immediate") -> None:
        """Stop the server; `fast` ends its sessions, `immediate` is as a power cut."""
        self._run("pg_ctl", "-D", self._data, "-m", how, "-w", "stop")

    def restart(self, *, away_seconds: float = 0.0) -> None:
        """Stop the server, as an operator does, and start it again after a while."""
        self.stop(how="fast")
        time.sleep(away_seconds)
        self.start()

    def create(self, name: str | None = None, *, template: str = "template1") -> str:
        """A new database; returns its address.

        Its files are copied: the default writes every page to the log and again to its file.
        """
        name = name or f"inf_{uuid4().hex[:12]}"
        self._sql(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy')
        return self.url(name)

    def drop(self, url: str) -> None:
        """Drop a database, whoever is connected."""
        self._sql(f'DROP DATABASE "{make_url(url).database}" WITH (FORCE)')

    def allow(self, url: str, connections: bool) -> None:
        """Let nobody connect to a database, with those ended who are; or let everybody again."""
        name = make_url(url).database
        self._sql(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {connections}')
        if not connections:
            self._sql(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            )

    def end_session(self, pid: int) -> None:
        """End the session of a server process."""
        self._sql(f"SELECT pg_terminate_backend({pid})")

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def url(self, name: str) -> str:
        """The address of a database on the cluster's own socket."""
        return f"postgresql+psycopg://inf@/{name}?host={self.folder}"

    def _sql(self, statement: str) -> None:
        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()

    def _run(self, program: str, *arguments: object) -> None:
        folder = programs()
        assert folder is not None
        words = [str(folder / program), *map(str, arguments)]
        # A file, not a pipe: the started server would hold a pipe open.
        with tempfile.TemporaryFile("w+") as said:
            code = subprocess.run(
                words,
                user=NOBODY if os.geteuid() == 0 else None,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
                check=False,
            ).returncode
            if code != 0:
                said.seek(0)
                raise RuntimeError(f"{program} ended with {code}:\n{said.read()}")
