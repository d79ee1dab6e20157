import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trainer_release import make_rows, write_release, write_rows

from db.errors import BadInput, NotFound
from db.shape import INF_IR
from db.store.store import Store
from trainer.data.release_files import find_release, read_release
from trainer.data.splitting import split_groups


def test_a_release_is_read_with_its_manifest(tmp_path: Path) -> None:
    release = read_release(write_release(tmp_path, 4, release_id=7))
    assert len(release.groups) == 4 and release.release_id == 7 and release.offline is True
    assert release.name == "bridges" and release.licences == ["CC0-1.0"]
    instruction, query, passage = release.groups[0].triplets()[1]
    assert "builder" in instruction and "how long" in query and "raised by" in passage


def test_a_plain_folder_of_parquet_or_jsonl_works_too(tmp_path: Path) -> None:
    rows = [{column: row[column] for column in INF_IR.columns} for row in make_rows(3)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "msmarco.parquet")
    by_parquet = read_release(tmp_path)
    by_jsonl = read_release(write_rows(tmp_path / "other", rows))
    assert by_parquet.offline is None and by_parquet.licences == []
    assert by_parquet.content_sha256 == by_jsonl.content_sha256
    assert [g.row() for g in by_parquet.groups] == [g.row() for g in by_jsonl.groups]


@pytest.mark.parametrize(("value", "message"), [("", "an empty"), (None, "no"), (3, "no usable")])
def test_a_bad_column_is_named_with_file_and_row(
    tmp_path: Path, value: object, message: str
) -> None:
    rows = make_rows(2)
    rows[1]["hard_negative_document_1"] = value
    with pytest.raises(BadInput) as bad:
        read_release(write_rows(tmp_path, rows))
    assert f"row 2: {message} `hard_negative_document_1`" in str(bad.value)


def test_a_folder_without_a_release_is_refused(tmp_path: Path, sqlite_store: Store) -> None:
    with pytest.raises(BadInput, match=r"holds no \.parquet or \.jsonl"):
        read_release(tmp_path)
    with pytest.raises(BadInput, match="holds no groups"):
        read_release(write_rows(tmp_path, []))
    (tmp_path / "release.json").write_text("{")
    with pytest.raises(BadInput, match="not JSON"):
        read_release(tmp_path)
    with pytest.raises(NotFound, match="no release 12"):
        find_release(sqlite_store, "12")
    with pytest.raises(NotFound, match="no release folder"):
        find_release(sqlite_store, str(tmp_path / "nowhere"))


def test_a_broken_parquet_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(BadInput, match=r"x\.parquet is not a Parquet file"):
        read_release(tmp_path)


def test_no_query_or_passage_is_on_both_sides_of_the_split(tmp_path: Path) -> None:
    rows = make_rows(20)
    rows[1]["document_positive"] = rows[0]["document_positive"]
    rows[2]["query_positive"] = rows[1]["query_negative"]
    release = read_release(write_rows(tmp_path, rows))
    for seed in range(10):
        training, held_out = split_groups(release, fraction=0.3, seed=seed)
        assert training and held_out and len(training) + len(held_out) == 20
        sides = [
            {key for group in side for key in group.split_keys()} for side in (training, held_out)
        ]
        assert not sides[0] & sides[1]


def test_one_group_cannot_be_split_and_the_remedy_is_named(tmp_path: Path) -> None:
    release = read_release(write_release(tmp_path, 1))
    with pytest.raises(BadInput, match=r"has 1 group that cannot be split.*held_out=0"):
        split_groups(release, fraction=0.1, seed=1)
    assert split_groups(release, fraction=0, seed=1)[0] == release.groups


def test_dropped_groups_train_only_on_request_and_are_never_held_out(tmp_path: Path) -> None:
    rows = make_rows(20)
    for row in rows[:8]:
        row["verdict"] = "dropped"
    release = read_release(write_rows(tmp_path, rows))
    training, held_out = split_groups(release, fraction=0.3, seed=3)
    more, same = split_groups(release, fraction=0.3, seed=3, include_dropped=True)
    assert not any(group.dropped for group in [*training, *held_out])
    assert held_out == same and {g.group_id for g in training} < {g.group_id for g in more}


def test_a_split_that_the_release_holds_out_is_never_trained_on(tmp_path: Path) -> None:
    rows = make_rows(6)
    write_rows(tmp_path, rows[:4])
    jsonl = "".join(json.dumps(row) + "\n" for row in rows[4:])
    (tmp_path / "data" / "bridges_held_out-00000-of-00001.jsonl").write_text(jsonl)
    release = read_release(tmp_path)
    training, held_out = split_groups(release, fraction=0.1, seed=1)
    assert [g.group_id for g in training] == ["1000", "1001", "1002", "1003"]
    assert [g.group_id for g in held_out] == ["1004", "1005"]
    assert split_groups(release, fraction=0, seed=1) == (training, [])


def test_test_is_held_out_where_the_manifest_says_so_and_trained_on_in_a_foreign_folder(
    tmp_path: Path,
) -> None:
    rows = make_rows(6)
    (tmp_path / "data").mkdir()
    for split, part in (("train", rows[:4]), ("test", rows[4:])):
        jsonl = "".join(json.dumps(row) + "\n" for row in part)
        (tmp_path / "data" / f"{split}-00000-of-00001.jsonl").write_text(jsonl)
    assert not any(group.set_aside for group in read_release(tmp_path).groups)
    manifest = {"filter": {"split_by": "train"}}
    (tmp_path / "release.json").write_text(json.dumps(manifest))
    held = [group.group_id for group in read_release(tmp_path).groups if group.set_aside]
    assert held == ["1004", "1005"]
