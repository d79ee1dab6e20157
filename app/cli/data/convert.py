"""`inf convert`: a published collection as the two files that `inf import` takes."""

import dataclasses
from pathlib import Path

import click

from app.cli.kit.report import Result, counts, lines, reporting
from curation.sources.converting import Conversion, write_files
from curation.sources.msmarco import read_msmarco
from curation.sources.problems import read_leetcode, read_math
from curation.sources.trec import read_trec

FILE = click.Path(path_type=Path)
out_option = click.option("--out", type=FILE, required=True, help="Folder to write to.")
limit_option = click.option("--limit", type=int, help="No more than so many pairs.")


@click.group()
def convert() -> None:
    """Turn MS MARCO, TREC, LeetCode or MetaMath files into pairs.jsonl and passages.jsonl."""


def _human(result: Result) -> str:
    return lines(
        ("pairs", f"{result['pairs']:,} in {result['pairs_path']}"),
        ("passages", f"{result['passages']:,} in {result['passages_path']}"),
        ("left out", counts(result["left_out"])),
        (
            "next",
            f"inf import --dataset NAME --pairs {result['pairs_path']} "
            f"--passages {result['passages_path']}",
        ),
    )


def _result(done: Conversion) -> Result:
    values = dataclasses.asdict(done)
    return {**values, "pairs_path": str(done.pairs_path), "passages_path": str(done.passages_path)}


@convert.command()
@click.argument("place")
@out_option
@limit_option
@reporting(_human)
def msmarco(place: str, out: Path, limit: int | None) -> Result:
    """MS MARCO v2.1 rows: a JSONL or Parquet file, or hub:NAME[:CONFIG[:SPLIT]]."""
    return _result(write_files(read_msmarco(place), out, limit=limit))


@convert.command()
@click.option("--topics", type=FILE, required=True, help="NIST topics, or JSONL.")
@click.option("--documents", type=FILE, required=True, multiple=True, help="SGML, also .gz.")
@click.option("--qrels", type=FILE, required=True, help="topic iteration document grade.")
@out_option
@limit_option
@reporting(_human)
def trec(
    topics: Path, documents: tuple[Path, ...], qrels: Path, out: Path, limit: int | None
) -> Result:
    """TREC topics, documents and qrels, in Robust04's format."""
    return _result(write_files(read_trec(topics, list(documents), qrels), out, limit=limit))


@convert.command()
@click.argument("file", type=FILE)
@out_option
@limit_option
@reporting(_human)
def leetcode(file: Path, out: Path, limit: int | None) -> Result:
    """Programming tasks with solutions, the language known."""
    return _result(write_files(read_leetcode(file), out, limit=limit))


@convert.command()
@click.argument("file", type=FILE)
@out_option
@limit_option
@reporting(_human)
def math(file: Path, out: Path, limit: int | None) -> Result:
    """Word problems with worked solutions (MetaMath, GSM8K)."""
    return _result(write_files(read_math(file), out, limit=limit))
