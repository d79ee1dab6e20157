"""The quality line of Home: what was measured, how good that is, and by which rule. Pure.

A light is never its colour alone: it has an icon, a word and the rule that set it. What is not
measured is "not known", never good.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from analysis.figures.paired import Difference
from app.text.numbers import counted

Level = Literal["good", "look", "problem", "unknown"]

MIN_FINISHED: Final = 20  # groups; of fewer a share says little
GOOD_KEPT, LOW_KEPT = 0.5, 0.2
GOOD_PRECISION: Final = 0.8
GOOD_KAPPA, LOW_KAPPA = 0.6, 0.4  # "substantial" and "moderate" of Landis and Koch (1977)
MIN_ITEMS: Final = 30  # judged by two; of fewer kappa says little
HIDDEN = "You judge in this study: its figures show once it is closed."
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
    """The six figures in the order of the work."""

    kept: Light
    leakage: Light
    precision: Light
    people: Light
    model: Light
    flip: Light

    @property
    def lights(self) -> tuple[Light, ...]:
        """All figures, in the order of the work."""
        return (self.kept, self.leakage, self.precision, self.people, self.model, self.flip)


def kept_light(run_id: int | None, pairs: int, kept: int, dropped: int) -> Light:
    """The share of a run's finished groups that were kept."""
    label, finished = "Pairs kept", kept + dropped
    rule = f"good from {GOOD_KEPT:.0%}, a problem below {LOW_KEPT:.0%}"
    if run_id is None or not finished:
        return Light(label, "–", "unknown", "No group is finished yet.", "curate")
    share = kept / finished
    about = f"{kept:,} of {counted(finished, 'finished group')} from {counted(pairs, 'pair')}"
    parameters = {"run": str(run_id)}
    if finished < MIN_FINISHED:
        why = f"{about}; fewer than {MIN_FINISHED} say little."
        return Light(label, f"{share:.0%}", "unknown", why, "curate", parameters)
    level: Level = "good" if share >= GOOD_KEPT else "problem" if share < LOW_KEPT else "look"
    return Light(label, f"{share:.0%}", level, f"{about}; {rule}.", "curate", parameters)


def leakage_light(run_id: int | None, report: Mapping[str, Any] | None) -> Light:
    """The highest AUC of a classifier that sees one text alone."""
    label = "Leakage, AUC"
    parameters = {} if run_id is None else {"run": str(run_id)}
    if report is None:
        why = "Measured when a run is done."
        return Light(label, "–", "unknown", why, "curate", parameters)
    measured = {
        name: float(one["auc"])
        for name, one in report["comparisons"].items()
        if one["auc"] is not None
    }
    if not measured:
        reason = next((one.get("reason", "") for one in report["comparisons"].values()), "")
        why = f"Not measured: {reason or 'nothing to compare'}."
        return Light(label, "–", "unknown", why, "curate", parameters)
    worst = max(measured, key=lambda name: measured[name])
    why = (
        f"Highest of {counted(len(measured), 'comparison')} ({worst}): can style alone separate "
        f"negatives from positives? 0.5 is chance, a problem above {report['warn_above']:g}."
    )
    level: Level = "problem" if report["leaks"] else "good"
    return Light(label, f"{measured[worst]:.2f}", level, why, "curate", parameters)


def precision_light(study_id: int | None, about: Mapping[str, Any] | None, why_not: str) -> Light:
    """The share of items in kept groups that people confirm, with its interval."""
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
    if not found["interval"]:
        why = f"{basis}: too few for an interval."
        return Light(label, value, "look", why, "agreement", parameters)
    low, high = found["interval"]
    level: Level = (
        "good" if low >= GOOD_PRECISION else "problem" if high < GOOD_PRECISION else "look"
    )
    rule = f"good when the whole interval is above {GOOD_PRECISION:.0%}"
    value = f"{value} [{low:.0%}, {high:.0%}]"
    return Light(label, value, level, f"{basis}; {rule}.", "agreement", parameters)


def kappa_light(
    label: str,
    study_id: int | None,
    mean: Mapping[str, Any] | None,
    items: int,
    *,
    why_not: str,
    simulated: bool = False,
) -> Light:
    """A mean kappa with the number of items behind it."""
    parameters = {} if study_id is None else {"study": str(study_id)}
    if mean is None or mean["kappa"] is None:
        reason = why_not or f"Undefined: {(mean or {}).get('reason', 'nobody has judged')}."
        return Light(label, "–", "unknown", reason, "agreement", parameters)
    kappa = float(mean["kappa"])
    value, about = f"{kappa:.2f} (n = {items:,})", f"Cohen's kappa over {counted(items, 'item')}"
    if simulated:
        return Light(label, value, "look", f"{about}. {SIMULATED}", "agreement", parameters)
    if kappa < LOW_KAPPA:
        level: Level = "problem"
    else:
        level = "good" if kappa >= GOOD_KAPPA and items >= MIN_ITEMS else "look"
    rule = (
        f"good from {GOOD_KAPPA:g} over at least {MIN_ITEMS} items, a problem below {LOW_KAPPA:g}"
    )
    return Light(label, value, level, f"{about}; 0 is chance, {rule}.", "agreement", parameters)


def flip_light(
    base: float | None, trained: float | None, difference: Difference | None, why_not: str
) -> Light:
    """Instruction flip of the newest trained model, and its difference to the base model."""
    label = "Instruction flip"
    if trained is None:
        return Light(label, "–", "unknown", why_not, "evaluations")
    if base is None or difference is None or difference.value is None:
        reason = why_not or (difference.reason if difference else "") or "no base model evaluated"
        why = f"Not compared with the base model: {reason}."
        return Light(label, f"{trained:.2f}", "unknown", why, "evaluations")
    value = f"{base:.2f} → {trained:.2f}"
    about = (
        "Groups in which another instruction changes the ranking, base → newest trained model: "
        f"{difference.value:+.2f}"
    )
    if difference.low is None or difference.high is None:
        return Light(label, value, "look", f"{about}, without an interval.", "evaluations")
    level: Level = "good" if difference.low > 0 else "problem" if difference.high <= 0 else "look"
    interval = f"[{difference.low:+.2f}, {difference.high:+.2f}]"
    return Light(
        label, value, level, f"{about} {interval}; good when all of it is above 0.", "evaluations"
    )
