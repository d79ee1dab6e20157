"""The quality line of Home: what was measured, how good that is, and by which rule. Pure.

A light is never its colour alone: it has an icon, a word and the rule that set it. What is not
measured is "not known", never good.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from analysis.agreement.flagged import flag_sentence
from analysis.figures.paired import Difference
from analysis.found.runs import LeakageReport
from analysis.study import run_text
from app.text.numbers import counted
from app.text.remedies import in_pages

Level = Literal["good", "look", "problem", "unknown"]

MIN_FINISHED: Final = 20  # groups; of fewer a share says little
GOOD_KEPT, LOW_KEPT = 0.5, 0.2
GOOD_PRECISION: Final = 0.8
GOOD_AGREEMENT, LOW_AGREEMENT = 0.6, 0.4  # "substantial" and "moderate" of Landis and Koch (1977)
MIN_ITEMS: Final = 30  # judged by two; of fewer a coefficient says little
HIDDEN = "You judge in this study: its figures show once it is closed."
TOO_MANY = "Too many judgments or groups to compute here: compute them on the Agreement page."
SIMULATED = "Simulated judges: a demonstration, not evidence."


@dataclass(frozen=True)
class Light:
    """A figure: its label, its value, how good it is, why, and the page that shows more."""

    label: str
    value: str
    level: Level
    why: str
    view: str
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Quality:
    """The six figures in the order of the work; None for who lacks the right to see one, which
    is not the same as "not measured"."""

    kept: Light | None
    leakage: Light | None
    precision: Light | None
    people: Light | None
    model: Light | None
    flip: Light | None

    @property
    def lights(self) -> tuple[Light, ...]:
        """The figures that the user may see, in the order of the work."""
        every = (self.kept, self.leakage, self.precision, self.people, self.model, self.flip)
        return tuple(light for light in every if light is not None)


def kept_light(
    run_id: int | None, pairs: int, kept: int, dropped: int, *, is_done: bool = False
) -> Light:
    """The share of a run's finished groups that were kept. `is_done`: no group will follow."""
    label, finished = "Pairs kept", kept + dropped
    rule = f"good from {GOOD_KEPT:.0%}, a problem below {LOW_KEPT:.0%}"
    if run_id is None or not finished:
        return Light(label, "–", "unknown", "No group is finished yet.", "curate")
    share = round(kept / finished, 2)  # rated as printed: "60%" is not below "good from 60%"
    about = f"{kept:,} of {counted(finished, 'finished group')} from {counted(pairs, 'pair')}"
    parameters = {"run": str(run_id)}
    if finished < MIN_FINISHED:
        why = f"{about}; fewer than {MIN_FINISHED} say little."
        too_few: Level = "look" if is_done or finished >= pairs else "unknown"
        return Light(label, f"{share:.0%}", too_few, why, "curate", parameters)
    level: Level = "good" if share >= GOOD_KEPT else "problem" if share < LOW_KEPT else "look"
    return Light(label, f"{share:.0%}", level, f"{about}; {rule}.", "curate", parameters)


def leakage_light(run_id: int | None, report: LeakageReport | None, outdated: str = "") -> Light:
    """The highest AUC of a classifier that sees one text alone; not of an outdated report.

    "look" where the check of a run that is done had too few texts: it will not get more.
    """
    label = "Leakage, AUC"
    parameters = {} if run_id is None else {"run": str(run_id)}
    if report is None:
        why = "Measured when a run is done."
        return Light(label, "–", "unknown", why, "curate", parameters)
    if outdated:
        why = f"Outdated: {in_pages(outdated)}."
        return Light(label, "–", "unknown", why, "curate", parameters)
    measured = {name: one.auc for name, one in report.comparisons.items() if one.auc is not None}
    if not measured:
        reason = next((one.reason for one in report.comparisons.values()), "")
        why = f"Not measured: {reason or 'nothing to compare'}."
        return Light(label, "–", "look", why, "curate", parameters)
    worst = max(measured, key=lambda name: measured[name])
    why = (
        f"Highest of {counted(len(measured), 'comparison')} ({worst}): can style alone separate "
        f"negatives from positives? 0.5 is chance, a problem above {report.warn_above:g}."
    )
    level: Level = "problem" if report.leaks else "good"
    return Light(label, f"{measured[worst]:.2f}", level, why, "curate", parameters)


def precision_light(study_id: int | None, about: Mapping[str, Any] | None, why_not: str) -> Light:
    """The share of items in kept groups that people confirm, with its interval.

    With people flagged among them it is never good, and the share without them is in the reason.
    """
    label = "Validator precision"
    parameters = {} if study_id is None else {"study": str(study_id)}
    if about is None:
        return Light(label, "–", "unknown", why_not, "agreement", parameters)
    found = about["precision"]
    if found["value"] is None:
        reason = found.get("reason") or about.get("reason") or "undefined"
        if about["known"] and not about["judged"]:
            reason = "people have judged no item of the run yet"
        why = f"Not known: {reason}."
        return Light(label, "–", "unknown", why, "agreement", parameters)
    value = f"{found['value']:.0%}"
    basis = f"Items of kept groups that people confirm, {counted(found['judged'], 'group')} judged"
    if about["simulated"]:
        return Light(label, value, "look", f"{basis}. {SIMULATED}", "agreement", parameters)
    flagged = run_text.flagged(about)
    if not found["interval"]:
        why = f"{basis}: too few for an interval.{flagged}"
        return Light(label, f"{value} (too few)", "look", why, "agreement", parameters)
    low, high = (round(bound, 2) for bound in found["interval"])  # rated as printed
    level: Level = (
        "good" if low >= GOOD_PRECISION else "problem" if high < GOOD_PRECISION else "look"
    )
    if any(not each["weighted"] for each in about.get("imbalances") or ()):
        level, basis = "look", f"{basis}, no random part of the queue"
    if flagged and level == "good":
        level = "look"
    rule = f"good when the whole interval is at least {GOOD_PRECISION:.0%}"
    value = f"{value} [{low:.0%}, {high:.0%}]"
    return Light(label, value, level, f"{basis}; {rule}.{flagged}", "agreement", parameters)


def agreement_light(
    label: str,
    study_id: int | None,
    found: Mapping[str, Any] | None,
    *,
    why_not: str,
    simulated: bool = False,
    whose: str = "",
) -> Light:
    """A headline figure of agreement with the number of items behind it.

    `whose`: which judge it is of, if one. With people flagged in it, it is never good, and the
    figure without them is in the reason.
    """
    parameters = {} if study_id is None else {"study": str(study_id)}
    if found is None or found["value"] is None:
        reason = why_not or f"Undefined: {(found or {}).get('reason', 'nobody has judged')}."
        return Light(label, "–", "unknown", reason, "agreement", parameters)
    items, figure = int(found["items"]), round(float(found["value"]), 2)  # rated as printed
    value = f"{figure:.2f} (n = {items:,})"
    about = f"{found['label']} over {counted(items, 'item')}"
    about += f" with {whose}" if whose else ""
    if simulated:
        return Light(label, value, "look", f"{about}. {SIMULATED}", "agreement", parameters)
    if figure < LOW_AGREEMENT:
        level: Level = "problem"
    else:
        level = "good" if figure >= GOOD_AGREEMENT and items >= MIN_ITEMS else "look"
    flagged = flag_sentence(found, digits=2)
    if flagged and level == "good":
        level = "look"
    rule = (
        f"good from {GOOD_AGREEMENT:g} over at least {MIN_ITEMS} items, a problem below "
        f"{LOW_AGREEMENT:g}"
    )
    why = f"{about}; 0 is chance, {rule}. {flagged}".rstrip()
    return Light(label, value, level, why, "agreement", parameters)


def flip_light(
    base: float | None,
    trained: float | None,
    difference: Difference | None,
    why_not: str,
    circular: Sequence[str] = (),
    stays: str = "",
    *,
    seed: object = None,
) -> Light:
    """Instruction flip of the newest trained model, and its difference to the base model, with the
    groups gained and lost. stays: the sentence of a model whose index is still the base's.

    Never good where a model chose the groups it is measured on, or a control gains as much:
    `circular`, a sentence each. The level is that of the interval as it is printed. `seed`: of
    the training, which is one of many possible ones; means over seeds are stated elsewhere.
    """
    label, view = "Instruction flip", "evaluations"
    if trained is None:
        return Light(label, "–", "unknown", why_not, view)
    if base is None or difference is None or difference.value is None:
        reason = why_not or (difference.reason if difference else "") or "no base model evaluated"
        why = f"Not compared with the base model: {reason}."
        return Light(label, f"{trained:.2f}", "unknown", " ".join((why, *circular)), view)
    value = f"{base:.2f} → {trained:.2f}"
    about = (
        "Groups in which another instruction changes the ranking, base → newest trained model"
        + (f" (one training, seed {seed})" if seed is not None else "")
        + f": {difference.value:+.3f}"
    )
    moved = f"{counted(difference.gained, 'group')} gained, {difference.lost:,} lost."
    more = " ".join(part for part in (moved, *circular, stays) if part)
    if difference.low is None or difference.high is None:
        why = f"{about}, without an interval. {more}"
        return Light(label, value, "look", why, view)
    low, high = (round(bound, 3) + 0.0 for bound in (difference.low, difference.high))  # no -0.0
    level: Level = "good" if low > 0 else "problem" if high <= 0 else "look"
    if circular and level == "good":
        level = "look"
    why = f"{about} [{low:+.3f}, {high:+.3f}]; good when all of it is above 0. {more}"
    return Light(label, value, level, why, view)
