"""A search over settings: every trial is a training job, what is known is read from the jobs.

Nothing else is stored: a search that is stopped, or started again with more trials, goes on from
the jobs of its name. Suggestions are Optuna's TPE, seeded with the search's seed and the number of
trials so far, so the same history gives the same next trial.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from db.errors import BadInput, Refused
from db.jobs import jobs
from db.store.store import Store
from db.tables import Job
from trainer.settings.search import Dimension, value_of
from trainer.settings.settings import parse_settings

MAX_CONFLICTS = 50
MAX_TPE_ATTEMPTS = 5
POLL_SECONDS = 2.0


@dataclass(frozen=True)
class Search:
    """What is searched. `texts`: the space as given; `fixed`: settings of every trial."""

    name: str
    release: str
    space: Mapping[str, Dimension]
    texts: tuple[str, ...]
    fixed: Mapping[str, Any]
    measure: str
    seed: int = 0

    @property
    def identity(self) -> dict[str, Any]:
        """What must be equal for two calls to be one search."""
        return {
            "release": self.release,
            "space": sorted(self.texts),
            "fixed": dict(sorted((name, str(value)) for name, value in self.fixed.items())),
            "measure": self.measure,
        }


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


def read_trials(store: Store, search: Search) -> list[Trial]:
    """The trials of the search in their order. Raises Refused where its name is another's."""
    guard_drop = parse_settings(search.fixed).guard_drop
    with store.read() as session:
        query = select(Job).where(Job.kind == "train").order_by(Job.id)
        found = [job for job in session.scalars(query) if job.config.get("sweep") == search.name]
    trials = []
    for job in found:
        tune = job.config.get("tune") or {}
        if tune.get("identity") != search.identity:
            theirs = tune.get("identity") or {"a sweep": "of the Train page"}
            other = [key for key in theirs if theirs[key] != search.identity.get(key)]
            raise Refused(
                f"{search.name!r} is the name of another search (job {job.id}; it differs in "
                f"{', '.join(other)})",
                "give another `name=`, or the same settings to go on",
                code="search_name_taken",
            )
        value = None
        if job.status == "done":
            value = value_of(job.result or {}, search.measure, guard_drop)
        trials.append(
            Trial(
                tune["number"],
                job.id,
                job.status,
                tune["params"],
                value,
                job.error or "",
                job.result or {},
            )
        )
    return trials


def next_params(search: Search, trials: list[Trial]) -> dict[str, Any]:
    """The settings of the next trial. Raises BadInput where all that are tried conflict."""
    for attempt in range(MAX_CONFLICTS):
        params = _suggest(search, trials, attempt)
        try:
            parse_settings({**search.fixed, **params})
        except BadInput as error:
            reason = error
        else:
            return params
    raise BadInput(
        f"{MAX_CONFLICTS} suggestions were all refused, the last because: {reason}",
        code="search_suggestions_refused",
    )


def _suggest(search: Search, trials: list[Trial], attempt: int) -> dict[str, Any]:
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
    store: Store,
    search: Search,
    *,
    trials: int,
    parallel: int,
    launch: Callable[[dict[str, Any]], int],
    watch: Callable[[list[Trial]], None] = lambda trials: None,
    wait: Callable[[], None] = lambda: time.sleep(POLL_SECONDS),
) -> list[Trial]:
    """Launch trainings until there are `trials`, at most `parallel` open at a time; all at the end.

    launch: queues a training with this config and returns its job. Trials that the search already
    has count, failed ones too. Stopping it (Ctrl-C) leaves open trainings running.
    """
    while True:
        known = read_trials(store, search)
        watch(known)
        is_open = [trial for trial in known if not trial.is_over]
        if len(known) >= trials and not is_open:
            return known
        if len(known) < trials and len(is_open) < parallel:
            params = next_params(search, known)
            launch(
                {
                    "release": search.release,
                    "settings": {**search.fixed, **params},
                    "sweep": search.name,
                    "tune": {
                        "number": len(known) + 1,
                        "params": params,
                        "identity": search.identity,
                    },
                }
            )
            continue
        wait()


def ranked(trials: list[Trial]) -> list[Trial]:
    """Best first; those without a value last."""
    return sorted(trials, key=lambda t: (t.value is None, -(t.value or 0.0), t.number))
