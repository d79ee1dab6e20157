"""`inf study work`: the time and work report per person and study."""

from dataclasses import asdict, fields
from datetime import date, datetime

import click

from analysis.files.csv_writer import csv_text
from app.cli.kit.report import Result, ready_store, reporting
from db.study.work import PersonsWork, work_report

DAY = click.DateTime(["%Y-%m-%d"])


def _day(value: datetime | None) -> date | None:
    return None if value is None else value.date()


def _table(result: Result) -> str:
    """CSV, as a spreadsheet reads it."""
    return csv_text(result["work"], [field.name for field in fields(PersonsWork)]).rstrip("\n")


@click.command("work")
@click.option("--study", "study_id", type=int, help="Id of one study; by default all.")
@click.option("--since", type=DAY, help="First day, UTC.")
@click.option("--until", type=DAY, help="Last day, UTC.")
@reporting(_table)
def work_of_people(study_id: int | None, since: datetime | None, until: datetime | None) -> Result:
    """Report active minutes, items, gold and qualification per person and study, as CSV."""
    with ready_store().read() as session:
        found = work_report(session, study_id=study_id, since=_day(since), until=_day(until))
    return {"work": [_as_row(each) for each in found]}


def _as_row(each: PersonsWork) -> dict[str, object]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(each).items()
    }
