"""The options of `inf analyze` that select texts, and the launch of what they select."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from analysis.files.corpora import read_texts
from analysis.request import CorporaChosen
from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, waited
from app.operations.analyses import start

FILE = click.Path(dir_okay=False, exists=True, resolve_path=True)
PLACE = click.Path(exists=True, resolve_path=True)
FILES = {"texts": FILE, "published": PLACE, "against": PLACE}


def corpora_options(model: type[CorporaChosen]) -> Callable[..., Any]:
    """Add the options of an analysis of texts; the files among them must exist."""
    return request_options(model, types=FILES)


def started(request: CorporaChosen, *, detach: bool, title: str) -> Result:
    """Launch an analysis; unusable lines of files of texts are reported before its job begins."""
    for path in request.texts:
        read_texts(Path(path))
    return start(command_actor(), request, waited(detach=detach, title=title))
