"""What a training will do: settings, groups and folders; refusals come before a model loads."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from analysis.files.shared import TRAINING, here
from db.errors import BadInput
from db.home import home
from db.jobs.runner import JobHandle
from db.store.store import Store
from trainer.data.choosing import by_rank, choose_groups, require_order, with_confidence
from trainer.data.groups import Group
from trainer.data.judged import with_scores
from trainer.data.mixing import apart_from, mix_in, plain_keys
from trainer.data.release_files import ReleaseData, find_release, read_release
from trainer.data.splitting import Groups, set_aside_of, split_groups
from trainer.launch.request import TrainStart
from trainer.model.backbone import read_memory
from trainer.model.saving import require_free
from trainer.report.board import require_tensorboard, require_tracker
from trainer.settings.settings import TrainSettings, check_processes, parse_settings


@dataclass(frozen=True)
class Folders:
    """Where a training writes: the checkpoint, states to resume from, TensorBoard's log."""

    out: Path
    work: Path
    board: Path | None


def plan_settings(wanted: TrainStart, processes: int) -> TrainSettings:
    """The settings of a training. Raises BadInput for what cannot be trained here."""
    settings = parse_settings(wanted.settings)
    check_processes(settings, processes)
    if settings.writes_tensorboard:
        require_tensorboard()
    require_tracker(settings.report_to)
    if settings.optimizer == "adamw-8bit" and find_spec("bitsandbytes") is None:
        raise BadInput(
            "optimizer=adamw-8bit needs the package bitsandbytes",
            "pip install it",
            code="package_missing",
        )
    return settings


def plan_folders(wanted: TrainStart, settings: TrainSettings, job: JobHandle) -> Folders:
    """The folders of a job; of the checkpoint what another machine completed is fetched.

    Where a job of this number, before the store was restored, has its checkpoint, it stays.

    Raises Refused where that holds something else, InfError where INF_FILES cannot be read.
    """
    name = f"job-{job.id}"
    out = Path(wanted.out or home() / "checkpoints" / name).expanduser().resolve()
    there = read_memory(str(here(out)))
    if there and there.get("job") != job.key and not wanted.out:
        out = here(out.with_name(job.key))
    require_free(out, job.key)
    board = home() / "tensorboard" / name if settings.writes_tensorboard else None
    work = home() / TRAINING / job.key
    with suppress(FileNotFoundError):  # of the version before, unless of a job before a restore
        older = work.with_name(name)
        if older.stat().st_mtime >= job.created_at.timestamp() and not work.exists():
            older.rename(work)
    return Folders(out, work, board)


def plan_groups(store: Store, release: str, settings: TrainSettings) -> Groups:
    """The groups of a training's releases, the main one split. Raises NotFound or BadInput.

    release: folder or number of the main one.
    """
    more = [find_release(store, name) for name, _ in settings.extra_releases]
    return groups_of(find_release(store, release), settings, more)


def _require_negatives_read(settings: TrainSettings) -> None:
    """Raise BadInput where a training would not read the negatives that rows have of their own."""
    if settings.trained_side == "query":
        raise BadInput(
            "trained_side=query contrasts the passages of scenarios alone, and these rows have "
            "negatives of their own",
            "leave out trained_side",
            code="negatives_need_trained_passages",
        )
    if "P" in settings.parsed_objective.terms and not settings.parsed_objective.reads_negatives:
        raise BadInput(
            f"objective={settings.objective} reads no passages besides those of scenarios, and "
            "these rows have negatives of their own",
            "Train with `objective=P`",
            code="negatives_need_term",
        )


def groups_of(folder: Path, settings: TrainSettings, more: Sequence[Path] = ()) -> Groups:
    """The same in every process: both sides depend on the files and the settings alone.

    more: the folders of the settings' further releases, in their order.
    """
    release = read_release(folder)
    settings.parsed_objective.require_contrast(release.shape)
    if any(group.negatives for group in release.groups):
        _require_negatives_read(settings)
    training, held_out = split_groups(
        release,
        fraction=settings.held_out,
        seed=settings.held_out_seed,
        include_dropped=settings.dropped == "include",
        held_out_groups=settings.held_out_groups,
        held_out_judge=settings.held_out_judge,
    )
    sides = set_aside_of(release, fraction=settings.held_out, seed=settings.held_out_seed)
    others = [read_release(path) for path in more]
    away = [group for group, is_out in zip(release.groups, sides, strict=True) if is_out]
    away += [group for other in others for group in other.groups if group.set_aside]
    keys = plain_keys(away) if others else frozenset()
    own = apart_from(keys, training)
    if not own:
        raise BadInput(
            f"more_releases: every group of {folder} that could train shares a query or passage "
            "with a group that another release holds out",
            "train on that release instead",
            code="more_releases_all_overlap",
        )
    has_order = settings.curriculum != "off"
    together = _with_order(own, release, is_one_of=len(others) + 1) if has_order else own
    if judge := settings.judging_teacher:
        together = with_scores(together, release, judge, "teacher")
    mixed = []
    for other, (_, weight) in zip(others, settings.extra_releases, strict=True):
        recorded, groups = mix_in(
            other,
            weight,
            shape=release.shape,
            away_from=keys,
            include_dropped=settings.dropped == "include",
        )
        if has_order:
            groups = _with_order(groups, other, is_one_of=len(others) + 1)
        if judge:
            groups = with_scores(groups, other, judge, None)
        together = [*together, *groups]
        mixed.append(recorded)
    if has_order:
        require_order(together)
    chosen = choose_groups(together, settings.max_groups, settings.seed)
    if judge and not any(group.judged for group in chosen):
        raise BadInput(
            f"teacher={settings.teacher}: of no group that would train did this judge judge "
            "every scenario",
            "let it judge them in studies and export again",
            code="teacher_judgments_missing",
        )
    return Groups(release, chosen, held_out, tuple(mixed), len(training) - len(own))


def _with_order(groups: list[Group], release: ReleaseData, *, is_one_of: int) -> list[Group]:
    found = with_confidence(groups, release)
    return by_rank(found) if is_one_of > 1 else found
