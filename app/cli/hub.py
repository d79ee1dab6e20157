"""`inf hub`: push releases and checkpoints to the Hugging Face Hub."""

import click

from app.cli.report import Result, detach_option, ready_store, reporting, work


@click.group()
def hub() -> None:
    """Push releases and checkpoints to the Hugging Face Hub (token: HF_TOKEN)."""


def _human(result: Result) -> str:
    rows = [
        f"  {sign} {path}"
        for sign, word in (("+", "added"), ("~", "changed"), ("-", "removed"))
        for path in result[word]
    ]
    rows.append(f"  = {len(result['unchanged'])} files as they are")
    head = f"{result['title']} → {result['repo']}"
    if result["dry_run"]:
        return "\n".join([f"{head}: nothing was pushed (dry run)", *rows])
    if result["commit"] and not result["url"]:
        return f"{head}: it is there already"
    where = result["pull_request"] or result["url"]
    tag = f", tag {result['tag']}" if result["tag"] else ""
    return "\n".join([f"{head}: pushed to {where}{tag}", *rows])


@hub.command()
@click.option("--release", "release_id", type=int, help="The release to push.")
@click.option("--checkpoint", "checkpoint_id", type=int, help="The checkpoint to push.")
@click.option("--repo", required=True, metavar="USER/NAME", help="The repository; made if missing.")
@click.option("--public", is_flag=True, help="Make a new repository public; default: private.")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.option("--pull-request", is_flag=True, help="Push as a pull request.")
@click.option("--branch", help="Push to this branch; made if missing.")
@click.option("--replace", is_flag=True, help="What the repository holds may be overwritten.")
@detach_option
@reporting(_human)
def push(
    release_id: int | None,
    checkpoint_id: int | None,
    repo: str,
    public: bool,
    dry_run: bool,
    pull_request: bool,
    branch: str | None,
    replace: bool,
    detach: bool,
) -> Result:
    """Push a release (as a data set) or a checkpoint (as a model).

    What a repository holds is never overwritten without --replace, a --branch or a
    --pull-request. A push that broke off goes on where it was when it is run again.
    """
    if (release_id is None) == (checkpoint_id is None):
        raise click.UsageError("say one of --release and --checkpoint")
    if bool(pull_request) + bool(branch) + bool(replace) > 1:
        raise click.UsageError("say one of --pull-request, --branch and --replace")
    config = {
        "release_id": release_id,
        "checkpoint_id": checkpoint_id,
        "repo": repo,
        "public": public,
        "dry_run": dry_run,
        "pull_request": pull_request,
        "branch": branch,
        "replace": replace,
    }
    return work(ready_store(), "push", config, detach=detach, title=f"pushing to {repo}")
