"""The rules of a study, set by its curator: pass mark, rounds, hidden gold, too fast answers.

They are stored in `study.settings`; what is not set there has the default. A changed rule holds
from then on: a judge who has passed the qualification stays qualified.
"""

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy.orm import Session

from db.errors import BadInput
from db.study.studies import get_study
from db.tables import Study

PASS_MARK = 0.8
DEFAULT_ROUNDS = 3
GOLD_THRESHOLD = 0.7
GOLD_SEEN = 3  # below three answers, one mistake would already pause or flag a judge
TOO_FAST_SECONDS = 1.5
EXAMPLES_PER_ROUND = 5
MAX_EXAMPLES_PER_ROUND = 1000
GOLD_ACTIONS = ("warn", "pause")
MAX_ROUNDS = 100
MAX_TOO_FAST_SECONDS = 600.0


@dataclass(frozen=True)
class StudyRules:
    """The rules in effect; shares from 0 to 1.

    `training_items`: examples in a round of the qualification; every round has others.
    `closes_when_done`: the last answer closes the study, so that answers are final.
    """

    pass_mark: float = PASS_MARK
    training_rounds: int = DEFAULT_ROUNDS
    training_items: int = EXAMPLES_PER_ROUND
    gold_threshold: float = GOLD_THRESHOLD
    gold_action: str = "warn"
    too_fast_seconds: float = TOO_FAST_SECONDS
    members_only: bool = False
    closes_when_done: bool = False


def rules_of(study: Study) -> StudyRules:
    """The rules in effect in a study."""
    return StudyRules(**{name: study.settings.get(name, default) for name, default in DEFAULTS})


def fails_gold(right: int, seen: int, rules: StudyRules) -> bool:
    """Whether this many right gold items of those seen are below the required share."""
    return seen >= GOLD_SEEN and right < rules.gold_threshold * seen


def set_rules(session: Session, study_id: int, **changes: Any) -> StudyRules:
    """Change some rules of a study. Returns all. Does not commit.

    Raises BadInput with the rule, its value and the permitted values.
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
        "training_rounds": (1, MAX_ROUNDS),
        "training_items": (1, MAX_EXAMPLES_PER_ROUND),
        "too_fast_seconds": (0, MAX_TOO_FAST_SECONDS),
    }
    if name not in dict(DEFAULTS):
        raise BadInput(
            f"no rule {name!r}", f"one of {', '.join(dict(DEFAULTS))}", code="rule_unknown"
        )
    if name == "gold_action" and value not in GOLD_ACTIONS:
        raise BadInput(
            f"gold_action {value!r}: {' or '.join(GOLD_ACTIONS)}", code="gold_action_unknown"
        )
    if name in ranges:
        minimum, maximum = ranges[name]
        if not minimum <= value <= maximum:
            raise BadInput(
                f"{name} {value:g}: from {minimum:g} to {maximum:g}", code="rule_out_of_range"
            )
