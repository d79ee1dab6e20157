"""Pushing a release or a checkpoint to the Hub: the difference first, then file by file.

A new branch begins as a copy of main, on the Hub as here: it is compared with main, and what main
has in addition to the source's files is deleted in the branch's first commit, so that a revision
holds exactly what was pushed.

Nothing is silently overwritten: if the repository holds other content, the push goes to a branch or
a pull request, or needs `replace`. Large files are uploaded one by one before the commit, and the
Hub is queried for those it has: an interrupted push continues there. The commit names the head it
was compared with: a push by another user in between is not overwritten either. The tag comes last;
if that failed, the next push of the same files creates it. An existing tag is never moved, and must
name exactly these files.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from analysis.files.opening import file_sha256
from analysis.files.shared import here
from analysis.files.storage import place_of
from curation.hub.checkpoint_folder import checkpoint_files
from curation.hub.folder import files_to_push, require_as_exported
from curation.hub.hub import connect, has_token, reading_api, require_may_write, translated_errors
from curation.hub.request import PushStart
from curation.release.plan import MANIFEST
from db.errors import NotFound, Refused
from db.events import is_recorded, record_event
from db.home import temporary_folder
from db.jobs.runner import JobHandle
from db.outcome.checkpoints import get_checkpoint
from db.release.releases import get_release
from db.rows import SparseRow

LEFT_ALONE = (".gitattributes",)
MAIN = "main"


@dataclass(frozen=True)
class Source:
    """The files to push by their path in the repository, their kind and names."""

    files: dict[str, Path]
    repo_type: str
    tag: str
    title: str


@dataclass(frozen=True)
class Difference:
    """The changes that a push would make to a repository's files."""

    added: Sequence[str]
    changed: Sequence[str]
    removed: Sequence[str]
    unchanged: Sequence[str]
    exists: bool
    head: str | None
    new_branch: bool = False

    @property
    def nothing(self) -> bool:
        return not (self.added or self.changed or self.removed)

    @property
    def only_adds(self) -> bool:
        return not (self.changed or self.removed or self.unchanged)


class Pushed(SparseRow):
    """What a push changed in a repository, or, of a dry run, would change.

    Without a token (`signed_in`) a dry run compares with what is public. `pushed`: anything was
    committed; `commit` to `pull_request` are of a push alone.
    """

    repo: str
    repo_type: str
    title: str
    dry_run: bool
    signed_in: bool
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]
    repository_exists: bool
    commit: str | None = None
    url: str | None = None
    tag: str | None = None
    pull_request: str | None = None
    pushed: bool


def push(handle: JobHandle) -> Pushed:
    """The handler of `push` jobs. A dry run needs no token."""
    wanted = PushStart.read(handle.config)
    with temporary_folder("inf-push-") as aside:
        return _push(handle, wanted, _source(handle, wanted, aside))


def _push(handle: JobHandle, wanted: PushStart, source: Source) -> Pushed:
    repo = wanted.repo
    is_signed_in = has_token() or not wanted.dry_run
    api, whoami = connect() if is_signed_in else (reading_api(), {})
    if is_signed_in and not wanted.pull_request:
        require_may_write(whoami, source.repo_type, repo)
    handle.report(0, None, "comparing")
    difference = compare(api, source, repo, wanted.branch)
    if is_signed_in and not difference.exists:  # a pull request needs an existing one, too
        require_may_write(whoami, source.repo_type, repo)
    result: dict[str, Any] = {
        "repo": repo,
        "repo_type": source.repo_type,
        "title": source.title,
        "dry_run": wanted.dry_run,
        "signed_in": is_signed_in,
        "added": difference.added,
        "changed": difference.changed,
        "removed": difference.removed,
        "unchanged": difference.unchanged,
        "repository_exists": difference.exists,
    }
    if wanted.dry_run:
        return Pushed(**result, pushed=False)
    _require_allowed(wanted, difference)
    if not difference.exists:
        with translated_errors(f"making {repo}"):
            api.create_repo(repo, repo_type=source.repo_type, private=not wanted.public)
        # Another user may have pushed since: from here on the commit names the head it is for.
        difference = compare(api, source, repo, wanted.branch)
        _require_allowed(wanted, difference)
    tagged = None if wanted.pull_request else _find_tag(api, source, repo, difference)
    uploaded = _upload(handle, api, source, wanted, difference)
    if not wanted.pull_request and uploaded["commit"] is not None:
        if tagged is None:
            with translated_errors(f"tagging {repo}"):
                api.create_tag(
                    repo, repo_type=source.repo_type, tag=source.tag, revision=uploaded["commit"]
                )
        uploaded["tag"] = source.tag
    of_release = wanted.release_id is not None
    name = "release.pushed" if of_release else "checkpoint.pushed"
    of = wanted.release_id if of_release else wanted.checkpoint_id
    place = {"repo": repo, "commit": uploaded["commit"]}

    def record(session: Session) -> None:
        # Once a commit: a repeated push uploads nothing; one killed after its upload has no event.
        if not is_recorded(session, name, of, place):
            record_event(session, handle.started_by, name, of, **place)

    handle.record(record)
    return Pushed(**result, **uploaded, pushed=uploaded["url"] is not None)


def compare(api: Any, source: Source, repo: str, branch: str | None) -> Difference:
    """The repository's files against the folder's; main's for a new branch."""
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    local = source.files
    remote: dict[str, Any] = {}
    exists, new_branch, head = True, False, None
    with translated_errors(f"comparing {repo}"):
        try:
            try:
                head = api.repo_info(repo, repo_type=source.repo_type, revision=branch or MAIN).sha
            except RevisionNotFoundError:
                if not branch:
                    raise
                new_branch = True
                head = api.repo_info(repo, repo_type=source.repo_type, revision=MAIN).sha
            listed = api.list_repo_tree(
                repo, repo_type=source.repo_type, revision=head, recursive=True
            )
            remote = {entry.path: entry for entry in listed if hasattr(entry, "blob_id")}
        except RevisionNotFoundError:
            head = None
        except RepositoryNotFoundError as error:
            if error.response.status_code == 401:
                raise
            exists = False
    kept = [path for path in local if path in remote]
    same = [path for path in kept if _same(local[path], remote[path])]
    return Difference(
        added=[path for path in local if path not in remote],
        changed=[path for path in kept if path not in same],
        removed=[path for path in remote if path not in local and path not in LEFT_ALONE],
        unchanged=same,
        exists=exists,
        head=head,
        new_branch=new_branch,
    )


def _require_allowed(wanted: PushStart, difference: Difference) -> None:
    """Raise Refused if the push would overwrite files without `replace`."""
    aside = bool(wanted.branch or wanted.pull_request)
    if not (difference.only_adds or difference.nothing or aside or wanted.replace):
        raise Refused(
            f"{wanted.repo} holds other files ({_counted(difference)})",
            "check with `dry_run=`, then push with `pull_request=`, to another `branch=`, or with "
            "`replace=`",
            code="repository_files_differ",
        )


def _find_tag(api: Any, source: Source, repo: str, difference: Difference) -> str | None:
    """The commit that the source's tag names, None if there is no such tag.

    Raises Refused if that commit holds other files than the folder: the tag would name them.
    """
    if not difference.exists:
        return None
    with translated_errors(f"reading the tags of {repo}"):
        tags = api.list_repo_refs(repo, repo_type=source.repo_type).tags
    target = next((str(tag.target_commit) for tag in tags if tag.name == source.tag), None)
    if target is None or (target == difference.head and difference.nothing):
        return target
    if not compare(api, source, repo, target).nothing:
        raise Refused(
            f"{repo} has a tag {source.tag} that names other files (commit {target[:12]}): "
            "nothing was pushed",
            "Delete that tag on the Hub, push with `pull_request=`, or to another repository",
            code="tag_exists",
        )
    return target


def _upload(
    handle: JobHandle,
    api: Any,
    source: Source,
    push: PushStart,
    difference: Difference,
) -> dict[str, Any]:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    repo, branch = push.repo, push.branch
    kind: dict[str, Any] = {"repo_id": repo, "repo_type": source.repo_type}
    if branch and difference.new_branch:
        with translated_errors(f"making the branch {branch} of {repo}"):
            # At the very commit that was compared: main may have moved since.
            api.create_branch(**kind, branch=branch, revision=difference.head, exist_ok=True)
    if difference.nothing:
        return {"commit": difference.head, "url": None, "tag": None, "pull_request": None}
    wanted = [*difference.added, *difference.changed]
    sizes = {path: source.files[path].stat().st_size for path in wanted}
    done, total = 0, sum(sizes.values())
    operations: list[Any] = []
    for path in wanted:
        handle.check()
        handle.report(done, total, f"uploading {path}")
        addition = CommitOperationAdd(path, source.files[path])
        with translated_errors(f"uploading {path}"):
            api.preupload_lfs_files(
                **kind,
                additions=[addition],
                revision=branch or MAIN,
                create_pr=push.pull_request,
                free_memory=False,
            )
        operations.append(addition)
        done += sizes[path]
    operations += [CommitOperationDelete(path) for path in difference.removed]
    handle.check()
    handle.report(total, total, "committing")
    with translated_errors(f"committing to {repo}"):
        commit = api.create_commit(
            **kind,
            operations=operations,
            commit_message=source.title,
            revision=branch or MAIN,
            create_pr=push.pull_request,
            parent_commit=difference.head,
        )
    return {
        "commit": commit.oid,
        "url": str(commit.commit_url),
        "tag": None,
        "pull_request": commit.pr_url,
    }


def _source(handle: JobHandle, wanted: PushStart, aside: Path) -> Source:
    if wanted.checkpoint_id is not None:
        with handle.store.read() as session:
            checkpoint = get_checkpoint(session, wanted.checkpoint_id)
            if not here(checkpoint.path).is_dir():
                raise NotFound(
                    f"{checkpoint.path} does not exist any more",
                    "train it again",
                    code="checkpoint_folder_missing",
                )
            files = checkpoint_files(session, checkpoint, aside, wanted.repo)
        name = f"checkpoint {checkpoint.id}"
        return Source(files, "model", name.replace(" ", "-"), f"InF Studio: {name}")
    with handle.store.read() as session:
        release = get_release(session, int(wanted.release_id or 0))
    require_as_exported(release, handle.check)
    tag = f"release-{release.id}-{release.content_sha256[:8]}"
    title = f"InF Studio: {release.name}, release {release.id}"
    files = files_to_push(place_of(release.path).fetch(manifest=MANIFEST))
    return Source(files, "dataset", tag, title)


def _same(local: Path, remote: Any) -> bool:
    if local.stat().st_size != remote.size:
        return False
    if remote.lfs is not None:
        return bool(file_sha256(local) == remote.lfs.sha256)
    return bool(_git_sha1(local) == remote.blob_id)


def _git_sha1(path: Path) -> str:
    def begun() -> Any:
        return hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)

    with path.open("rb") as file:
        return hashlib.file_digest(file, begun).hexdigest()


def _counted(difference: Difference) -> str:
    return ", ".join(
        f"{len(paths)} files {word}"
        for word, paths in (
            ("changed", difference.changed),
            ("gone", difference.removed),
            ("added", difference.added),
        )
        if paths
    )
