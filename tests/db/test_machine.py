"""Processes and locks on every operating system, also where Python has no POSIX parts."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from waiting import until

from db import machine
from db.errors import Refused
from db.modules import full_name

ROOT = Path(__file__).resolve().parents[2]
POSIX_ONLY = ('"/proc', "import fcntl", "os.killpg", "os.setsid", "signal.SIGKILL", "pass_fds")
WITHOUT_POSIX = """
import builtins, os, signal, sys
import psutil, filelock, subprocess, socket  # theirs: they choose for themselves
real = builtins.__import__
def refuse(name, *rest, **more):
    if name.split(".")[0] in ("fcntl", "pwd", "grp", "resource", "termios", "pty"):
        frame = sys._getframe(1)
        if frame.f_globals.get("__name__", "").split(".")[0] in OURS:
            raise ImportError(f"no {name} on this system")
    return real(name, *rest, **more)
OURS = ("app", "curation", "trainer", "analysis", "db", "inf_studio")
builtins.__import__ = refuse
for name in ("killpg", "setsid", "getpgid", "fork"):
    delattr(os, name)
del signal.SIGKILL
"""


# Starts a small process from a large one, as a gate's worker or the app starts a training.
SMALL_FROM_LARGE = """
import subprocess, sys
large = bytearray(b"x" * 1_500_000_000)
small = "from db.machine import peak_memory; print(peak_memory())"
subprocess.run([sys.executable, "-c", small], check=True)
"""


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield child
    child.kill()
    child.wait()


def owner_of(pid: int) -> str:
    where, _, _, number = machine.new_owner().rsplit(":", 3)
    return f"{where}:{pid}:{psutil.Process(pid).create_time():.2f}:{number}"


def test_this_process_and_a_child_are_alive_and_other_machines_are_not_judged(
    child: "subprocess.Popen[bytes]",
) -> None:
    assert not machine.is_dead(machine.new_owner())
    assert not machine.is_dead(owner_of(child.pid))
    assert not machine.is_dead("elsewhere:1:0.00:x")


def test_a_killed_process_is_dead_also_before_its_parent_reaps_it(
    child: "subprocess.Popen[bytes]",
) -> None:
    owner = owner_of(child.pid)
    psutil.Process(child.pid).kill()
    until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
    assert machine.is_dead(owner)
    child.wait()
    assert machine.is_dead(owner) and not machine.process_exists(child.pid)


def test_a_process_that_hidepid_keeps_from_being_seen_is_not_judged(
    child: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another user, as on many clusters: /proc has nothing of it, a signal is not permitted."""
    owner = owner_of(child.pid)

    def unseen(pid: int) -> None:
        raise psutil.NoSuchProcess(pid)

    def not_permitted(pid: int, sign: int) -> None:
        raise PermissionError

    with monkeypatch.context() as hidden:
        hidden.setattr(psutil, "Process", unseen)
        hidden.setattr(os, "kill", not_permitted)
        assert not machine.is_dead(owner)


def test_a_process_that_was_given_an_old_number_is_not_its_owner() -> None:
    where, pid, _, number = machine.new_owner().rsplit(":", 3)
    assert machine.is_dead(f"{where}:{pid}:1.00:{number}")


def test_neither_the_name_of_a_host_nor_a_process_id_tells_who_is_dead() -> None:
    """Two containers with one host name: each has processes with the other's ids."""
    host, space, _, created, number = machine.new_owner().rsplit(":", 4)
    assert machine.is_dead(f"{host}:{space}:999999999:{created}:{number}")
    assert not machine.is_dead(f"{host}:another.4026531836:999999999:{created}:{number}")
    assert not machine.is_dead(f"{host}:999999999:{created}:{number}"), "of an earlier version"


def test_nothing_is_judged_by_proc_which_only_linux_has() -> None:
    """On macOS every owner looked dead, and a second export took a living one's folder."""
    rooms = ("app", "curation", "trainer", "analysis", "db")
    found = [
        str(path.relative_to(ROOT))
        for room in rooms
        for path in (ROOT / room).rglob("*.py")
        if path.name != "machine.py"
        for word in (
            '"/proc',
            "import fcntl",
            "os.killpg",
            "os.setsid",
            "signal.SIGKILL",
            "pass_fds",
        )
        if word in path.read_text(encoding="utf-8")
    ]
    assert found == []


def test_a_process_s_peak_of_memory_is_its_own_whatever_started_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SMALL_FROM_LARGE], capture_output=True, text=True, check=True
    )
    assert 10_000_000 < int(ran.stdout) < 1_200_000_000


def test_a_lock_is_held_until_its_file_is_closed(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as one, (tmp_path / "lock").open("w") as two:
        assert machine.try_lock(one.fileno(), tmp_path)
        assert not machine.try_lock(two.fileno(), tmp_path)
        one.close()
        assert machine.try_lock(two.fileno(), tmp_path)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS])
def test_a_folder_without_locks_is_refused(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.require_locks(tmp_path / "home")

    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", flock)
    with (tmp_path / "lock").open("w") as file:
        for wait in (False, True):
            with pytest.raises(Refused) as refused:
                machine.try_lock(file.fileno(), tmp_path, wait=wait)
            assert str(tmp_path) in refused.value.message
            assert os.strerror(number) in refused.value.message
            assert "local disk" in refused.value.remedy and "PostgreSQL" in refused.value.remedy
    with pytest.raises(Refused):
        machine.require_locks(tmp_path / "home")
    assert list((tmp_path / "home").iterdir()) == []


MOUNTS = """
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 21 0:50 / /mnt/nfs rw,relatime shared:9 master:2 - nfs4 files:/a rw,vers=4.2,local_lock=none
41 21 0:51 / /mnt/nfs/old rw,relatime - nfs files:/b rw,vers=3,nolock,{option},addr=10.0.0.9
42 41 0:52 / /mnt/nfs/old/disk rw - xfs /dev/sdb1 rw,local_lock=all
43 21 0:53 / /mnt/with\\040space rw shared:3 - nfs files:/c rw,local_lock=all
44 21 0:54 / /mnt/over rw - nfs files:/d rw,local_lock=all
45 44 0:55 / /mnt/over rw - nfs4 files:/d rw,local_lock=none
46 21 0:56 / /mnt/posix rw - nfs files:/e rw,vers=3,local_lock=posix
47 21 0:57 / /mnt/flock rw - nfs files:/f rw,vers=3,local_lock=flock
"""
KINDS = """
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
50 21 0:60 / /l/flock rw - lustre 10.0.0.1@tcp:/scratch rw,flock,user_xattr,lazystatfs
51 21 0:61 / /l/none rw - lustre 10.0.0.1@tcp:/scratch rw,user_xattr,lazystatfs
52 21 0:62 / /l/local rw - lustre 10.0.0.1@tcp:/scratch rw,localflock,lazystatfs
53 21 0:63 / /s/mb rw - cifs //files/share rw,vers=3.1.1,cache=strict,uid=1000
54 21 0:64 / /s/nobrl rw - cifs //files/share rw,vers=3.1.1,cache=strict,nobrl
55 21 0:65 / /s/three rw - smb3 //files/share rw,vers=3.1.1,nobrl
56 21 0:66 / /f/ssh rw,nosuid shared:5 - fuse.sshfs me@host:/data rw,user_id=1000,group_id=1000
57 21 0:67 / /f/gluster rw shared:6 - fuse.glusterfs host:/vol rw,user_id=0,allow_other
58 21 0:68 / /f/ceph rw - ceph 10.0.0.2:/ rw,name=me,secret=<hidden>,acl
59 21 8:17 / /f/ntfs rw - fuseblk /dev/sdb1 rw,user_id=0,allow_other
60 21 8:33 / /g/gfs rw - gfs2 /dev/mapper/x rw,localflocks
61 21 8:34 / /g/ocfs rw - ocfs2 /dev/mapper/y rw,heartbeat=local
62 21 0:69 / /w/tab\\011line rw - fuse.rclone remote: rw
"""


def local_in(mounts: str, *folders: str, used: str = machine.FLOCK) -> dict[str, str]:
    """How each folder is mounted whose locks hold on one machine alone."""
    found = {folder: machine.local_locks(mounts, Path(folder), used) for folder in folders}
    return {folder: how for folder, how in found.items() if how}


@pytest.mark.parametrize("option", ["local_lock=all", "local_lock=flock"])
def test_a_shared_folder_whose_locks_hold_on_each_machine_alone_is_refused(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = MOUNTS.format(option=option)
    assert local_in(
        mounts,
        *("/", "/mnt/nfs/a", "/mnt/nfs/older", "/mnt/nfs/old", "/mnt/nfs/old/inf/logs"),
        *("/mnt/nfs/old/disk/inf", "/mnt/with space/inf", "/mnt/over/inf"),
    ) == {
        "/mnt/nfs/old": f"with {option}",
        "/mnt/nfs/old/inf/logs": f"with {option}",
        "/mnt/with space/inf": "with local_lock=all",
    }, "of two mounts at one place the last one is seen"
    assert local_in(mounts.replace(option, "rw"), "/mnt/nfs/old") == {"/mnt/nfs/old": "with nolock"}
    text = tmp_path / "mountinfo"
    text.write_text(f"41 21 0:51 / {tmp_path} rw - nfs files:/b rw,{option}\n")
    monkeypatch.setattr(machine, "MOUNTS", text)
    machine.locks_of.cache_clear()
    with pytest.raises(Refused, match=option) as refused:
        machine.require_locks(tmp_path / "home")
    assert refused.value.code == "folder_without_locks"
    machine.locks_of.cache_clear()


def test_a_folder_is_refused_for_the_locks_that_it_is_used_with() -> None:
    folders = "/mnt/posix", "/mnt/flock"
    mounts = MOUNTS.format(option="rw")
    assert local_in(mounts, *folders) == {"/mnt/flock": "with local_lock=flock"}
    assert local_in(mounts, *folders, used=machine.POSIX) == {"/mnt/posix": "with local_lock=posix"}


@pytest.mark.parametrize("used", [machine.FLOCK, machine.POSIX])
def test_each_kind_of_shared_folder_is_known_by_how_it_is_mounted(used: str) -> None:
    places = [line.split()[4] for line in KINDS.strip().splitlines()]
    folders = [place.replace("\\011", "\t") + "/inf" for place in places]
    assert local_in(KINDS, *folders, used=used) == {
        "/l/none/inf": "without flock",
        "/l/local/inf": "without flock",
        "/s/nobrl/inf": "with nobrl",
        "/s/three/inf": "with nobrl",
        "/f/ssh/inf": "as fuse.sshfs",
        "/g/gfs/inf": "with localflocks",
        "/w/tab\tline/inf": "as fuse.rclone",
    }


def test_a_sqlite_store_on_a_folder_without_shared_posix_locks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "mountinfo"
    monkeypatch.setattr(machine, "MOUNTS", text)
    for option, is_refused in (("local_lock=posix", True), ("local_lock=flock", False)):
        text.write_text(f"41 21 0:51 / {tmp_path} rw - nfs files:/b rw,{option}\n")
        machine.locks_of.cache_clear()
        if is_refused:
            with pytest.raises(Refused, match=option) as refused:
                machine.require_store_locks(tmp_path / "inf.db")
            assert refused.value.code == "folder_without_locks"
            assert "INF_DATABASE_URL" in refused.value.remedy
            machine.require_locks(tmp_path / "home")  # of a PostgreSQL store: it uses flock alone
        else:
            machine.require_store_locks(tmp_path / "inf.db")
    machine.locks_of.cache_clear()


def test_another_error_of_a_lock_is_not_taken_for_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.EIO, "disk")

    monkeypatch.setattr("fcntl.flock", flock)
    with (tmp_path / "lock").open("w") as file, pytest.raises(OSError, match="disk"):
        machine.try_lock(file.fileno(), tmp_path)


@pytest.mark.parametrize("has_groups", [True, False], ids=["posix", "windows-like"])
def test_a_group_is_ended_with_its_children(
    has_groups: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys, time\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
            "print(child.pid, flush=True)\n"
            "time.sleep(600)",
        ],
        stdout=subprocess.PIPE,
        **machine.own_group(),
    )
    assert leader.stdout is not None
    grandchild = int(leader.stdout.readline())
    monkeypatch.setattr(machine, "HAS_GROUPS", has_groups)
    assert machine.group_exists(leader.pid)
    machine.end_group(leader.pid, by_force=True)
    leader.wait()
    leader.stdout.close()
    until(lambda: not machine.process_exists(grandchild) or is_zombie(grandchild))
    machine.end_group(leader.pid, by_force=False)  # nothing there is no error


def is_zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.long
def test_every_command_loads_and_a_job_runs_without_the_posix_parts(
    tmp_path: Path,
) -> None:
    program = WITHOUT_POSIX + (
        "from db import machine\n"
        "assert not machine.HAS_GROUPS\n"
        "machine.own_group = dict\n"  # Linux takes no flag of Windows'
        "from app.cli.main import COMMANDS, main\n"
        "from db.modules import load\n"
        "for target, _ in COMMANDS.values():\n"
        "    load(target)\n"
        "import app.operations.try_it, app.jobs.supervisor, curation.run.engine\n"
        "main(sys.argv[1:])\n"
    ).replace("from app", f"from {full_name('app')}").replace("from db", f"from {full_name('db')}")
    (tmp_path / "p.csv").write_text("query_id,query,passage_id,passage\nq,how far,p,384 400 km\n")

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("db", "upgrade")
    where = ("--source", "ours", "--licence", "cc0-1.0")
    run("import", "--dataset", "moon", "--pairs", str(tmp_path / "p.csv"), *where)
    run("backup", str(tmp_path / "all.zip"))
    assert (tmp_path / "all.zip").stat().st_size > 0
