"""Several releases with weights, and the order of a curriculum."""

import json
from collections import Counter
from pathlib import Path

import pytest
from trainer_jobs import claim, config_for
from trainer_release import make_rows, write_release, write_rows

from db.errors import BadInput
from db.shape import INF_IR
from db.store.store import Store
from trainer.data.choosing import confidence_of
from trainer.data.groups import Group, group_of
from trainer.data.mixing import mix_in, plain_keys
from trainer.data.release_files import read_release
from trainer.launch.here import train
from trainer.launch.plan import groups_of
from trainer.loop.group_trainer import ConfidentFirst
from trainer.model.backbone import read_memory
from trainer.settings.settings import parse_settings

ROWS = make_rows(20)


def other_release(folder: Path, first: int, last: int) -> Path:
    return write_rows(folder, ROWS[first:last])


def test_no_text_of_the_held_out_side_trains_through_another_release(tmp_path: Path) -> None:
    """The other release holds all groups of the main one, shouted: case is no other text."""
    main = write_release(tmp_path / "main", 10)
    loud = [{k: v.upper() if isinstance(v, str) else v for k, v in row.items()} for row in ROWS]
    other = write_rows(tmp_path / "other", [row | {"verdict": "kept"} for row in loud])
    for share in ("0.3", "0.5"):
        settings = parse_settings({"held_out": share, "more_releases": str(other)})
        groups = groups_of(main, settings, [other])
        held = {key.lower() for group in groups.held_out for key in group.split_keys()}
        trained = {key.lower() for group in groups.training for key in group.split_keys()}
        assert held and not held & trained
        assert groups.more[0].groups == 20 - len(groups.held_out)


def test_a_held_out_group_that_validation_dropped_stays_out_too(tmp_path: Path) -> None:
    """`held_out_groups=kept` scores the kept ones alone; another evaluation may score all."""
    rows = [
        row | {"verdict": "dropped" if number % 2 else "kept"}
        for number, row in enumerate(ROWS[:10])
    ]
    main = write_rows(tmp_path / "main", rows)
    other = other_release(tmp_path / "other", 0, 10)
    settings = parse_settings({"held_out": "0.5", "more_releases": str(other)})
    groups = groups_of(main, settings, [other])
    assert len(groups.held_out) < 5 and groups.more[0].groups == 5


def test_a_weight_is_how_often_a_group_is_read_in_an_epoch(tmp_path: Path) -> None:
    release = read_release(other_release(tmp_path / "other", 0, 20))
    for weight in (1.0, 2.0, 0.5, 2.5):
        recorded, groups = mix_in(
            release, weight, shape=INF_IR, away_from=frozenset(), include_dropped=False
        )
        counts = Counter(group.group_id for group in groups)
        assert set(counts.values()) <= {int(weight), int(weight) + 1} - {0}
        assert recorded.groups == len(counts)
        if weight in (1.0, 2.0):
            assert len(groups) == 20 * weight
        else:
            assert 20 * int(weight) < len(groups) < 20 * (int(weight) + 1)
    again = mix_in(release, 2.5, shape=INF_IR, away_from=frozenset(), include_dropped=False)[1]
    assert again == groups


def test_what_a_release_holds_out_or_dropped_does_not_train_elsewhere(tmp_path: Path) -> None:
    folder = other_release(tmp_path / "other", 0, 3)
    held = folder / "data" / "bridges_held_out-00000-of-00001.jsonl"
    held.write_text(json.dumps(ROWS[5]) + "\n" + json.dumps(ROWS[6] | {"verdict": "dropped"}))
    release = read_release(folder)
    assert (
        len(mix_in(release, 1, shape=INF_IR, away_from=frozenset(), include_dropped=True)[1]) == 3
    )
    with pytest.raises(BadInput, match=r"none of the 5 groups of .* can train"):
        mix_in(
            release, 1, shape=INF_IR, away_from=plain_keys(release.groups), include_dropped=False
        )
    with pytest.raises(BadInput, match=r"weight 1e-09 leaves none of the 3 groups"):
        mix_in(release, 1e-9, shape=INF_IR, away_from=frozenset(), include_dropped=False)


@pytest.mark.parametrize("given", ["a*0", "a*-1", "a*x", "*2", "a*nan", "a*101", "a, a*2"])
def test_a_weight_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(BadInput, match="more_releases"):
        parse_settings({"more_releases": given})


def test_releases_are_named_by_number_or_folder_each_with_its_weight() -> None:
    settings = parse_settings({"more_releases": "12*0.5, releases/b , c*d*2"})
    assert settings.extra_releases == (("12", 0.5), ("releases/b", 1.0), ("c*d", 2.0))


def test_a_training_on_two_releases_records_both_and_is_offline_if_one_is(
    sqlite_store: Store, tmp_path: Path
) -> None:
    other = write_rows(tmp_path / "other", [row | {"licence": "CC-BY-4.0"} for row in ROWS[10:]])
    (other / "release.json").write_text(json.dumps({"dataset": "others", "offline": False}))
    config = config_for(tmp_path, more_releases=f"{other}*2", max_steps="1")
    result = train(claim(sqlite_store, config))
    assert result["offline"] is True
    memory = read_memory(result["path"])
    (more,) = memory["more_releases"]
    assert (more["name"], more["weight"], more["groups"]) == ("others", 2.0, 10)
    assert memory["split"]["training_groups"] == 8 + 2 * 10
    assert memory["release"]["licences"] == ["CC-BY-4.0", "CC0-1.0"]
    card = (Path(result["path"]) / "README.md").read_text()
    assert "| Also trained on | others (" in card and "10 groups, weight 2 |" in card
    assert "CC-BY-4.0, CC0-1.0" in card and "### The same of others" in card


def write_provenance(folder: Path, rows: list[dict[str, object]]) -> None:
    (folder / "provenance").mkdir()
    file = folder / "provenance" / "bridges-00000-of-00001.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_confidence_is_the_validators_or_the_share_of_judgments_as_meant(tmp_path: Path) -> None:
    folder = other_release(tmp_path / "release", 0, 4)
    write_provenance(
        folder,
        [
            {"group_id": 1000, "confidence": 0.2, "judgments": 3, "judgments_as_meant": 3},
            {"group_id": 1001, "confidence": -0.5, "judgments": 4, "judgments_as_meant": 1},
            {"group_id": 1002, "judgments": 4, "judgments_as_meant": 4},
        ],
    )
    assert confidence_of(read_release(folder)) == {"1000": 0.2, "1001": -0.5}, "one scale"
    settings = parse_settings({"held_out": "0", "curriculum": "confident-first"})
    found = [group.confidence for group in groups_of(folder, settings).training]
    assert found == [0.2, -0.5, None, None]
    shares = other_release(tmp_path / "shares", 4, 8)
    write_provenance(
        shares,
        [
            {"group_id": 1004 + number, "judgments": 4, "judgments_as_meant": right}
            for number, right in enumerate((4, 1, 1))
        ],
    )
    settings = parse_settings(
        {"held_out": "0", "curriculum": "confident-first", "more_releases": str(shares)}
    )
    found = [group.confidence for group in groups_of(folder, settings, [shares]).training]
    assert found == [0.75, 0.25, None, None, 5 / 6, 1 / 3, 1 / 3, None], "ranks in each release"


def test_a_curriculum_over_equally_sure_groups_is_refused(tmp_path: Path) -> None:
    folder = other_release(tmp_path / "release", 0, 4)
    rows = [{"group_id": 1000 + n, "judgments": 1, "judgments_as_meant": 1} for n in range(4)]
    write_provenance(folder, rows)
    settings = parse_settings({"held_out": "0", "curriculum": "confident-first"})
    with pytest.raises(BadInput, match="same confidence"):
        groups_of(folder, settings)


def test_what_any_release_holds_out_trains_through_none(tmp_path: Path) -> None:
    """The second further release holds out what the main one and the first would train."""
    main, first = write_release(tmp_path / "main", 10), other_release(tmp_path / "first", 8, 14)
    second = held_out_release(tmp_path / "second", trains=ROWS[14:18], holds_out=ROWS[6:12])
    settings = parse_settings({"held_out": "0", "more_releases": f"{first}, {second}"})
    groups = groups_of(main, settings, [first, second])
    taken = {key for group in groups_of_rows(ROWS[6:12]) for key in group.split_keys()}
    assert all(taken.isdisjoint(group.split_keys()) for group in groups.training)
    assert [group.row()["query_positive"] for group in groups.training] == [
        row["query_positive"] for row in (*ROWS[:6], *ROWS[12:14], *ROWS[14:18])
    ]
    assert groups.kept_away == 4 and [each.kept_away for each in groups.more] == [4, 0]


def groups_of_rows(rows: list[dict[str, str]]) -> list[Group]:
    return [group_of(row, shape=INF_IR) for row in rows]


def held_out_release(
    folder: Path, *, trains: list[dict[str, str]], holds_out: list[dict[str, str]]
) -> Path:
    """A release with a split of its own that it holds out."""
    write_rows(folder, [row | {"verdict": "kept"} for row in trains])
    (file,) = (folder / "data").iterdir()
    split = file.name.split("-")[0]
    other = file.with_name(file.name.replace(split, f"{split}_held_out", 1))
    other.write_text("".join(json.dumps(row | {"verdict": "kept"}) + "\n" for row in holds_out))
    return folder


def test_a_curriculum_without_judgments_is_refused(tmp_path: Path) -> None:
    folder = other_release(tmp_path / "release", 0, 4)
    settings = parse_settings({"held_out": "0", "curriculum": "confident-first"})
    with pytest.raises(BadInput, match="curriculum needs judgments"):
        groups_of(folder, settings)


def with_confidences(*values: float | None) -> list[Group]:
    return [
        Group(str(number), group_of(row, shape=INF_IR).texts, confidence=value, shape=INF_IR)
        for number, (row, value) in enumerate(zip(ROWS, values, strict=False))
    ]


def test_the_first_epoch_goes_from_sure_to_doubtful_and_later_ones_do_not() -> None:
    groups = with_confidences(0.1, None, 0.9, 0.5, 0.9, 0.3, 0.7)
    order = ConfidentFirst(groups, 2, seed=1)
    assert len(order) == 4
    first = [place for batch in order for place in batch]
    assert [groups[place].confidence for place in first] == [0.9, 0.9, 0.7, 0.5, 0.3, 0.1, None]
    order.set_epoch(1)
    second = [place for batch in order for place in batch]
    assert sorted(second) == sorted(first) and second != first
    again = ConfidentFirst(groups, 2, seed=1)
    again.set_epoch(1)
    assert [place for batch in again for place in batch] == second


def test_the_copies_of_a_group_are_not_beside_each_other() -> None:
    once = with_confidences(0.9, 0.5, 0.7, 0.1)
    groups = [group for group in once for _ in range(2)]
    first = [place for batch in ConfidentFirst(groups, 4, seed=3) for place in batch]
    found = [groups[place].confidence for place in first]
    assert found == [0.9, 0.7, 0.5, 0.1] * 2


def test_equally_confident_groups_are_in_an_order_of_the_seed() -> None:
    groups = with_confidences(*[1.0] * 8)
    orders = [list(ConfidentFirst(groups, 8, seed=seed)) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_a_training_reads_the_groups_in_the_curriculums_order(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trainer.data.batches import Collator

    config = config_for(
        # fp32: `auto` would read a few groups more, to measure bfloat16
        tmp_path,
        curriculum="confident-first",
        held_out="0",
        epochs="2",
        precision="fp32",
    )
    write_provenance(
        Path(config["release"]),
        [{"group_id": 1000 + n, "confidence": n / 10, "judgments": 3} for n in range(10)],
    )
    read: list[str] = []
    collate = Collator.__call__

    def noted(self: Collator, rows: list[dict[str, str]]) -> object:
        read.extend(row["query_positive"] for row in rows)
        return collate(self, rows)

    monkeypatch.setattr(Collator, "__call__", noted)
    train(claim(sqlite_store, config))
    wanted = [row["query_positive"] for row in reversed(ROWS[:10])]
    assert read[:10] == wanted
    assert read[10:] != wanted and sorted(read[10:]) == sorted(wanted)
