"""`inf studies tasks|export|report`: items for other tools, grades as files, the report."""

from pathlib import Path

import click

from analysis.files.document import to_html, to_pdf
from analysis.files.written import write_files
from app.cli.kit.doors import Noun
from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, counts, facts, reporting
from app.operations.judging import agreement
from app.operations.judging import report as reports
from app.operations.judging import studies as operations
from curation.judging.request import StudyExport, StudyReport, StudyTasks

out_option = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="A folder; files of these names that it has are not replaced.",
)


def _written(result: Result) -> str:
    return (
        f"{', '.join(result['files'])} in {result['out']}\n"
        f"next: inf import --study {result['study_id']} --judgments EXPORT, with the tool's export"
    )


def add_to(studies: Noun) -> None:
    """Add the commands to those of studies."""
    for command in (tasks, export, report):
        studies.add_command(command)


@click.command()
@request_options(StudyTasks)
@out_option
@reporting(_written)
def tasks(request: StudyTasks, out: Path) -> operations.TasksWritten:
    """Write a study's items as tasks of another annotation tool, with its labelling config.

    Passages are shuffled, and no task shows what one was made to be. What the tool exports comes
    back by inf import --judgments.
    """
    names = write_files(out, operations.tasks(command_actor(), request))
    return operations.TasksWritten.of(request, out=str(out), files=names)


_exported = facts(
    *(("study", "study_id"), "question", ("judge", lambda done: done["judge"] or "most people")),
    *(("grades", lambda done: counts(done["grades"])), ("qrels", "qrels")),
    ("training rows", lambda done: f"{done['rows']:,} of {done['records']:,} records"),
    *(("left out", lambda done: counts(done["left_out"])), ("folder", "out")),
    (
        "next",
        lambda done: (
            f"inf train --release {done['out']}, or inf evaluate --benchmark {done['out']}"
        ),
    ),
)


@click.command()
@request_options(StudyExport)
@out_option
@reporting(_exported)
def export(request: StudyExport, out: Path) -> agreement.StudyExportWritten:
    """Export the grades of a study's passages: qrels, a benchmark folder, and rows to train on.

    A passage with the grade that violates the instruction is a negative of the query with its
    instruction, one of a positive grade a positive. What people do not agree on is left out.
    """
    files, report = agreement.export(command_actor(), request)
    return agreement.StudyExportWritten.of(report, out=str(out), files=write_files(out, files))


def _reported(result: Result) -> str:
    if result["out"]:
        return f"report of study {result['study_id']}: {result['out']}"
    lines = [result["title"], result["lead"]]
    for section in result["sections"]:
        lines += ["", section["title"], *section["sentences"]]
        for table in section["tables"]:
            rows = (table["columns"], *table["rows"]) if any(table["columns"]) else table["rows"]
            lines += [table["caption"]] * bool(table["caption"])
            lines += ["  ".join(cell for cell in row if cell) for row in rows]
    return "\n".join(lines)


@click.command()
@request_options(StudyReport)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file, .html or .pdf, instead of printing it.",
)
@reporting(_reported)
def report(request: StudyReport, out: Path | None) -> reports.StudyReported:
    """Report a study: design, judges, agreement with intervals, validity, disagreements with
    examples, what was adjudicated, limits."""
    if out is not None and out.suffix not in (".html", ".pdf"):
        raise click.UsageError(f"--out {out}: a file is .html or .pdf")
    found = reports.report(command_actor(), request)
    if out is not None:
        content = to_html(found) if out.suffix == ".html" else to_pdf(found)
        write_files(out.parent, {out.name: content}, replace=True)
    return reports.StudyReported.of(found, study_id=request.study_id, out=str(out or ""))
