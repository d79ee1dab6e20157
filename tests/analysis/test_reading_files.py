"""One reader for all files: encodings are found and announced, and any bytes end well."""

import bz2
import gzip
import io
import lzma
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from analysis.files import opening
from analysis.files.delimited import read_headless
from analysis.files.opening import encoding_notice
from analysis.files.rows import FileRow, format_of, read_rows
from db.errors import InfError

GERMAN = "query,passage\nWas heißt „Tee“?,Blätter in Wasser – 3 €.\nUnd Kaffee?,Größere Bohnen.\n"
PACKED = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def rows_of(path: Path) -> list[FileRow]:
    return list(read_rows(path))


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16"),
        ("utf-16-be", "UTF-16"),
        ("cp1252", "Windows-1252"),
    ],
)
def test_an_encoding_is_found_and_announced_unless_it_is_utf_8(
    tmp_path: Path, packed: str, encoding: str, name: str | None
) -> None:
    path = tmp_path / f"faq.csv{packed}"
    path.write_bytes(PACKED[packed](GERMAN.encode(encoding)))
    assert [row.values["passage"] for row in rows_of(path)] == [
        "Blätter in Wasser – 3 €.",
        "Größere Bohnen.",
    ]
    notice = encoding_notice(path)
    assert notice is None if name is None else name in (notice or "") and path.name in str(notice)


def test_a_long_ascii_start_does_not_hide_what_comes_after(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    ascii_rows = "tea,leaves\n" * 30_000
    path.write_bytes(b"query,passage\n" + ascii_rows.encode() + "Käse,Größe\n".encode("cp1252"))
    assert rows_of(path)[-1].values == {"query": "Käse", "passage": "Größe"}
    path.write_bytes(b"query,passage\n" + ascii_rows.encode() + "Käse,Größe\n".encode())
    assert rows_of(path)[-1].values == {"query": "Käse", "passage": "Größe"}
    assert encoding_notice(path) is None


@pytest.mark.long
@pytest.mark.parametrize("packed", PACKED)
def test_the_encoding_is_decided_on_the_first_megabytes_alone(
    tmp_path: Path, packed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ASCII file was read whole by each opening: five times in one import."""
    path = tmp_path / f"long.csv{packed}"
    path.write_bytes(PACKED[packed](b"query,passage\n" + b"tea,leaves\n" * 1_000_000))
    plain: list[int] = []
    decide = opening._encoding_of_bytes

    def decided(content: io.BufferedReader, start: bytes, least: int) -> str:
        found = decide(content, start, least)
        plain.append(content.tell())
        return found

    monkeypatch.setattr(opening, "_encoding_of_bytes", decided)
    assert encoding_notice(path) is None
    assert next(iter(read_rows(path))).values == {"query": "tea", "passage": "leaves"}
    assert len(plain) == 2 and max(plain) <= opening.DECIDED_BYTES + opening.CHUNK_BYTES


@pytest.mark.long
def test_a_byte_after_those_that_decide_is_a_bad_row_that_names_it(tmp_path: Path) -> None:
    rows = b"tea,leaves\n" * (opening.DECIDED_BYTES // 11 + 1)
    path = tmp_path / "later.csv"
    path.write_bytes(b"query,passage\n" + rows + "Käse,süß\n".encode("cp1252") + b"a,b\n")
    *_, bad, last = read_rows(path)
    assert last.values == {"query": "a", "passage": "b"}
    assert bad.reason == "not UTF-8 in `query` (byte 0xe4 at 2): save the file as UTF-8"
    path = tmp_path / "later.tsv"
    path.write_bytes(rows.replace(b",", b"\t") + "Käse\tsüß\n".encode("cp1252"))
    *_, bad = read_headless(path, ("query", "passage"))
    assert bad.reason == "not UTF-8 (byte 0xe4 at 2): save the file as UTF-8"


@pytest.mark.parametrize(
    "text",
    [
        "вопрос,Чай это листья в воде".encode("cp1251"),
        "質問,お茶は水の中の葉です".encode("shift-jis"),
        "问题,茶是水中的叶子".encode("gbk"),
        "café,é".encode("cp1252") + "\nGröße,für\nschön,ähnlich".encode(),
    ],
    ids=["cyrillic", "japanese", "chinese", "mostly UTF-8"],
)
def test_what_is_neither_is_a_bad_row_and_never_read_as_another_encoding(
    tmp_path: Path, text: bytes
) -> None:
    path = tmp_path / "other.csv"
    path.write_bytes(b"query,passage\n" + text + b"\n")
    first, *rest = rows_of(path)
    assert first.reason is not None and "not UTF-8" in first.reason
    assert all(row.reason is None for row in rest)
    assert encoding_notice(path) is None


def test_a_character_cut_in_two_is_a_bad_row_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    whole = "query,passage\na,b\nc,d\U0001f642\n".encode("utf-16")
    path.write_bytes(whole[:-3])
    first, last = rows_of(path)
    assert first.values == {"query": "a", "passage": "b"} and "not UTF-8" in (last.reason or "")


def test_a_line_separator_within_a_text_ends_no_row(tmp_path: Path) -> None:
    text = "one\u2028two\x85three\x1cfour"
    path = tmp_path / "lines.jsonl"
    path.write_bytes(f'{{"text": "{text}"}}\n{{"text": "next"}}\n'.replace("\x1c", "").encode())
    assert [row.values["text"] for row in rows_of(path)] == [text.replace("\x1c", ""), "next"]


def test_the_last_extensions_give_the_format() -> None:
    for name, found in (
        ("a.jsonl", ".jsonl"),
        ("a.CSV.XZ", ".csv"),
        ("qrels.dev.small.tsv", ".tsv"),
        ("a.parquet.gz", None),
        ("a.gz", None),
        ("a", None),
        ("a.doc", None),
    ):
        assert format_of(Path(name)) == found, name


def workbook() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["query", "passage"], ["a", "b"], ["c", 3.0]):
        sheet.append(row)
    kept = io.BytesIO()
    book.save(kept)
    return kept.getvalue()


def table() -> bytes:
    kept = io.BytesIO()
    parquet.write_table(pa.table({"query": ["a", "b"], "n": [1, 2]}), kept)
    return kept.getvalue()


SEEDS = {
    ".jsonl": b'{"query": "a", "passage": "\xc3\xa9"}\n{"query": 7}\n',
    ".json": b'[{"query": "a"},\n {"records": [{"a": 1}]}]',
    ".csv": b"query,passage\na,b\n",
    ".tsv": b"query\tpassage\na\tb\n",
    ".xlsx": workbook(),
    ".parquet": table(),
}
NAMES = [*SEEDS, ".jsonl.gz", ".csv.bz2", ".json.xz"]


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """The name of a format, and a file of it with some bytes changed, or any bytes."""
    name = draw(st.sampled_from(NAMES))
    if draw(st.booleans()):
        return name, draw(st.binary(max_size=200))
    inner, _, packed = name[1:].partition(".")
    content = bytearray(SEEDS[f".{inner}"])
    if packed:
        content = bytearray(PACKED[f".{packed}"](bytes(content)))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(content)))
        size = draw(st.integers(0, 3))
        content[place : place + size] = draw(st.binary(max_size=3))
    if draw(st.booleans()):
        content = bytearray(bytes(content).decode("latin-1").encode("utf-16"))
    return name, bytes(content)


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damaged())
def test_any_bytes_give_rows_or_one_of_our_errors(tmp_path: Path, file: tuple[str, bytes]) -> None:
    name, content = file
    path = tmp_path / f"any{name}"
    path.write_bytes(content)
    encoding_notice(path)
    try:
        for row in read_rows(path):
            assert isinstance(row.line, int) and isinstance(row.values, dict)
            assert row.reason is None or not row.values
    except InfError as error:
        assert path.name in str(error)
