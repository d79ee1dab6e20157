"""What the process of a queued job gets of the environment of whoever launched or resumed it.

The supervisor that starts queued jobs may have begun days ago in another shell: with its variables
a run would go to another server, with another key. So a launch leaves the variables that name
servers and open doors in a file of INF_HOME, secrets sealed as typed keys are; the supervisor reads
it whenever it starts the process, also in place of one that died, and deletes it when the job is
over. A job that goes by them is of that INF_HOME: the supervisor of another one has not got them.
Without the file its own are used, and a job whose supervisor ended with it does not start again by
itself. A job on a Ray cluster gets what is no secret, and the rest of its nodes; it is submitted
from that INF_HOME, too.
"""

import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.jobs.places import uses_environment
from db.home import files_root, home, home_ids, is_of_this_machine
from db.jobs.jobs import LOCAL, OVER, keep_here, key_of
from db.servers.sealing import seal, unseal
from db.store.environment import VARIABLES
from db.store.secrets import inherited, is_secret
from db.store.store import Store
from db.tables import Job

log = logging.getLogger("inf.jobs")
SECTIONS: Final = ("Language models", "Hugging Face Hub")
SLACK: Final = timedelta(minutes=5)  # between the clocks of a store and of this machine
# What a client of a model server reads besides, and of that what is of this machine's network
NETWORK: Final = frozenset(
    name
    for each in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    for name in (each, each.lower())
) | {"SSL_CERT_FILE", "SSL_CERT_DIR"}
NAMES: Final = (
    {each.name for section in SECTIONS for each in VARIABLES[section]}
    | {"OPENAI_ORG_ID", "OPENAI_PROJECT_ID"}
    | NETWORK
)


def hand_over(session: Session, job: Job, like: Iterable[Job] = ()) -> None:
    """Leave this process's variables for the process of a job, or what was left for one `like` it;
    before the job can be claimed. Of a cluster's job no secrets: they would be seen there, and its
    nodes have their own. Does not commit."""
    is_here = job.launcher == LOCAL
    is_free = (files_root() or not is_here) and not is_of_this_machine(job.config)
    if (is_free or job.home in home_ids()) and uses_environment(session, job):
        keep_here(job)
    for other in like:
        if is_here and other.launcher != LOCAL:
            continue
        with suppress(FileNotFoundError):  # it may end meanwhile
            content = json.loads(_path(other).read_text(encoding="utf-8"))
            if not is_here:  # what another machine's processes need is none of the cluster's
                plain = {k: v for k, v in content["plain"].items() if k not in NETWORK}
                content |= {"plain": plain, "sealed": "", "network": False}
            return _write(job, json.dumps(content))
    held = {
        name: value
        for name, value in inherited().items()
        if _is_handed_over(name) and (is_here or name not in NETWORK)
    }
    secrets = {
        name: value
        for name, value in held.items()
        if is_secret(name) or (is_here and "@" in value)  # an address with a password
    }
    content = {
        "plain": {name: value for name, value in held.items() if name not in secrets},
        "sealed": seal(json.dumps(secrets)) if secrets and is_here else "",
        "network": is_here,
    }
    _write(job, json.dumps(content))


def _write(job: Job, content: str) -> None:
    path = _path(job)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = path.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    opened = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(opened, "w", encoding="utf-8") as file:
        file.write(content)
    unfinished.replace(path)


def with_handed_over(job: Job, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of a supervisor with those that the job's launcher left in their place.

    Raises InfError where the file of keys was changed since.
    """
    try:
        content = json.loads(_path(job).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return dict(variables)
    secrets: dict[str, str] = json.loads(unseal(content["sealed"])) if content["sealed"] else {}
    kept = frozenset() if content.get("network") else NETWORK  # an earlier version left none
    own = {
        name: value
        for name, value in variables.items()
        if name in kept or not _is_handed_over(name)
    }
    plain: dict[str, str] = content["plain"]
    return own | plain | secrets


def sent_to_cluster(job: Job) -> dict[str, str]:
    """The variables that the launcher of a cluster's job left, but for folders of its machine and
    addresses that may hold a password or a key."""
    try:
        content = json.loads(_path(job).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    left: dict[str, str] = content["plain"]
    plain = {name: value for name, value in left.items() if not {"@", "?"} & set(value)}
    if kept := sorted(left.keys() - plain.keys()):
        log.warning("not sent to the cluster, since others see it there: %s", ", ".join(kept))
    plain.pop("INF_RECORDING", None)
    other = {"AZURE_OPENAI_ENDPOINT": ""} if "OPENAI_BASE_URL" in plain else {}  # a node's own
    return other | plain


def was_left(job: Job) -> bool:
    """Whether there is anything for this job."""
    return _path(job).exists()


def left_of_ended(store: Store, launcher: str) -> list[Job]:
    """The jobs of a launcher that are over and for which there is something."""
    names = (
        re.fullmatch(r"job-(\d+)-\d+T\d+\.json", path.name) for path in _folder().glob("job-*")
    )
    ids = {int(name[1]) for name in names if name}  # of other stores' jobs, too
    if not ids:
        return []
    is_over = Job.id.in_(ids), Job.status.in_(OVER), Job.launcher == launcher
    with store.read() as session:
        return [job for job in session.scalars(select(Job).where(*is_over)) if was_left(job)]


def take_earlier(session: Session) -> None:
    """Rename what an earlier version left, by the id alone, for jobs that are not over; delete it
    for those that are. What it left for a job that is not in this store is another's and stays."""
    for path in _folder().glob("job-*.json"):
        name = re.fullmatch(r"job-(\d+)\.json", path.name)
        job = session.get(Job, int(name[1])) if name else None
        if job is None or not _is_of(job, path):
            continue
        if job.status in OVER or was_left(job):
            path.unlink(missing_ok=True)
            log.info("deleted %s of an earlier version: no job needs it", path)
        else:
            path.replace(_path(job))


def _is_of(job: Job, path: Path) -> bool:
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return job.created_at - SLACK <= written <= (job.finished_at or written)


def forget(job: Job) -> None:
    """Delete what was left for a job that will not start again by itself."""
    _path(job).unlink(missing_ok=True)


def _is_handed_over(name: str) -> bool:
    return name in NAMES or is_secret(name)


def _folder() -> Path:
    return home() / "launched"


def _path(job: Job) -> Path:
    # ids are given twice, also by another store of this INF_HOME
    return _folder() / f"{key_of(job)}.json"
