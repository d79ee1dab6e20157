"""Held-out groups that a named judge of the release's studies confirmed."""

from pathlib import Path
from typing import Any

import pytest
from judged_release import all_of, judgment, released
from trainer_release import write_release

from db.errors import BadInput
from db.shape import INF_IR
from trainer.data.judged import confirmed_by
from trainer.data.release_files import read_release
from trainer.data.splitting import split_groups


@pytest.mark.parametrize(
    "doubt",
    [
        [judgment(5, "positive", choice="query_negative")],
        [judgment(5, "positive", choice="none")],
        [],
    ],
    ids=["another passage", "none", "a scenario not judged"],
)
def test_a_group_is_confirmed_by_three_choices_as_meant_of_that_judge_alone(
    tmp_path: Path, doubt: list[dict[str, Any]]
) -> None:
    most = [judgment(5, scenario) for scenario in INF_IR.scenarios if scenario != "positive"]
    others = all_of(7, judge="openai:a") + all_of(5, judge="openai:a")
    release = released(tmp_path, [*all_of(3), *most, *doubt, *others])
    assert confirmed_by(release, "openai:b") == {"3"}
    assert confirmed_by(release, "openai:a") == {"5", "7"}


def test_the_last_revision_counts_and_two_studies_must_agree(tmp_path: Path) -> None:
    late = [judgment(3, "positive", choice="none"), judgment(3, "positive", revision=2)]
    early = [judgment(4, "positive", revision=2, choice="none"), judgment(4, "positive")]
    twice = [judgment(5, "positive", choice="none"), judgment(5, "positive")]
    rest = [one for group in (3, 4, 5) for one in all_of(group) if one["scenario"] != "positive"]
    assert confirmed_by(released(tmp_path, late + early + twice + rest), "openai:b") == {"3"}


def test_texts_that_were_edited_after_the_judge_saw_them_are_not_confirmed(tmp_path: Path) -> None:
    edited = judgment(4, "positive", judge="openai:a", revision=2)
    release = released(tmp_path, [*all_of(3), *all_of(4), edited])
    assert confirmed_by(release, "openai:b") == {"3"}


def test_the_judge_alone_decides_with_all_held_out_groups(tmp_path: Path) -> None:
    release = released(tmp_path, [row for group in range(1000, 1020, 2) for row in all_of(group)])
    training, everything = split_groups(release, fraction=0.5, seed=1, held_out_groups="all")
    again, chosen = split_groups(
        release, fraction=0.5, seed=1, held_out_groups="all", held_out_judge="openai:b"
    )
    confirmed = confirmed_by(release, "openai:b")
    assert again == training and chosen
    assert chosen == [group for group in everything if group.group_id in confirmed] != everything


def test_an_unknown_judge_and_one_that_confirms_none_are_refused_by_name(tmp_path: Path) -> None:
    release = released(tmp_path, all_of(999))
    with pytest.raises(BadInput, match=r"no judgment by 'openai:c' \(its judges: openai:b\)"):
        split_groups(release, fraction=0.2, seed=1, held_out_judge="openai:c")
    with pytest.raises(BadInput, match="openai:b confirmed none of the 4 held-out groups"):
        split_groups(release, fraction=0.2, seed=1, held_out_judge="openai:b")
    bare = read_release(write_release(tmp_path / "bare", 4))
    with pytest.raises(BadInput, match="its judges: none"):
        confirmed_by(bare, "openai:b")
