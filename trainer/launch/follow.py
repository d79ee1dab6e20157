"""`python -m trainer.launch.follow`: one of the other processes of a training.

It gets the settings and the folders from the first process, trains its share, and stores nothing
but what it uses of its machine.
"""

import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from db.errors import InfError
from db.jobs.resources import report_resources
from trainer.parallel.processes import (
    Processes,
    count_from_environment,
    end_with_the_first,
    joined_group,
    warn_of_missing_gpu,
)

log = logging.getLogger("inf.train")


def follow(processes: Processes, node: str) -> None:
    """Train together with the first process, until the first process ends it."""
    from trainer.launch.plan import groups_of
    from trainer.loop.fitting import fit
    from trainer.model.backbone import load_backbone
    from trainer.report.held_out_scores import HeldOutScores
    from trainer.settings.settings import parse_settings

    plan = processes.agree(None)
    if plan is None:
        raise InfError(
            "the first process refused the training: the reason is in its log",
            "correct it and start all processes again",
            code="training_refused_elsewhere",
        )
    settings = parse_settings(plan["settings"])
    warn_of_missing_gpu()
    with report_resources(plan["job_id"], plan["attempt"], processes.rank, node):
        groups = groups_of(Path(plan["release"]), settings, [Path(each) for each in plan["more"]])
        scoring: dict[str, Any] = {}
        if settings.fsdp == "on":  # no process has the whole model: all score together
            scores = HeldOutScores(settings, groups, check=lambda: None)
            scoring = {
                "evaluate": scores.score_now,
                "is_below_guard": scores.is_below_guard,
                "score_before": lambda model, step: scores.score_before(model),
                "score_after": lambda model, step: scores.score_after(model),
            }
        fit(
            load_backbone(settings),
            groups.training,
            settings,
            Path(plan["work"]),
            report=lambda done, total, message: None,
            stream=lambda step, values: None,
            processes=processes,
            **scoring,
        )


def follow_the_first(node: str = "") -> None:
    """Meet the others, then train with the first of them; `node` is the place in a cluster."""
    with joined_group(count_from_environment(os.environ)) as processes:
        follow(processes, node)


def main() -> int:
    """Returns the exit status (0 done, 1 failed)."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.WARNING,
        format=f"%(asctime)s process {os.environ.get('RANK')} %(levelname)s %(message)s",
    )
    for number in (signal.SIGTERM, signal.SIGINT):  # the first process decides when to stop
        signal.signal(number, signal.SIG_IGN)
    end_with_the_first()
    try:
        follow_the_first()
    except (InfError, RuntimeError) as error:
        log.error("%s", error)
        return 1
    return 0


def leave(status: int) -> NoReturn:
    """End the process without Python's own end, which gloo's threads may abort.

    Such a thread frees its last message after the training is over; where that message holds a
    tensor known to Python, and Python is ending, the thread ends the process ("terminate called
    without an active exception"), and torchrun takes the finished training for a failed one.
    """
    logging.shutdown()
    os._exit(status)


if __name__ == "__main__":
    leave(main())
