"""A search over settings: every trial is a training job, what is known is read from the jobs.

Nothing else is stored: a search that is stopped, or started again with more trials, goes on from
the jobs of its name. Suggestions are Optuna's TPE, seeded with the search's seed and the number of
trials so far, so the same history gives the same next trial.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from db.errors import BadInput, Refused
from db.jobs import jobs
from db.outcome.trainings import list_trainings
from trainer.launch.request import TrainSearch, TrainStart
from trainer.settings.search import BELOW_GUARD, Dimension, value_of
from trainer.settings.settings import parse_settings

MAX_CONFLICTS = 50
MAX_TPE_ATTEMPTS = 5
POLL_SECONDS = 2.0


@dataclass(frozen=True)
class Trial:
    """One training of a search; value is None until it is done, and where it failed."""

    number: int
    job_id: int
    status: str
    params: dict[str, Any]
    value: float | None
    error: str = ""
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return self.status in jobs.OVER

    @property
    def is_below_guard(self) -> bool:
        """Whether its value is lower by `BELOW_GUARD`, since it fell too far on the guard."""
        return self.value is not None and self.value < -BELOW_GUARD / 2

    @property
    def measured(self) -> float | None:
        """Its value as it was measured, wherever it is on the guard."""
        if self.value is None or not self.is_below_guard:
            return self.value
        return self.value + BELOW_GUARD


def read_trials(session: Session, search: TrainSearch) -> list[Trial]:
    """The trials of the search in their order. Raises Refused where its name is another's."""
    guard_drop = parse_settings(search.settings).guard_drop
    trials = []
    for job in reversed(list_trainings(session, sweep=search.name, limit=None)):
        tune = TrainStart.stored(job.config).tune
        if tune is None or tune.identity != search.identity:
            theirs = tune.identity if tune else {"a sweep": "of the Train page"}
            other = [key for key in theirs if theirs[key] != search.identity.get(key)]
            raise Refused(
                f"{search.name!r} is the name of another search (job {job.id}; it differs in "
                f"{', '.join(other)})",
                "give another `name=`, or the same settings to go on",
                code="search_name_taken",
            )
        result = job.result or {}
        value = value_of(result, search.measure, guard_drop) if job.status == "done" else None
        trials.append(
            Trial(tune.number, job.id, job.status, tune.params, value, job.error or "", result)
        )
    return trials


def next_params(search: TrainSearch, trials: list[Trial]) -> dict[str, Any]:
    """The settings of the next trial. Raises BadInput where all that are tried conflict."""
    for attempt in range(MAX_CONFLICTS):
        params = _suggest(search, trials, attempt)
        try:
            parse_settings({**search.settings, **params})
        except BadInput as error:
            reason = error
        else:
            return params
    raise BadInput(
        f"{MAX_CONFLICTS} suggestions were all refused, the last because: {reason}",
        "change the ranges of `search=`",
        code="search_suggestions_refused",
    )


def _suggest(search: TrainSearch, trials: list[Trial], attempt: int) -> dict[str, Any]:
    try:
        import optuna
    except ImportError as error:
        raise BadInput(
            "a search of settings needs Optuna",
            "pip install 'inf-studio[tune]'",
            code="optuna_missing",
        ) from error

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    distributions = {name: _distribution(each) for name, each in search.space.items()}
    seed = search.seed * 1_000_003 + len(trials) * MAX_CONFLICTS + attempt
    sampler: Any = optuna.samplers.TPESampler(seed=seed % 2**32, n_startup_trials=5)
    if attempt >= MAX_TPE_ATTEMPTS:  # it insists on settings that conflict
        sampler = optuna.samplers.RandomSampler(seed=seed % 2**32)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for trial in trials:
        if trial.value is not None:
            study.add_trial(
                optuna.trial.create_trial(
                    params=trial.params, distributions=distributions, value=trial.value
                )
            )
    return dict(study.ask(distributions).params)


def _distribution(dimension: Dimension) -> Any:
    import optuna

    if dimension.choices:
        return optuna.distributions.CategoricalDistribution(dimension.choices)
    low, high, log = dimension.low, dimension.high, dimension.log
    if dimension.is_whole:
        return optuna.distributions.IntDistribution(int(low), int(high), log=log)
    return optuna.distributions.FloatDistribution(low, high, log=log)


def run_search(
    search: TrainSearch,
    *,
    read: Callable[[], list[Trial]],
    launch: Callable[[TrainStart], int],
    watch: Callable[[list[Trial]], None] = lambda trials: None,
    wait: Callable[[], None] = lambda: time.sleep(POLL_SECONDS),
) -> list[Trial]:
    """Launch trainings until there are `trials`, at most `parallel` open at a time; all at the end.

    read: the trials of now (`read_trials`); launch: queues a training and returns its job. Trials
    that the search already has count, failed ones too. Stopping it (Ctrl-C) leaves open trainings
    running.
    """
    while True:
        known = read()
        watch(known)
        is_open = [trial for trial in known if not trial.is_over]
        if len(known) >= search.trials and not is_open:
            return known
        if len(known) < search.trials and len(is_open) < search.parallel:
            launch(search.trial(len(known) + 1, next_params(search, known)))
            continue
        wait()


def ranked(trials: list[Trial]) -> list[Trial]:
    """Best first; those without a value last."""
    return sorted(trials, key=lambda t: (t.value is None, -(t.value or 0.0), t.number))
