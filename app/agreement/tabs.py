"""The tabs below the verdict of the Agreement page: what is in one is read when it is opened."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from analysis.agreement.judgment_filter import decisions_of
from app.agreement.actions import read_consensus, read_profiles, read_thresholds
from app.agreement.consensus import draw_consensus
from app.agreement.disagreement import draw_disagreement
from app.agreement.judges import draw_judges
from app.agreement.over_time import draw_over_time
from app.agreement.plan import draw_plan
from app.agreement.report import draw_pairs
from app.agreement.verdict import draw_about_run, draw_thresholds
from app.kit.figure import Origin
from app.kit.page import draw_tabs
from db.study.items import ItemPlace
from db.study.judgments import JudgmentRow


@dataclass(frozen=True)
class Results:
    """A study's results, of the judgments that the filters leave.

    about: what the study says about its run, None where it has none or items are left out of the
    figures. left_out: those items. version: of all the study's judgments and its run's verdicts.
    """

    study_id: int
    rows: list[JudgmentRow]
    report: dict[str, Any]
    windows: Any
    about: dict[str, Any] | None
    places: dict[int, ItemPlace]
    hidden: set[int]
    left_out: frozenset[int]
    command: str
    origin: Origin
    version: tuple[object, ...]


def draw_result_tabs(found: Results) -> None:
    """Pairs and the whole run, where there are any; then over time, judges and items."""
    parts: dict[str, Callable[[], object]] = {}
    if any(pair["items"] for pair in found.report["pairs"]):
        parts["Pairs"] = partial(draw_pairs, found.report, found.origin)
    if found.about is not None and found.about["known"]:
        parts["Whole run"] = partial(_draw_run, found, found.about)
    over_time = replace(found.origin, command=f"{found.command} --over-time")
    parts |= {
        "Over time": partial(draw_over_time, found.windows, over_time),
        "Judges": partial(_draw_judges, found),
        "Items": partial(_draw_items, found),
    }
    draw_tabs(parts, key="agreement.tab")


def _draw_run(found: Results, about: dict[str, Any]) -> None:
    study = f"inf study {{}} --study {found.study_id} --json"
    draw_about_run(about, replace(found.origin, command=study.format("estimate")))
    draw_plan(found.study_id)
    stricter = replace(found.origin, command=study.format("thresholds"))
    draw_thresholds(read_thresholds(found.study_id, found.version), stricter)


def _draw_judges(found: Results) -> None:
    profiles = read_profiles(found.study_id, found.report)
    draw_judges(profiles, replace(found.origin, command=f"{found.command} --by-judge"))
    draw_consensus(
        read_consensus(found.study_id, found.left_out, found.version),
        found.hidden,
        replace(found.origin, command=f"inf study consensus --study {found.study_id} --json"),
    )


def _draw_items(found: Results) -> None:
    draw_disagreement(decisions_of(found.rows), found.places, found.origin, hidden=found.hidden)
