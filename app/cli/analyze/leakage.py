"""`inf analyze leakage`: can a run's negatives be recognised by how they are written?"""

import click

from app.cli.kit.report import Result, command_actor, detach_option, reporting, waited
from app.operations import runs
from curation.run.leakage import auc_text, leaking_sentence
from curation.run.shared_parts import shared_sentence
from curation.run.starting import RunWork


def _shown(result: Result) -> str:
    report = result["leakage"]
    rows = [
        f"{name}: AUC {auc_text(found)}, {found['pairs']:,} pairs"
        + (f"; by length alone {found['length_auc']:.3f}" if found["auc"] is not None else "")
        for name, found in report["comparisons"].items()
    ]
    sentences = [leaking_sentence(report), shared_sentence(result.get("shared_parts"))]
    return "\n".join([*rows, *filter(None, sentences)])


@click.command()
@click.option("--run", "run_id", type=int, required=True, help="The run to check.")
@detach_option
@reporting(_shown)
def leakage(run_id: int, detach: bool) -> Result:
    """Check a run, also an earlier one, for style that gives negatives away, and shared parts."""
    wanted = RunWork(run_id=run_id, only="leakage")
    return runs.work_on(command_actor(), wanted, waited(detach=detach, title="leakage"))
