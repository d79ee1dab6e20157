"""`inf analyze`: agreement, diversity and coverage. One module per subject next to this one."""

import click

from app.cli.analyze.agreement import agreement
from app.cli.analyze.coverage import coverage
from app.cli.analyze.diversity import diversity
from app.cli.analyze.leakage import leakage
from app.cli.analyze.overlaps import contamination, near_duplicates
from app.cli.analyze.validators import validators


@click.group()
def analyze() -> None:
    """Agreement of judges, diversity and coverage of texts."""


for command in (
    agreement,
    diversity,
    coverage,
    near_duplicates,
    contamination,
    leakage,
    validators,
):
    analyze.add_command(command)
