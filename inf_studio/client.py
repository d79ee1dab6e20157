"""A studio in Python: `open()` in this process, `connect()` over HTTP, with the same methods.

Every method is an operation of `/api/v1` with the fields of its reference; rows have the keys of
`--json` as attributes. Lists are `Rows`, which become DataFrames and are tables in a notebook.
Internal but for what `inf_studio` promises and what these return.
"""

import html
import json
import shutil
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

from curation.judges.judge import ItemView
from db.errors import BadInput, InfError, Refused
from db.modules import is_here, load
from db.question import question_from
from inf_studio import rows
from inf_studio.transport import OverHttp, Transport, open_here

if TYPE_CHECKING:
    import pandas as pd

    from curation.judges.function import FunctionJudge

PART, SHOWN = 500, 20
# A lease is of two minutes, and renewed when answers arrive.
ANSWERS_EVERY_SECONDS, LEASE_EVERY_SECONDS = 20, 2
RECIPES = "curation.recipe.recipe"


def open(url: str | None = None) -> "Studio":
    """A studio in this process, as the store's owner; `url` as INF_DATABASE_URL.

    An embedded store is created or migrated. A process has one store. Raises InfError.
    """
    return Studio(open_here(url))


def connect(url: str, *, token: str) -> "Studio":
    """A studio on a server, by a token (`inf tokens create`). Raises InfError."""
    return Studio(OverHttp(url, token))


T = TypeVar("T", bound="Thing")
R = TypeVar("R")


class Rows(Sequence[R]):
    """Rows of a list, as dictionaries (`inf_studio.rows` has their keys)."""

    def __init__(self, found: Iterable[Mapping[str, Any]]) -> None:
        self._rows = [dict(row) for row in found]

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> R: ...
    @overload
    def __getitem__(self, place: slice) -> "Rows[R]": ...
    def __getitem__(self, place: int | slice) -> "R | Rows[R]":
        if isinstance(place, slice):
            return Rows(self._rows[place])
        return cast(R, self._rows[place])

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a DataFrame, in their order."""
        import pandas as pd

        return pd.DataFrame(self._rows)

    def to_arrow(self) -> Any:
        """The rows as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist(self._rows)

    def to_dataset(self) -> Any:
        """The rows as a `datasets.Dataset`."""
        import datasets

        return datasets.Dataset.from_list(self._rows)

    def __repr__(self) -> str:
        return f"<{len(self)} rows>"

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for row in self._rows[:SHOWN] for name in row))
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{_cell(row.get(name))}</td>' for name in names)}</tr>"
            for row in self._rows[:SHOWN]
        )
        more = f"<p>{len(self) - SHOWN:,} more rows</p>" if len(self) > SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


class Thing:
    """A thing of the store; the keys of its row are attributes, as they were read."""

    noun = ""

    def __init__(self, studio: "Studio", row: Mapping[str, Any]) -> None:
        self._studio, self.row = studio, dict(row)

    if not TYPE_CHECKING:  # which knows the keys

        def __getattr__(self, name: str) -> Any:
            row = self.__dict__.get("row", {})
            if name in row:
                return row[name]
            raise AttributeError(f"{type(self).__name__} has no {name!r}: {', '.join(row)}")

    def refresh(self) -> Self:
        """Read it again; returns itself."""
        self.row = self._studio.call(f"{self.noun} show", id=self.row["id"])
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.row.get('id')}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{_cell(value)}</td></tr>"
            for name, value in self.row.items()
        )
        return f"<table>{rows}</table>"


@dataclass(frozen=True)
class Event:
    """A state of a job: `done` of `total` pieces of its work; `message` of a failed one is why."""

    status: str
    done: int
    total: int | None
    message: str

    def _repr_html_(self) -> str:
        part = "" if not self.total else f' value="{min(self.done, self.total)}" max="{self.total}"'
        of = "" if self.total is None else f" of {self.total:,}"
        line = html.escape(f"{self.done:,}{of} · {self.status} · {self.message}"[:200])
        return f"<progress{part}></progress> {line}"


def _show_in_notebook(events: Iterable[Event]) -> None:
    """Let all events come; in a notebook, one line of output shows the newest."""
    ipython, shown = sys.modules.get("IPython"), None
    shell = None if ipython is None else ipython.get_ipython()
    for event in events:
        if not hasattr(shell, "kernel"):  # a script or a terminal
            continue
        if shown is None:
            shown = ipython.display.display(event, display_id=True)  # type: ignore[union-attr]
        else:
            shown.update(event)


@dataclass(frozen=True)
class Recipe:
    """A built-in recipe and what overrides its settings."""

    name: str
    settings: tuple[str, ...] = ()

    @classmethod
    def builtin(cls, name: str) -> "Recipe":
        """The built-in recipe of this name. Raises BadInput; the remote client has no recipes, so
        there its server does once the recipe is used."""
        if is_here(RECIPES):
            load(f"{RECIPES}:load_recipe")(name)
        return cls(name)

    def set(self, *, model: str = "", **settings: Any) -> "Recipe":
        """The recipe with another model for every stage, and settings as `stage__key=value`."""
        given = [f"model={model}"] if model else []
        given += [f"{name.replace('__', '.')}={value}" for name, value in settings.items()]
        return Recipe(self.name, (*self.settings, *given))

    @property
    def fields(self) -> dict[str, Any]:
        """What a request has of it."""
        return {"recipe": self.name, "settings": list(self.settings)}


class Job(Thing, rows.JobShownKeys):
    """Work in the background."""

    noun = "jobs"

    def events(self) -> Iterator[Event]:
        """Its states as they change, until it is over."""
        for state in self._studio.transport.follow(self.row["id"]):
            message = state["error"] or state["message"]  # why it ended, where it failed
            yield Event(state["status"], state["done"], state["total"], message)

    def wait(self) -> Self:
        """Wait until it is over; a notebook shows its progress. Raises InfError where it failed or
        was cancelled."""
        _show_in_notebook(self.events())
        self.refresh()
        if self.row["status"] != "done":
            reason, status = self.row["error"] or self.row["status"], self.row["status"]
            raise InfError(
                f"job {self.row['id']}: {reason}",
                self.row["remedy"] or "",
                code=self.row["code"] or f"job_{status}",
            )
        return self


class Started(Thing):
    """A thing that a job is making."""

    job: Job | None = None

    def events(self) -> Iterator[Event]:
        """The states of its job."""
        return iter(()) if self.job is None else self.job.events()

    def wait(self) -> Self:
        """Wait for its job; returns itself, read again. Raises InfError where that failed."""
        if self.job is not None:
            self.job.wait()
        return self.refresh()


class Dataset(Thing, rows.DatasetShownKeys):
    """Pairs and passages."""

    noun = "datasets"

    def estimate(self, recipe: Recipe | None = None, **fields: Any) -> "Estimate":
        """What a run would cost and take (`runs estimate`), by a language model unless the recipe
        is `offline` or a `provider` or `connection` is given; nothing is asked."""
        wanted = self._run(recipe, fields, otherwise="openai")
        return Estimate(self._studio, self._studio.call("runs estimate", **wanted))

    def curate(self, recipe: Recipe | None = None, **fields: Any) -> "Run":
        """Start a run (`runs create`). A recipe for language models needs a `provider` or a
        `connection`. Raises InfError."""
        made = self._studio.call("runs create", **self._run(recipe, fields))
        run = self._studio.runs.get(made["run_id"])
        run.job = self._studio.job(made["job_id"])
        return run

    def list_pairs(self, search: str = "") -> "Rows[rows.PairView]":
        """Its pairs in order of import, those with this text in the query (`datasets pairs`)."""
        return self._studio.rows("datasets pairs", id=self.row["id"], search=search)

    def _run(
        self, recipe: Recipe | None, fields: Mapping[str, Any], *, otherwise: str = ""
    ) -> dict[str, Any]:
        wanted = {"dataset": self.row["name"], **({} if recipe is None else recipe.fields)}
        if not fields.keys() & {"provider", "connection"}:
            is_offline = recipe is None or recipe.name == "offline"
            if chosen := "offline" if is_offline else otherwise:
                wanted["provider"] = chosen
        return wanted | dict(fields)


class Estimate(Thing, rows.RunEstimateKeys):
    """Calls, cost and time of a run before it starts."""

    def __repr__(self) -> str:
        calls = sum(stage["calls"] for stage in self.row["stages"])
        usd, hours = self.row["usd"], self.row["hours"]
        cost = "cost unknown" if usd is None else f"${usd:,.2f}"
        time = "" if hours is None else f", {hours:.1f} h"
        return f"<Estimate: {self.row['pairs']:,} pairs, {calls:,.0f} calls, {cost}{time}>"


class Run(Started, rows.RunShownKeys):
    """A run: groups made from pairs, and validated."""

    noun = "runs"

    def groups(self, **only: Any) -> "Rows[rows.GroupRow]":
        """Its groups, all or those that match (`groups list`)."""
        return self._studio.rows("groups list", run_id=self.row["id"], **only)

    def drops(self) -> "Rows[rows.DropRow]":
        """For which reasons its groups were dropped, and some of each (`runs drops`)."""
        return Rows(self._studio.call("runs drops", id=self.row["id"])["data"])

    def resume(self, **fields: Any) -> Self:
        """Go on with it (`runs resume`), as `budget_usd=5`. Raises InfError."""
        made = self._studio.call("runs resume", run_id=self.row["id"], **fields)
        self.job = self._studio.job(made["job_id"])
        return self.refresh()

    def retry(self, reason: str, **fields: Any) -> Self:
        """Try the groups that were dropped for a reason again (`runs retry`). Raises InfError."""
        made = self._studio.call("runs retry", run_id=self.row["id"], retry=reason, **fields)
        self.job = self._studio.job(made["job_id"])
        return self.refresh()

    def stop(self) -> Self:
        """Stop it, so that it can be resumed (`runs stop`)."""
        self._studio.call("runs stop", id=self.row["id"])
        return self.refresh()

    def join(self, workers: int = 1) -> Self:
        """Let further workers join it while it works (`runs join`). Raises InfError."""
        made = self._studio.call("runs join", run_id=self.row["id"], workers=workers)
        self.job = self.job or self._studio.job(made["job_id"])
        return self.refresh()

    def shrink(self, by: int = 1) -> Self:
        """Let its newest workers leave; one stays (`runs shrink`). Raises InfError."""
        self._studio.call("runs shrink", run_id=self.row["id"], by=by)
        return self.refresh()

    @property
    def studies(self) -> "StudiesOfRun":
        """Its studies."""
        return StudiesOfRun(self)

    def release(self, out: str = "", **fields: Any) -> "Release":
        """Make a release of it and wait for that (`releases create`)."""
        name = out or f"run-{self.row['id']}"
        made = self._studio.call("releases create", runs=[self.row["id"]], out=name, **fields)
        job = self._studio.job(made["job_id"]).wait()
        return self._studio.releases.get(job.row["result"]["release_id"])


class StudiesOfRun:
    """The studies of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def create(
        self,
        *,
        items: int,
        overlap: int,
        judges: Sequence["str | FunctionJudge"] = (),
        **more: Any,
    ) -> "Study":
        """Sample a study, and let these judges, by name or functions with `judge`, answer it
        (`studies create`)."""
        studio, row = self._run._studio, self._run.row
        made = studio.call(
            "studies create",
            **{"dataset": row["dataset"], "run_id": row["id"], "items": items},
            **{"overlap": overlap} | more,
        )
        study = Study(studio, made)
        for one in judges:
            study.judge(one).wait()
        return study.refresh()


class Study(Thing, rows.StudyShownKeys):
    """Items that people and models judge."""

    noun = "studies"

    def judge(self, by: "str | FunctionJudge") -> "Job | Judged":
        """Let a model judge answer what it has not: by its name in the background
        (`studies judge`), or a function with `judge` here and now, of which a notebook shows the
        progress. Raises InfError, and what the function raises; its answers so far are stored."""
        if isinstance(by, str):
            made = self._studio.call("studies judge", study_id=self.row["id"], judge=by)
            return self._studio.job(made["job_id"])
        judged = Judged(self._studio, {"study_id": self.row["id"], "judge": by.name, "answers": 0})
        _show_in_notebook(judged.answering(by))
        return judged

    def agreement(self) -> "Agreement":
        """How its judges agree (`studies agreement`)."""
        return Agreement(self._studio, self._studio.call("studies agreement", id=self.row["id"]))

    def judgments(self) -> "Rows[rows.ListedJudgment]":
        """The answers of its judges that you may see (`judgments list`)."""
        return self._studio.rows("judgments list", study_id=self.row["id"])


class Judged(Thing):
    """What a function answered of a study, in this process."""

    study_id: int
    judge: str
    answers: int

    def wait(self) -> "Judged":
        """It is over: returns itself, as a job does."""
        return self

    def answering(self, by: "FunctionJudge") -> Iterator[Event]:
        """Lease blind items and answer them until the judge has answered all of the study; what
        another program of this judge holds is waited for."""
        study = {"study_id": self.row["study_id"]}
        asks = {"label": by.label, "model": by.model, "worker": uuid.uuid4().hex}
        while True:
            leased = self._studio.call("studies lease", **study, **asks)
            if not leased["waiting"]:
                return
            if not leased["data"]:
                time.sleep(LEASE_EVERY_SECONDS)
            yield from self._answer(by, leased["data"], leased["waiting"])

    def _answer(
        self, by: "FunctionJudge", leased: list[dict[str, Any]], waiting: int
    ) -> Iterator[Event]:
        """Answer these items. What is answered is stored every few seconds, and when the function
        fails; the others are given back then."""
        left, answers, since = list(leased), list[dict[str, Any]](), time.monotonic()
        while left or answers:
            try:
                while left and time.monotonic() - since < ANSWERS_EVERY_SECONDS:
                    answers.append({"lease": left[0]["lease"], "choice": by.answer(_view(left[0]))})
                    left.pop(0)
            except BaseException:
                self._store(answers, [one["lease"] for one in left])
                raise
            waiting = self._store(answers)["waiting"]
            answers, since = [], time.monotonic()
            done = self.row["answers"]
            yield Event("running", done, done + waiting, by.name)

    def _store(
        self, answers: Sequence[Mapping[str, Any]], returned: Sequence[str] = ()
    ) -> dict[str, Any]:
        found = self._studio.call(
            "judgments create",
            study_id=self.row["study_id"],
            answers=list(answers),
            returned=list(returned),
        )
        self.row["answers"] += found["stored"]
        return found


def _view(leased: Mapping[str, Any]) -> ItemView:
    """An item as a function sees it."""
    return ItemView(
        leased["instruction"],
        leased["query"],
        tuple(leased["candidates"]),
        question_from(leased["question"]),
        leased["about"],
    )


class Agreement(Thing):
    """How the judges of a study agree; `report` has every measure."""

    @property
    def _headline(self) -> dict[str, Any]:
        found: dict[str, Any] = self.row["report"]["human_human"]
        return found

    @property
    def kappa(self) -> float | None:
        """The headline among people: Cohen's kappa of two, Krippendorff's alpha of three or more
        (`coefficient` names it); None where it is undefined, for the `reason`."""
        value: float | None = self._headline["value"]
        return value

    @property
    def coefficient(self) -> str:
        """Which coefficient `kappa` is."""
        return str(self._headline["coefficient"])

    @property
    def reason(self) -> str:
        """Why `kappa` is undefined, "" where it is not."""
        return str(self._headline.get("reason") or "") if self.kappa is None else ""

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of `kappa`; None without one."""
        found = self._headline.get("interval")
        return None if not found else (found[0], found[1])

    def judges(self) -> "Rows[Any]":
        """Each judge with the people: coefficient, value and interval."""
        return Rows(
            {"judge": name, **{key: found.get(key) for key in ("coefficient", "value", "interval")}}
            for name, found in self.row["report"]["with_people"].items()
        )

    def plot(self, axes: Any = None) -> Any:
        """Each judge with the people as a point with its interval, on Matplotlib's axes; returns
        them. Judges without a value are left out."""
        from matplotlib.figure import Figure

        if axes is None:
            axes = Figure(layout="constrained").subplots()
        shown = [row for row in self.judges() if row["value"] is not None]
        for place, row in enumerate(shown):
            low, high = row["interval"] or (row["value"], row["value"])
            axes.plot([low, high], [place, place], color="tab:blue")
            axes.plot(row["value"], place, "o", color="tab:blue")
        axes.set_yticks(range(len(shown)), [row["judge"] for row in shown])
        axes.set_xlabel("kappa with the people, 95 % interval")
        return axes

    def __repr__(self) -> str:
        if self.kappa is None:
            return f"<Agreement: {self.coefficient} undefined: {self.reason}>"
        low_high = "" if self.interval is None else " [{:.3f}, {:.3f}]".format(*self.interval)
        return f"<Agreement: {self.coefficient} {self.kappa:.3f}{low_high}>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{self.judges()._repr_html_()}"


class Release(Thing, rows.ReleaseShownKeys):
    """Exported groups."""

    noun = "releases"

    def to_datasets(self, config: str = "default") -> Any:
        """Its rows as a `datasets.DatasetDict` by split; `config` as in its card.

        Needs the package `datasets` (the extra [train] has it). Raises InfError.
        """
        import datasets

        with self._studio.transport.folder(self.row["id"], self.row["path"]) as folder:
            return datasets.load_dataset(str(folder), config)

    def download(self, folder: str | Path) -> Path:
        """Copy its files, card and manifest into a new folder, and return that. Raises InfError."""
        place = Path(folder)
        if place.exists():
            raise Refused(f"{place} already exists", "give a new one", code="folder_exists")
        with self._studio.transport.folder(self.row["id"], self.row["path"]) as found:
            shutil.copytree(found, place)
        return place

    def train(self, **settings: Any) -> "Training":
        """Train on it (`trainings create`); settings as `inf trainings create KEY=VALUE`."""
        made = self._studio.call("trainings create", release=str(self.row["id"]), settings=settings)
        training = self._studio.trainings.get(made["job_id"])
        training.job = self._studio.job(made["job_id"])
        return training

    def push_to_hub(self, repo: str, **fields: Any) -> Job:
        """Push it to the Hub (`releases push`), and wait until it is there.

        Raises InfError where it failed."""
        made = self._studio.call("releases push", release_id=self.row["id"], repo=repo, **fields)
        return self._studio.job(made["job_id"]).wait()


class Training(Started, rows.TrainingShownKeys):
    """A training."""

    noun = "trainings"

    @property
    def model(self) -> "Model":
        """The model it made. Raises BadInput before that."""
        for row in self._studio.models.list():
            if row["job_id"] == self.row["id"]:
                return self._studio.models.get(row["id"])
        raise BadInput("this training has no model yet", "wait for it", code="model_missing")


class Model(Thing, rows.ModelShownKeys):
    """A trained model."""

    noun = "models"


class Evaluation(Thing, rows.EvaluationShownKeys):
    """Scores of a model."""

    noun = "evaluations"


class Differences(Thing, rows.ComparedKeys):
    """How evaluations differ from that of their base."""


class Noun(Generic[T, R]):
    """The things of one noun: list them, get one by its id."""

    def __init__(self, studio: "Studio", kind: type[T]) -> None:
        self._studio, self._kind = studio, kind

    def list(self, **only: Any) -> "Rows[R]":
        """All rows, or those that match."""
        return self._studio.rows(f"{self._kind.noun} list", **only)

    def get(self, id: int) -> T:
        """One thing by its id. Raises NotFound."""
        return self._kind(self._studio, self._studio.call(f"{self._kind.noun} show", id=id))


class Datasets(Noun[Dataset, rows.DatasetRow]):
    """The datasets."""

    def create(
        self,
        name: str,
        *,
        pairs: Any,
        passages: Any = (),
        source: str = "",
        licence: str = "",
        skip_bad: bool = False,
    ) -> Dataset:
        """Import pairs and passages, and return their dataset.

        pairs: `query_id`, `query`, `passage_id`, `passage`; passages: `passage_id`, `text`, or
        texts by id. Each a DataFrame, an Arrow table, a `datasets.Dataset` or dictionaries.
        """
        about = {"name": name, "source": source, "licence": licence, "skip_bad": skip_bad}
        lines = [*records(pairs), *records(passages)]
        report = json.loads(self._studio.transport.upload(lines, about))
        return self.get(report["dataset_id"])

    def named(self, name: str) -> Dataset:
        """The dataset of this name. Raises BadInput."""
        for row in self.list():
            if row["name"] == name:
                return self.get(row["id"])
        raise BadInput(f"no dataset {name!r}", "`datasets list` has all", code="dataset_unknown")


def records(table: Any) -> list[dict[str, Any]]:
    """The rows of a DataFrame, an Arrow table, a `datasets.Dataset`, dictionaries or texts by id.

    A missing value is left out. Raises BadInput.
    """
    if isinstance(table, Mapping):
        return [{"passage_id": str(name), "text": text} for name, text in table.items()]
    if hasattr(table, "to_dict") and hasattr(table, "columns"):
        found = table.to_dict(orient="records")
    elif hasattr(table, "to_pylist"):
        found = table.to_pylist()
    else:
        found = list(table)
    if not all(isinstance(row, Mapping) for row in found):
        raise BadInput(
            "rows are dictionaries, or texts by id", "give a DataFrame", code="rows_invalid"
        )
    return [{key: value for key, value in row.items() if not _is_missing(value)} for row in found]


class Studio:
    """All that there is, in this process or on a server."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.datasets = Datasets(self, Dataset)
        self.runs: Noun[Run, rows.RunSummary] = Noun(self, Run)
        self.studies: Noun[Study, rows.StudySummary] = Noun(self, Study)
        self.releases: Noun[Release, rows.ReleaseRow] = Noun(self, Release)
        self.trainings: Noun[Training, rows.TrainingRow] = Noun(self, Training)
        self.models: Noun[Model, rows.ModelRow] = Noun(self, Model)
        self.evaluations: Noun[Evaluation, rows.EvaluationRow] = Noun(self, Evaluation)
        self.jobs: Noun[Job, rows.JobRow] = Noun(self, Job)

    def call(self, operation: str, **fields: Any) -> dict[str, Any]:
        """Any operation of `/api/v1` by its name, as `runs show`. Raises InfError."""
        found: dict[str, Any] = json.loads(self.transport.text(operation, fields))
        return found

    def rows(self, operation: str, **fields: Any) -> "Rows[Any]":
        """All rows of a list, read part by part."""
        found: list[dict[str, Any]] = []
        cursor: int | None = 0
        while cursor is not None:
            part = self.call(operation, limit=PART, cursor=cursor, **fields)
            found += part["data"]
            cursor = part["next"]
        return Rows(found)

    def job(self, id: int) -> Job:
        """A job by its id. Raises NotFound."""
        return self.jobs.get(id)

    def evaluate(self, models: Sequence[Any], release: Release | str, **fields: Any) -> "Compared":
        """Score models on a release's held-out groups and wait for that (`evaluations create`)."""
        names = [one if isinstance(one, str) else one.row["path"] for one in models]
        place = release if isinstance(release, str) else str(release.row["id"])
        made = self.call("evaluations create", models=names, release=place, **fields)
        self.job(made["job_id"]).wait()
        listed = self.evaluations.list()
        return Compared(self, [row["id"] for row in listed if row["job_id"] == made["job_id"]])


class Compared:
    """Evaluations that were made together."""

    def __init__(self, studio: Studio, ids: Sequence[int]) -> None:
        self._studio, self.ids = studio, sorted(ids)

    def compare(self) -> "Differences":
        """The differences of the others to the last model (`evaluations compare`)."""
        *others, base = self.ids
        found = self._studio.call("evaluations compare", base=base, others=others)
        return Differences(self._studio, found)

    def _repr_html_(self) -> str:
        return self.compare()._repr_html_()

    def __repr__(self) -> str:
        return f"<Compared {self.ids}>"


def evaluate(models: Sequence[Any], release: Release, **fields: Any) -> Compared:
    """Score models on a release's held-out groups, where the release is, and wait for that."""
    return release._studio.evaluate(models, release, **fields)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _cell(value: Any) -> str:
    text = "–" if value is None else value if isinstance(value, str) else json.dumps(value)
    return html.escape(text[:200])
