"""Sampling a study's items: evenly over strata, at random, by disagreement of judges, or a list.

Note: with any method, a study has at most one item of a group, so that no judge ever sees two
scenarios of a group. By disagreement, items are chosen *because* judges differ: agreement on them
does not estimate agreement on the run.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from sqlalchemy.orm import Session

from analysis.agreement.answers import Decision
from analysis.agreement.disagreement import disagreements
from curation.rules.language import language_of_pair, name_of
from db.errors import BadInput, BadRow, BadRows, Refused
from db.run.runs import get_run
from db.study.examples import example_groups
from db.study.judgments import judgment_frame
from db.study.sampled_groups import group_facts, model_answers, pair_texts
from db.study.sampling import Groups, sample_items, take_highest
from db.study.studies import get_study, has_checks, judged_groups, used_groups
from db.values import VERDICTS

Sample = Literal["stratified", "random", "disagreement", "list"]
Stratum = Literal["scenario", "source", "verdict"]
SAMPLES: Final[tuple[Sample, ...]] = get_args(Sample)
STRATA: Final[tuple[Stratum, ...]] = get_args(Stratum)
UNUSABLE_LINES = "no study was made: correct these lines"


@dataclass(frozen=True)
class Sampling:
    """The method of sampling.

    `strata` (stratified): what the items are even over; a scenario is named after its role.
    `of_study`, `judges` (disagreement): the judgments that count in an earlier study, or those of
    all model judges on the run; of these judges only, or of all. `lines` (list), `file`: the input
    of `listed_items`, and its name in messages. `only`: groups of this verdict alone,
    which then is all that the sample represents of the run. `language`: of its pairs, those whose
    language is clear, which is no sample of the run. `apart_from`: studies whose groups are left
    out, so that nobody who judged there has seen a text of this sample's groups.
    """

    sample: str = "stratified"
    strata: tuple[str, ...] = ("scenario",)
    of_study: int | None = None
    judges: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    file: str = "the list"
    only: str = ""
    language: str = ""
    apart_from: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.sample not in SAMPLES:
            raise BadInput(
                f"no sampling {self.sample!r}",
                f"one of {', '.join(SAMPLES)}",
                code="sampling_unknown",
            )
        for name in self.strata:
            if name not in STRATA:
                raise BadInput(
                    f"no stratum {name!r}", f"one of {', '.join(STRATA)}", code="stratum_unknown"
                )
        if self.sample != "disagreement" and (self.of_study is not None or self.judges):
            raise BadInput(
                "an earlier study and judges are for sampling by disagreement",
                "give `sample=disagreement`",
                code="sampling_needs_disagreement",
            )
        if self.sample != "list" and self.lines:
            raise BadInput(
                "a list is for sampling by a list",
                "give `sample=list`",
                code="list_needs_list_sampling",
            )
        if self.only and self.only not in VERDICTS:
            raise BadInput(
                f"no verdict {self.only!r}", f"one of {', '.join(VERDICTS)}", code="verdict_unknown"
            )
        for given, what in (
            (self.only, "the verdict"),
            (self.language, "the language"),
            (self.apart_from, "other studies"),
        ):
            if given and self.sample == "list":
                raise BadInput(
                    "a list names its groups itself",
                    f"leave {what} out",
                    code="list_excludes_sampling",
                )
        if len(self.judges) == 1:
            raise BadInput(
                f"{self.judges[0]!r} cannot disagree with itself",
                "name two judges",
                code="judge_compared_with_itself",
            )


@dataclass(frozen=True)
class SampledItems:
    """The items of a new study, and the record of how they were sampled (`study.settings`)."""

    item_ids: list[int]
    settings: dict[str, Any]


def sample_study_items(
    session: Session, run_id: int, sampling: Sampling, count: int | None, seed: int
) -> SampledItems:
    """Sample `count` items of the run (all listed ones if it is None).

    Raises BadInput if there are fewer, BadRows for bad lines of a list, Refused for runs of checks.
    """
    groups: Groups = judged_groups(session, run_id)
    if not groups and has_checks(session, run_id):
        raise Refused(
            f"the judge of run {run_id} was given its texts one by one, and a study of a run is of "
            "picks among passages",
            "let people judge texts of a file (`studies create` with `items_file=`, `questions=`)",
            code="run_without_picks",
        )
    if sampling.sample == "list":
        groups = listed_items(sampling.lines, sampling.file, run_id, groups)
        count = len(groups) if count is None else count
    if count is None:
        raise BadInput(
            "how many items? Only a list determines it by itself",
            "give `items=`",
            code="item_count_missing",
        )
    facts = group_facts(session, run_id)
    if sampling.only:
        groups = {
            group_id: items
            for group_id, items in groups.items()
            if facts[group_id]["verdict"] == sampling.only
        }
    if sampling.language:
        speaking = {
            group_id
            for group_id, query, passage in pair_texts(session, run_id)
            if language_of_pair(query, passage) == sampling.language
        }
        groups = {group_id: items for group_id, items in groups.items() if group_id in speaking}
    away = {group for study_id in sampling.apart_from for group in used_groups(session, study_id)}
    shown = example_groups(session, get_run(session, run_id).dataset_id)
    if sampling.sample == "list" and (known := shown & groups.keys()):
        raise BadInput(
            f"group {min(known)} is an example in guidelines: its readers know the answer",
            "leave it out",
            code="example_in_study",
        )
    away |= shown
    groups = {group_id: items for group_id, items in groups.items() if group_id not in away}
    if sampling.sample == "disagreement":
        value = disagreement_of(session, run_id, sampling)
        sampled = take_highest(groups, value, count, seed)
        settings: dict[str, Any] = {
            "of_study": sampling.of_study,
            "judges": list(sampling.judges),
            "disagreed": sum(value[item_id] > 0 for item_id in sampled),
        }
    else:
        by = [name for name in sampling.strata if name != "scenario"]
        is_stratified = sampling.sample == "stratified"
        sampled = sample_items(
            groups,
            count,
            seed,
            strata=(
                {group_id: tuple(facts[group_id][name] for name in by) for group_id in groups}
                if is_stratified and by
                else None
            ),
            even_scenarios=sampling.sample == "list"
            or (is_stratified and "scenario" in sampling.strata),
        )
        settings = {"strata": list(sampling.strata)} if is_stratified else {}
        if sampling.sample == "list":
            settings["file"] = sampling.file
    if len(sampled) < count:
        raise BadInput(*_too_few(run_id, sampling, len(sampled), count), code="groups_too_few")
    if sampling.only:
        settings["only"] = sampling.only
    if sampling.language:
        settings["language"] = sampling.language
    if sampling.apart_from:
        settings["apart_from"] = list(sampling.apart_from)
    group_of = {item_id: group for group, items in groups.items() for item_id in items.values()}
    sources = Counter(facts[group_of[item_id]]["source"] for item_id in sampled)
    return SampledItems(
        sampled, {"sampling": sampling.sample, **settings, "sources": dict(sources)}
    )


def disagreement_of(session: Session, run_id: int, sampling: Sampling) -> dict[int, float]:
    """By item: the share of pairs of judgments that differ, where there are two or more.

    Raises NotFound for an unknown earlier study, BadInput for one of another run and for a judge
    without judgments there.
    """
    if sampling.of_study is None:
        answers = model_answers(session, run_id)
        place = f"run {run_id}"
    else:
        study = get_study(session, sampling.of_study)
        if study.run_id != run_id:
            raise BadInput(
                f"study {study.id} is of run {study.run_id}, not of run {run_id}",
                "name a study of the same run",
                code="study_of_another_run",
            )
        rows = judgment_frame(session, study.id)
        answers = [(row.item_id, row.judge, row.label) for row in rows]
        place = f"study {study.id}"
    judged = {judge for _, judge, _ in answers}
    unknown = [judge for judge in sampling.judges if judge not in judged]
    if unknown:
        known = f"there are {', '.join(sorted(judged))}" if judged else "no judge has"
        raise BadInput(
            f"{', '.join(unknown)} judged nothing in {place}: {known}",
            "name one of these, or none",
            code="judge_without_judgments",
        )
    found = disagreements(
        Decision(item_id, judge, choice)
        for item_id, judge, choice in answers
        if not sampling.judges or judge in sampling.judges
    )
    return {int(str(each.item)): each.disagreement for each in found}


def describe_sampling(settings: dict[str, Any]) -> str:
    """How a study's items were sampled, from its settings, as a phrase."""
    sample = str(settings.get("sampling", "stratified"))
    only = f" among {settings['only']} groups" if settings.get("only") else ""
    if language := settings.get("language"):
        only += f" of pairs in {name_of(language)}"
    if apart := settings.get("apart_from"):
        only += f", apart from the groups of study {', '.join(map(str, apart))}"
    if sample == "stratified":
        return f"evenly by {' and '.join(settings.get('strata') or ['scenario'])}{only}"
    if sample == "disagreement":
        earlier = settings.get("of_study")
        whose = "model judges" if earlier is None else f"the judges of study {earlier}"
        return f"by disagreement of {', '.join(settings.get('judges') or [whose])}{only}"
    return f"at random{only}" if sample == "random" else f"from {settings.get('file', 'a list')}"


def _too_few(run_id: int, sampling: Sampling, available: int, requested: int) -> tuple[str, str]:
    """The message on too few groups, and the remedy."""
    if sampling.sample == "disagreement":
        return (
            f"{available} groups of run {run_id} have an item on which two such judges answered, "
            f"requested {requested}",
            f"use `items={available}` or fewer, or let a second model judge (`studies judge`)",
        )
    if sampling.sample == "list":
        return f"{sampling.file} lists {available} groups, requested {requested}", "omit `items=`"
    only = f"{sampling.only} " * bool(sampling.only)
    apart = " and are in none of the studies to stay apart from" * bool(sampling.apart_from)
    of_pairs = f" of pairs in {name_of(sampling.language)}" if sampling.language else ""
    return (
        f"run {run_id} has {available} {only}groups{of_pairs} that reached validation{apart}, and "
        "a study "
        f"takes at most one item of each; requested {requested}",
        f"use `items={available}` or fewer" if available else "curate its pairs first",
    )


def listed_items(lines: Iterable[str], file: str, run_id: int, groups: Groups) -> Groups:
    """The listed groups with their permitted items: one, or all of them.

    A line is a group (`12`), a group and a scenario (`12 query_negative`) or an item (`item 40`);
    `#` begins a comment. `groups` are those of the run that reached validation. Raises
    BadRows for bad lines, BadInput for an empty list.
    """
    group_of = {item: group for group, items in groups.items() for item in items.values()}
    found: dict[int, dict[str, int]] = {}
    first: dict[int, int] = {}
    bad: list[BadRow] = []
    for number, line in enumerate(lines, start=1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        try:
            group_id, items = _resolve(fields, run_id, groups, group_of)
            if group_id in found:
                raise ValueError(
                    f"group {group_id} is in line {first[group_id]} already: a study takes one "
                    "item of a group"
                )
        except ValueError as error:
            bad.append(BadRow(file, number, str(error)))
        else:
            found[group_id], first[group_id] = items, number
    if bad:
        raise BadRows(bad, UNUSABLE_LINES, code="rows_invalid")
    if not found:
        raise BadInput(
            f"{file}: lists no group and no item",
            "write one group or item on each line",
            code="list_empty",
        )
    return found


def _resolve(
    fields: list[str], run_id: int, groups: Groups, group_of: dict[int, int]
) -> tuple[int, dict[str, int]]:
    if fields[0] == "item" and len(fields) == 2:
        item_id = _number(fields[1])
        if item_id not in group_of:
            raise ValueError(
                f"item {item_id} is not a current item of run {run_id}: of another, or edited since"
            )
        items = groups[group_of[item_id]]
        return group_of[item_id], {name: each for name, each in items.items() if each == item_id}
    if len(fields) > 2:
        raise ValueError(
            f"{' '.join(fields)[:60]!r} is neither GROUP, GROUP SCENARIO nor item ITEM"
        )
    group_id = _number(fields[0])
    if group_id not in groups:
        raise ValueError(f"group {group_id} did not reach validation in run {run_id}")
    if len(fields) == 1:
        return group_id, dict(groups[group_id])
    if fields[1] not in groups[group_id]:
        known = ", ".join(groups[group_id])
        raise ValueError(f"{fields[1][:40]!r} is not a scenario of group {group_id}: {known}")
    return group_id, {fields[1]: groups[group_id][fields[1]]}


def _number(field: str) -> int:
    if not (field.isascii() and field.isdecimal()) or len(field) > 18:
        raise ValueError(f"{field[:40]!r} is not the number of a group or an item")
    return int(field)
