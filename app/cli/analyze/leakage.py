"""`inf analyze leakage`: can a run's negatives be recognised by how they are written?"""

import click

from app.cli.kit.report import Result, detach_option, ready_store, reporting, work
from curation.run.leakage import auc_text, leaking_sentence
from curation.run.shared_parts import shared_sentence
from curation.run.starting import leakage_config
from db.run.runs import get_run


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
    store = ready_store()
    with store.read() as session:
        get_run(session, run_id)
    return work(store, "curate", leakage_config(run_id), detach=detach, title="leakage")
