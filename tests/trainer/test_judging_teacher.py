"""A judge of the release as teacher: its choices as scores, in a training, and refused by name."""

import math
from pathlib import Path
from typing import Any

import pytest
from judged_release import all_of, judgment, released, write_judgments_of
from trainer_jobs import config_for, taught_losses
from trainer_release import make_rows, write_rows

from db.errors import BadInput
from db.shape import INF_IR
from db.store.store import Store
from trainer.data.groups import group_of
from trainer.data.judged import scores_of, with_scores
from trainer.launch.plan import groups_of
from trainer.report.origins import circular_origins, origins_of
from trainer.settings.settings import parse_settings

JUDGE = "openai:b"


def test_scores_are_smoothed_shares_of_the_choices() -> None:
    """By hand: (1 + 1/2) / 2.5 = 0.6, and 0.2 for each other; two against one: 2.5 / 4.5."""
    assert [math.exp(score) for score in scores_of(["positive"], INF_IR.roles)] == pytest.approx(
        [0.6, 0.2, 0.2]
    )
    two = ["query_negative", "positive", "query_negative"]
    assert [math.exp(score) for score in scores_of(two, INF_IR.roles)] == pytest.approx(
        [1.5 / 4.5, 0.5 / 4.5, 2.5 / 4.5]
    )


@pytest.mark.parametrize("choice", ["none", "random-2", "<b>positive</b>", ""])
def test_a_choice_of_nothing_in_the_group_speaks_for_no_passage(choice: str) -> None:
    assert scores_of([choice], INF_IR.roles) == pytest.approx([math.log(1 / 3)] * 3)


def test_groups_that_the_judge_saw_in_part_or_before_an_edit_have_no_scores(tmp_path: Path) -> None:
    rows = [*all_of(1000), *all_of(1001)[:2], *all_of(1002)]
    rows += [
        judgment(1002, "positive", revision=2, judge="openai:a"),
        *all_of(1003, judge="openai:a"),
    ]
    groups = [group_of(row, group_id=str(row["group_id"]), shape=INF_IR) for row in make_rows(4)]
    judged = with_scores(groups, released(tmp_path, rows), JUDGE, "teacher")
    assert [group.group_id for group in judged if group.judged] == ["1000"]
    first = judged[0].judged
    assert first and [max(range(3), key=scores.__getitem__) for scores in first] == [0, 1, 2]


def test_a_judge_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    release = released(tmp_path, [*all_of(1000), *all_of(1001, judge="person")])
    settings = parse_settings({"teacher": "judge:openai:c"})
    with pytest.raises(
        BadInput, match=r"teacher: .* no judgment by 'openai:c' \(its judges: openai:b, person\)"
    ):
        groups_of(release.path, settings)


def test_a_judge_that_judged_no_training_group_is_refused(tmp_path: Path) -> None:
    release = released(tmp_path, all_of(1000)[:2])
    told = "of no group that would train did this judge judge every scenario"
    with pytest.raises(BadInput, match=told):
        groups_of(release.path, parse_settings({"teacher": f"judge:{JUDGE}", "held_out": "0"}))


def test_a_further_release_without_that_judge_trains_without_scores(tmp_path: Path) -> None:
    release = released(tmp_path / "one", [one for n in range(1000, 1020) for one in all_of(n)])
    other = write_rows(tmp_path / "two", make_rows(30)[20:])
    (other / "release.json").write_text('{"dataset": "more", "content_sha256": "ab"}')
    given = {"teacher": f"judge:{JUDGE}", "held_out": "0", "more_releases": str(other)}
    groups = groups_of(release.path, parse_settings(given), [other]).training
    assert (sum(bool(group.judged) for group in groups), len(groups)) == (20, 30)


@pytest.mark.parametrize("teacher", ["judge:", "judge", "judges:openai:b"])
def test_a_teacher_without_a_judges_name_is_refused(teacher: str) -> None:
    with pytest.raises(BadInput, match="or a judge of the release as judge:NAME"):
        parse_settings({"teacher": teacher})


def test_the_validator_as_teacher_is_said_to_be_circular() -> None:
    manifest: dict[str, Any] = {
        "models": {
            "validation": {"model": "b", "sha256": None},
            "instruction_positive": {"model": "w", "sha256": None},
        }
    }
    origins = origins_of(parse_settings({"teacher": f"judge:{JUDGE}"}), manifest)
    assert any("the teacher is also the validator" in found for found in circular_origins(origins))


def test_a_training_comes_nearer_to_what_the_judge_chose(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge always chose the passage of the query negative: not what the objective teaches."""
    given = {"teacher": f"judge:{JUDGE}", "teacher_weight": "50", "dropout": "0"}
    given |= {"learning_rate": "1e-3", "rows_per_batch": "8"}
    config = config_for(tmp_path, **given, max_steps="12")
    write_judgments_of(
        Path(config["release"]),
        [
            judgment(1000 + n, of, choice="query_negative")
            for n in range(30)
            for of in INF_IR.scenarios
        ],
    )
    taught = taught_losses(sqlite_store, config)
    assert len(taught) == 12 and taught[-1] < 0.8 * taught[0]
