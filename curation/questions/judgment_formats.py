"""The formats of annotation tools: which rows are theirs, and the answers that a row holds. Pure.

A format is a row of FORMATS. An answer is to a question: a control of Label Studio, a question of
Argilla; the tools with one question have one without a name. What a tool keeps that is no answer
(a draft, a discarded or skipped task) is a NotJudged, counted by its reason.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from analysis.files.rows import BadValue, Row, shown
from curation.questions.qrels import is_qrels


@dataclass(frozen=True)
class Given:
    """An answer of one person to one question of a task; `key` is the tool's own identity."""

    question: str
    key: str
    who: str
    value: Any
    when: datetime | None = None


@dataclass(frozen=True)
class NotJudged:
    """Something a tool keeps that is no answer, with the reason."""

    reason: str


Found = Given | NotJudged


@dataclass(frozen=True)
class JudgmentFormat:
    """An export of a tool: `names` for messages, whether a row is of it, and the answers of a row.

    `read` gets the row and the name of the file without its extensions, which in some exports is
    the annotator's. Raises BadValue for a row that cannot be read.
    """

    tool: str
    names: str
    recognises: Callable[[Row], bool]
    read: Callable[[Row, str], Iterator[Found]]


VALUES: Final = ("choices", "text", "number", "rating")  # what a control of Label Studio holds


def _label_studio(task: Row, _: str) -> Iterator[Found]:
    for _ in _list(task, "drafts"):
        yield NotJudged("draft")
    for number, annotation in enumerate(_list(task, "annotations", "completions"), 1):
        if not isinstance(annotation, dict):
            raise BadValue(f"annotation {number} is {shown(annotation)}, not an object {{…}}")
        if annotation.get("was_cancelled"):
            yield NotJudged("skipped")
            continue
        name = annotation.get("id")
        who = annotation.get("completed_by")
        if isinstance(who, dict):
            who = who.get("email") or who.get("id")
        if who in (None, "") or isinstance(who, list):
            raise BadValue(
                f"annotation {name} names no annotator: `completed_by` is {shown(who)}; export "
                "with annotators, or write their names there"
            )
        chosen: dict[str, list[Any]] = {}
        for result in _list(annotation, "result"):
            if not isinstance(result, dict):
                raise BadValue(f"a result of annotation {name} is {shown(result)}, not an object")
            control = str(result.get("from_name") or "")
            if (value := _held(result.get("value"))) is not None:
                chosen.setdefault(control, []).extend(value)
        if not chosen:
            raise BadValue(f"annotation {name} has 0 choices, not one")
        when = moment(annotation.get("created_at"), "created_at")
        for control, choices in chosen.items():
            key = f"{task.get('id')}:{name}"
            yield Given(control, key, str(who), tuple(choices), when)


MIN_COLUMNS: Final = frozenset(
    (
        *("annotation_id", "annotator", "created_at", "updated_at", "lead_time", "id", "agreement"),
        *("item", "item_id", "items", "order_shown"),
    )
)


def _label_studio_min(row: Row, _: str) -> Iterator[Found]:
    """JSON_MIN (and CSV): a row for each annotation, a column for each control."""
    who = row.get("annotator")
    if isinstance(who, dict):
        who = who.get("email") or who.get("id")
    if who in (None, "") or isinstance(who, list):
        raise BadValue(f"`annotator` is {shown(who)}: write the annotator's name there")
    when = moment(row.get("created_at"), "created_at")
    key = f"{row.get('id')}:{row.get('annotation_id')}"
    for control, value in row.items():
        if control in MIN_COLUMNS:
            continue
        if isinstance(value, list) and len(value) == 1:  # a number or rating: [{"number": 0.7}]
            value = value[0]
        if isinstance(value, dict):
            held = _held(value)
            value = None if held is None else tuple(held)
        if isinstance(value, str | tuple):
            yield Given(control, key, str(who), value, when)


def _held(value: Any) -> list[Any] | None:
    """What a control holds, as a list; None for one that is no answer (a region, a relation)."""
    for name in VALUES if isinstance(value, dict) else ():
        if name in value:
            is_one = name in ("number", "rating") or isinstance(value[name], str)
            return [value[name]] if is_one else _list(value, name)
    return None


def _argilla(record: Row, _: str) -> Iterator[Found]:
    """Records of Argilla 2 (nested, or flat as `QUESTION.responses`) and 1 (a list of persons)."""
    name = record.get("id")
    for question, who, value, status in _responses(record):
        if status not in (None, "", "submitted"):
            yield NotJudged(f"{status}"[:40])
        elif who in (None, ""):
            raise BadValue(f"a response to {question!r} names no user: `user_id` is {shown(who)}")
        else:
            yield Given(question, f"{name}:{question}", str(who), value)


def _responses(record: Row) -> Iterator[tuple[str, Any, Any, Any]]:
    """(question, user, value, status) of every response of a record."""
    nested = record.get("responses")
    if isinstance(nested, list):
        for each in nested:
            if not isinstance(each, dict):
                raise BadValue(f"a response is {shown(each)}, not an object {{…}}")
            values = each.get("values")
            for question, value in values.items() if isinstance(values, dict) else ():
                value = value.get("value") if isinstance(value, dict) else value
                yield str(question), each.get("user_id"), value, each.get("status")
        return
    for question, answers in nested.items() if isinstance(nested, dict) else ():
        for each in answers if isinstance(answers, list) else (answers,) if answers else ():
            if not isinstance(each, dict):
                raise BadValue(f"a response to {question!r} is {shown(each)}, not an object {{…}}")
            who = each.get("user_id") or each.get("user")
            yield str(question), who, each.get("value"), each.get("status")
    for column, answers in record.items():
        if not column.endswith(".responses") or answers is None:
            continue
        values = _list(record, column)
        users = _list(record, f"{column}.users")
        statuses = _list(record, f"{column}.status")
        for place, value in enumerate(values):
            who = users[place] if place < len(users) else None
            status = statuses[place] if place < len(statuses) else None
            yield column.removesuffix(".responses"), who, value, status


def _prodigy(task: Row, stem: str) -> Iterator[Found]:
    """JSONL of Prodigy: `accept` lists the chosen options; or `label` with `answer` accept."""
    answer = task.get("answer")
    if answer not in ("accept", None):
        yield NotJudged("rejected" if answer == "reject" else "ignored")
        return
    who = task.get("_annotator_id") or task.get("_session_id") or stem
    value = tuple(_list(task, "accept")) if "accept" in task else task.get("label")
    key = f"{task.get('_input_hash')}:{task.get('_task_hash')}"
    yield Given("", key, str(who), value, moment(task.get("_timestamp"), "_timestamp"))


def _doccano(row: Row, stem: str) -> Iterator[Found]:
    """JSONL of doccano, a file for each annotator (`ada.jsonl`), or a column with their names."""
    labels = row.get("label", row.get("labels"))
    if labels in (None, [], ""):
        yield NotJudged("not annotated")
        return
    named = (row.get(name) for name in ("annotator", "username", "user", "annotation_approver"))
    who = next((each for each in named if isinstance(each, str | int) and each != ""), stem)
    value = tuple(labels) if isinstance(labels, list) else labels
    yield Given("", f"{row.get('id')}", str(who), value)


def _qrels(row: Row, stem: str) -> Iterator[Found]:
    """A relevance judgment; the annotator is the file's name (`ada.qrels`)."""
    yield Given("", f"{row['query-id']}:{row['corpus-id']}", stem, row["score"])


def _is_prodigy(row: Row) -> bool:
    return bool({"_task_hash", "_input_hash", "_session_id", "_annotator_id"} & set(row)) or (
        row.get("answer") in ("accept", "reject", "ignore") and bool({"accept", "label"} & set(row))
    )


TREC = JudgmentFormat("trec", "TREC or BEIR (a grade of a document for a query)", is_qrels, _qrels)
FORMATS: Sequence[JudgmentFormat] = (
    TREC,
    JudgmentFormat(
        "labelstudio",
        "Label Studio (tasks with `annotations`)",
        lambda row: "annotations" in row or "completions" in row,
        _label_studio,
    ),
    JudgmentFormat(
        "labelstudio",
        "Label Studio's JSON_MIN (rows with `annotator`)",
        lambda row: {"annotator", "annotation_id"} <= set(row),
        _label_studio_min,
    ),
    JudgmentFormat(
        "argilla",
        "Argilla (records with `responses`)",
        lambda row: "responses" in row or any(name.endswith(".responses") for name in row),
        _argilla,
    ),
    JudgmentFormat("prodigy", "Prodigy (tasks with `answer` and `accept`)", _is_prodigy, _prodigy),
    JudgmentFormat(
        "doccano",
        "doccano (rows with `label`)",
        lambda row: ("label" in row or "labels" in row) and ("id" in row or "text" in row),
        _doccano,
    ),
)


def moment(value: Any, name: str) -> datetime | None:
    """An ISO time, or seconds since 1970, in UTC; None for none. Raises BadValue."""
    if value in (None, ""):
        return None
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        found = datetime.fromisoformat(value)
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        found.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, OSError) as error:
        raise BadValue(f"`{name}` {shown(value)} is not a time") from error
    return found


def _list(row: Mapping[str, Any], *names: str) -> list[Any]:
    """The list in the first of these columns that has a value; empty if none has. BadValue."""
    for name in names:
        value = row.get(name)
        if value in (None, ""):
            continue
        if not isinstance(value, list):
            raise BadValue(f"`{name}` is {shown(value)}, not a list […]")
        return value
    return []
