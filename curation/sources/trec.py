"""TREC ad-hoc collections (Robust04's format): topics, documents, judgments of relevance.

Topics are the NIST text format (`<top> <num> <title> <desc> <narr>`) or JSONL with `qid`, `title`,
`description`, `narrative`; documents are SGML (`<DOC> <DOCNO> … <TEXT>`), plain or gzipped;
judgments are qrels (`topic iteration document grade`). A pair is a topic's title with a document of
grade 1 or more; the other documents are the pool. Description and narrative are kept: they are
instructions that people wrote. Tags and entities inside a text are read as the text they stand for.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from analysis.files.delimited import read_headless
from analysis.files.opening import opened, require_file
from analysis.files.rows import read_rows
from curation.sources.rows import (
    Converted,
    LeftOut,
    SourceInput,
    SourceKind,
    SourcePair,
    SourcePassage,
    text_in,
    without_tags,
)

_TOPIC = re.compile(r"<top>(.*?)</top>", re.DOTALL | re.IGNORECASE)
_FIELD = re.compile(
    r"<(num|title|desc|narr)>(.*?)(?=<(?:num|title|desc|narr)>|\Z)", re.DOTALL | re.I
)
_LABEL = re.compile(r"^\s*(?:Number|Topic|Description|Narrative)\s*:?", re.IGNORECASE)
_DOCNO = re.compile(r"<DOCNO>\s*(.*?)\s*</DOCNO>", re.DOTALL | re.IGNORECASE)
_TEXT = re.compile(r"<TEXT>(.*?)</TEXT>", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(
    r"<(?:HEADLINE|TITLE|TTL|H3)>(.*?)</(?:HEADLINE|TITLE|TTL|H3)>", re.DOTALL | re.I
)


def read_trec(topics: Path, documents: list[Path], qrels: Path) -> Iterator[Converted]:
    """All documents as passages, and a pair per topic and relevant document."""
    held: set[str] = set()
    for path in documents:
        for found in read_documents(path):
            if isinstance(found, SourcePassage):
                held.add(found.passage_id)
            yield found
    known = dict(read_topics(topics))
    for row in read_headless(qrels, ("topic", "iteration", "document", "grade")):
        values = row.values
        if row.reason is not None or not re.fullmatch(r"-?[0-9]{1,9}", values["grade"]):
            yield LeftOut(qrels.name, row.line, "not `topic iteration document grade`")
        elif int(values["grade"]) > 0:
            yield _pair(known, held, values["topic"], values["document"], qrels.name, row.line)


def read_topics(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Topics by number, with title, description and narrative."""
    if path.suffix == ".jsonl":
        for row in read_rows(path):
            if row.reason is None:
                yield (
                    str(row.values.get("qid") or row.values.get("query_id")),
                    {
                        name: _LABEL.sub("", text_in(row.values, name)).strip()
                        for name in ("title", "description", "narrative")
                    },
                )
        return
    names = {"title": "title", "desc": "description", "narr": "narrative"}
    for block in _TOPIC.findall("".join(_open(path))):
        fields = {
            name.lower(): " ".join(_LABEL.sub("", without_tags(text)).split())
            for name, text in _FIELD.findall(block)
        }
        yield fields.get("num", ""), {long: fields.get(short, "") for short, long in names.items()}


def read_documents(path: Path) -> Iterator[Converted]:
    """The documents of an SGML file, one in memory at a time."""
    block: list[str] = []
    start = 0
    for number, line in enumerate(_open(path), 1):
        if line.lstrip().upper().startswith("<DOC>"):
            block, start = [], number
        block.append(line)
        if "</DOC>" in line.upper():
            yield _document("".join(block), path.name, start)
            block = []


def _document(block: str, file: str, line: int) -> Converted:
    number = _DOCNO.search(block)
    if number is None:
        return LeftOut(file, line, "a document without DOCNO")
    text = without_tags("\n".join(_TEXT.findall(block)))
    if not text:
        return LeftOut(file, line, f"document {number.group(1)} has no text")
    title = _TITLE.search(block)
    return SourcePassage(
        number.group(1), text, " ".join(without_tags(title.group(1)).split()) if title else ""
    )


def _pair(
    topics: dict[str, dict[str, str]],
    held: set[str],
    topic: str,
    document: str,
    file: str,
    line: int,
) -> Converted:
    if topic not in topics or not topics[topic]["title"]:
        return LeftOut(file, line, f"no topic {topic} with a title")
    if document not in held:
        return LeftOut(file, line, f"document {document} is not among the documents")
    known = topics[topic]
    meta = {name: known[name] for name in ("description", "narrative") if known[name]}
    return SourcePair(f"{topic}-{document}", known["title"], document, {"topic": topic, **meta})


def _open(path: Path) -> Iterator[str]:
    require_file(path)
    with opened(path) as source:
        for line in source.plain:
            yield line.decode("utf-8", "replace")


FORMATS = {
    "trec": SourceKind(
        "TREC topics, documents and qrels, in Robust04's format.",
        (
            SourceInput("topics", "NIST topics, or JSONL."),
            SourceInput("documents", "SGML, also .gz.", multiple=True),
            SourceInput("qrels", "topic iteration document grade."),
        ),
        read_trec,
    )
}
