"""Pushing a release or a checkpoint to the Hub: the difference first, then file by file.

Nothing that is there is silently overwritten: where the repository holds other content, the push
goes to a branch or a pull request, or says by `replace` that it may. Large files are uploaded one
by one before the commit, and the Hub is asked which it has: a push that broke off goes on there.
The commit names the head it was compared with: whoever pushed meanwhile is not overwritten either.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.hub import connect, in_our_words
from curation.release_files import file_sha256
from db.accounts import record_audit
from db.checkpoints import get_checkpoint
from db.errors import BadInput, NotFound, Refused
from db.job_runner import JobHandle
from db.releases import get_release

LEFT_ALONE = (".gitattributes",)
MAIN = "main"


@dataclass(frozen=True)
class Source:
    """The folder to push and what it is."""

    folder: Path
    repo_type: str
    tag: str
    title: str


@dataclass(frozen=True)
class Difference:
    """What a push would do to a repository's files."""

    added: Sequence[str]
    changed: Sequence[str]
    removed: Sequence[str]
    unchanged: Sequence[str]
    exists: bool
    head: str | None

    @property
    def nothing(self) -> bool:
        return not (self.added or self.changed or self.removed)

    @property
    def only_adds(self) -> bool:
        return not (self.changed or self.removed or self.unchanged)

    def as_json(self) -> dict[str, Any]:
        return {
            "added": list(self.added),
            "changed": list(self.changed),
            "removed": list(self.removed),
            "unchanged": list(self.unchanged),
            "repository_exists": self.exists,
        }


def push(handle: JobHandle) -> dict[str, Any]:
    """The handler of `push` jobs.

    Config: release_id or checkpoint_id, repo, public, dry_run, and one of replace, branch,
    pull_request.
    """
    config = handle.config
    source = _source(handle)
    api, _ = connect(writing=True)
    repo = str(config["repo"])
    if repo.count("/") != 1:
        raise BadInput(f"{repo!r}: a repository is named USER/NAME")
    branch = config.get("branch") or None
    handle.report(0, None, "comparing")
    difference = compare(api, source, repo, branch)
    result = {
        "repo": repo,
        "repo_type": source.repo_type,
        "title": source.title,
        "dry_run": bool(config.get("dry_run")),
        **difference.as_json(),
    }
    if config.get("dry_run"):
        return {**result, "pushed": False}
    aside = bool(branch or config.get("pull_request"))
    if not (difference.only_adds or difference.nothing or aside or config.get("replace")):
        raise Refused(
            f"{repo} holds something else ({_counted(difference)}): look with --dry-run, then "
            "push with --pull-request, to another --branch, or with --replace"
        )
    told = _upload(handle, api, source, repo, branch, difference)
    with handle.store.write() as session:
        record_audit(
            session, handle.started_by, "push", source.title, repo=repo, commit=told["commit"]
        )
        session.commit()
    return {**result, **told, "pushed": True}


def compare(api: Any, source: Source, repo: str, branch: str | None) -> Difference:
    """What the repository holds against what the folder holds."""
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    local = _local_files(source.folder)
    remote: dict[str, Any] = {}
    exists, head = True, None
    with in_our_words(f"looking at {repo}"):
        try:
            head = api.repo_info(repo, repo_type=source.repo_type, revision=branch or MAIN).sha
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
    )


def _upload(
    handle: JobHandle,
    api: Any,
    source: Source,
    repo: str,
    branch: str | None,
    difference: Difference,
) -> dict[str, Any]:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    pull_request = bool(handle.config.get("pull_request"))
    kind: dict[str, Any] = {"repo_id": repo, "repo_type": source.repo_type}
    with in_our_words(f"making {repo}"):
        if not difference.exists:
            api.create_repo(**kind, private=not handle.config.get("public", False))
        if branch and difference.head is None:
            api.create_branch(**kind, branch=branch, exist_ok=True)
    if difference.nothing:
        return {"commit": difference.head, "url": None, "tag": None, "pull_request": None}
    wanted = [*difference.added, *difference.changed]
    sizes = {path: (source.folder / path).stat().st_size for path in wanted}
    done, total = 0, sum(sizes.values())
    operations: list[Any] = []
    for path in wanted:
        handle.check()
        handle.report(done, total, f"uploading {path}")
        addition = CommitOperationAdd(path, source.folder / path)
        with in_our_words(f"uploading {path}"):
            api.preupload_lfs_files(
                **kind,
                additions=[addition],
                revision=branch or MAIN,
                create_pr=pull_request,
                free_memory=False,
            )
        operations.append(addition)
        done += sizes[path]
    operations += [CommitOperationDelete(path) for path in difference.removed]
    handle.check()
    handle.report(total, total, "committing")
    with in_our_words(f"committing to {repo}"):
        commit = api.create_commit(
            **kind,
            operations=operations,
            commit_message=source.title,
            revision=branch or MAIN,
            create_pr=pull_request,
            parent_commit=difference.head,
        )
    tag = None
    if not pull_request:
        tag = source.tag
        with in_our_words(f"tagging {repo}"):
            api.create_tag(**kind, tag=tag, revision=commit.oid, exist_ok=True)
    return {
        "commit": commit.oid,
        "url": str(commit.commit_url),
        "tag": tag,
        "pull_request": commit.pr_url,
    }


def _source(handle: JobHandle) -> Source:
    with handle.store.read() as session:
        if handle.config.get("checkpoint_id") is not None:
            checkpoint = get_checkpoint(session, int(handle.config["checkpoint_id"]))
            name = f"checkpoint {checkpoint.id}"
            source = Source(
                Path(checkpoint.path), "model", name.replace(" ", "-"), f"InF Studio: {name}"
            )
        else:
            release = get_release(session, int(handle.config["release_id"]))
            tag = f"release-{release.id}-{release.content_sha256[:8]}"
            source = Source(
                Path(release.path),
                "dataset",
                tag,
                f"InF Studio: {release.name}, release {release.id}",
            )
    if not source.folder.is_dir():
        raise NotFound(f"{source.folder} is no longer there: export or train it again")
    return source


def _local_files(folder: Path) -> dict[str, Path]:
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.relative_to(folder).as_posix().startswith(".")
    }


def _same(local: Path, remote: Any) -> bool:
    if local.stat().st_size != remote.size:
        return False
    if remote.lfs is not None:
        return bool(file_sha256(local) == remote.lfs.sha256)
    return bool(_git_sha1(local) == remote.blob_id)


def _git_sha1(path: Path) -> str:
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


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
