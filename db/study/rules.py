"""The rules of a study that its curator sets: pass mark, tries, hidden gold, what is too fast.

They are kept in `study.settings`; what is not set there has the default. A changed rule counts from
now on: nobody who passed the training is sent back to it.
"""

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy.orm import Session

from db.errors import BadInput
from db.study.assignments import GOLD_EVERY, GOLD_THRESHOLD
from db.study.qualification import MOST_ROUNDS, PASS_MARK
from db.study.speed import TOO_FAST_SECONDS
from db.study.studies import get_study
from db.tables import Study

GOLD_ACTIONS = ("warn", "pause")
MOST_GOLD_EVERY = 1000
MOST_TRAINING_ROUNDS = 100
MOST_FAST_SECONDS = 600.0


@dataclass(frozen=True)
class StudyRules:
    """The rules as they hold; shares from 0 to 1, `gold_every` in items between two gold ones."""

    pass_mark: float = PASS_MARK
    training_rounds: int = MOST_ROUNDS
    gold_threshold: float = GOLD_THRESHOLD
    gold_action: str = "warn"
    gold_every: int = GOLD_EVERY
    too_fast_seconds: float = TOO_FAST_SECONDS
    members_only: bool = False


def rules_of(study: Study) -> StudyRules:
    """The rules that hold in a study."""
    return StudyRules(**{name: study.settings.get(name, default) for name, default in DEFAULTS})


def set_rules(session: Session, study_id: int, **changes: Any) -> StudyRules:
    """Change some rules of a study. Returns all. Does not commit.

    Raises BadInput naming the rule, its value and what it may be.
    """
    study = get_study(session, study_id)
    for name, value in changes.items():
        _check(name, value)
    study.settings = {**study.settings, **changes}
    session.flush()
    return rules_of(study)


DEFAULTS = tuple(asdict(StudyRules()).items())


def _check(name: str, value: Any) -> None:
    ranges: dict[str, tuple[float, float]] = {
        "pass_mark": (0, 1),
        "gold_threshold": (0, 1),
        "training_rounds": (1, MOST_TRAINING_ROUNDS),
        "gold_every": (1, MOST_GOLD_EVERY),
        "too_fast_seconds": (0, MOST_FAST_SECONDS),
    }
    if name not in dict(DEFAULTS):
        raise BadInput(f"no rule {name!r}: one of {', '.join(dict(DEFAULTS))}")
    if name == "gold_action" and value not in GOLD_ACTIONS:
        raise BadInput(f"gold_action {value!r}: {' or '.join(GOLD_ACTIONS)}")
    if name in ranges:
        least, most = ranges[name]
        if not least <= value <= most:
            raise BadInput(f"{name} {value:g}: from {least:g} to {most:g}")
