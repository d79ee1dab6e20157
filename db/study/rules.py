"""The rules of a study, set by its curator: pass mark, rounds, hidden gold, too fast answers.

They are stored in `study.settings`; what is not set there has the default. A changed rule holds
from then on: a judge who has passed the qualification stays qualified.
"""

from typing import Any, Literal

from sqlalchemy.orm import Session

from db.requests import Request, option
from db.study.studies import get_study
from db.tables import Study

GOLD_SEEN = 3  # below three answers, one mistake would already pause or flag a judge
SCORED_TOGETHER = 20  # answers: about two gold items where one in ten is gold


class StudyRules(Request):
    """The rules in effect in a study."""

    pass_mark: float = option(0.8, "Required share of right answers, 0 to 1.", ge=0, le=1)
    training_rounds: int = option(
        3,
        "Attempts before a judge is paused, for a curator to decide.",
        names=("--rounds",),
        title="Qualification rounds",
        ge=1,
        le=100,
    )
    training_items: int = option(
        5,
        "Examples per round, each round with others; without enough of them a judge who fails is "
        "paused until there are more.",
        names=("--per-round",),
        title="Examples per round",
        ge=1,
        le=1000,
    )
    gold_threshold: float = option(
        0.7,
        "Required gold accuracy, 0 to 1.",
        names=("--threshold",),
        title="Required gold accuracy",
        ge=0,
        le=1,
    )
    gold_action: Literal["warn", "pause"] = option(
        "warn",
        "Below the threshold: warn the curator, or pause the judge. Gold answers are scored after "
        f"every {SCORED_TOGETHER} answers, so that a pause does not reveal a gold item.",
        names=("--action",),
        title="If below threshold",
    )
    too_fast_seconds: float = option(
        1.5,
        "Faster answers are counted as too fast.",
        names=(),
        title="Minimum seconds per item",
        ge=0,
        le=600,
    )
    members_only: bool = option(
        False, "Only invited people judge.", names=(), title="Invited people only"
    )
    closes_when_done: bool = option(
        False, "The last answer closes the study, so that answers are final.", names=()
    )


def rules_of(study: Study) -> StudyRules:
    """The rules in effect in a study, as they were checked when they were set."""
    known = study.settings.keys() & StudyRules.model_fields.keys()
    return StudyRules.model_construct(**{name: study.settings[name] for name in known})


def fails_gold(right: int, seen: int, rules: StudyRules) -> bool:
    """Whether this many right gold items of those seen are below the required share."""
    return seen >= GOLD_SEEN and right < rules.gold_threshold * seen


def set_rules(session: Session, study_id: int, **changes: Any) -> StudyRules:
    """Change some rules of a study. Returns all. Does not commit.

    Raises BadInput with the rule, its value and the permitted values.
    """
    study, given = get_study(session, study_id), StudyRules.read(changes)
    study.settings = {**study.settings, **given.model_dump(include=set(changes))}
    session.flush()
    return rules_of(study)
