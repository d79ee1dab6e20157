"""Benchmarks in mteb's layout: a data set whose card names its parts as configurations.

`corpus` {_id or id, title, text}, `queries` {_id or id, text, maybe instruction}, the judgments as
`default` or `qrels` {query-id, corpus-id, score}, and where there are some `instruction` {query-id,
instruction} and `top_ranked` {query-id, corpus-ids}: the documents a query is ranked over. Which
files they are, of which format and split, the card says (README.md) and `datasets` reads; of
several splits `test` counts, as in mteb. InstructIR is published so, and mteb's retrieval tasks.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from db.errors import BadInput
from trainer.benchmarks import Benchmark, Question, retrieval_benchmark

CARD = "README.md"
PARTS = ("corpus", "queries", "default", "qrels", "instruction", "top_ranked")
JUDGMENTS = ("default", "qrels")  # the first one that is there, as in mteb
SPLIT = "test"


def files_of_parts(folder: Path) -> dict[str, list[str]]:
    """The files of each part, as the card names them; empty where the folder is not so."""
    from huggingface_hub import DatasetCard

    if not (folder / CARD).is_file():
        return {}
    try:
        told = DatasetCard.load(folder / CARD).data.to_dict().get("configs")
    except (ValueError, OSError):  # no card of a data set: the folder may be in another layout
        return {}
    found: dict[str, list[str]] = {}
    for config in told if isinstance(told, list) else ():
        name = config.get("config_name") if isinstance(config, dict) else None
        if name in PARTS:
            found[str(name)] = list(_paths(config.get("data_files")))
    has_judgments = any(name in found for name in JUDGMENTS)
    return found if has_judgments and {"corpus", "queries"} <= found.keys() else {}


def read_mteb(folder: Path) -> Benchmark:
    """The benchmark of a folder that `files_of_parts` knows. Raises BadInput with part and row."""
    parts = files_of_parts(folder)
    corpus: dict[str, str] = {}
    for place, row in _rows(folder, "corpus", ("text",)):
        document = _id(place, row)
        if document in corpus:
            raise BadInput(f"{place}: document {document!r} is there twice")
        corpus[document] = f"{row.get('title') or ''} {row['text']}".strip()
    instructions: dict[str, str] = {}
    if "instruction" in parts:
        for _, row in _rows(folder, "instruction", ("query-id", "instruction")):
            instructions[str(row["query-id"])] = row["instruction"] or ""
    questions: dict[str, Question] = {}
    for place, row in _rows(folder, "queries", ("text",)):
        query = _id(place, row)
        if query in questions:
            raise BadInput(f"{place}: query {query!r} is there twice")
        own = instructions.get(query) or row.get("instruction")
        questions[query] = Question(own or "", row["text"])
    judgments: dict[str, dict[str, int]] = {}
    name = next(each for each in JUDGMENTS if each in parts)
    for place, row in _rows(folder, name, ("query-id", "corpus-id", "score")):
        query, document = str(row["query-id"]), str(row["corpus-id"])
        if query not in questions:
            raise BadInput(f"{place}: no query {query!r} among the queries")
        if document not in corpus:
            raise BadInput(f"{place}: no document {document!r} in the corpus")
        try:
            judgments.setdefault(query, {})[document] = int(row["score"])
        except (TypeError, ValueError) as error:
            raise BadInput(f"{place}: `score` must be a whole number") from error
    candidates: dict[str, list[str]] = {}
    if "top_ranked" in parts:
        for place, row in _rows(folder, "top_ranked", ("query-id", "corpus-ids")):
            listed = [str(document) for document in row["corpus-ids"]]
            if missing := [document for document in listed if document not in corpus]:
                raise BadInput(f"{place}: no document {missing[0]!r} in the corpus")
            candidates[str(row["query-id"])] = listed
    if not corpus or not judgments:
        raise BadInput(f"{folder}: the {'judgments' if corpus else 'corpus'} are empty")
    return retrieval_benchmark(folder.name, questions, corpus, judgments, candidates)


def _rows(folder: Path, part: str, needed: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, row) of one part, read from its files without a copy in a cache."""
    import datasets

    try:
        splits = datasets.load_dataset(str(folder), part, streaming=True)
    except (ValueError, OSError, datasets.exceptions.DatasetsError) as error:
        raise BadInput(f"{folder}, part {part}: {error}") from error
    if SPLIT not in splits and len(splits) != 1:
        raise BadInput(
            f"{folder}, part {part}: no split {SPLIT!r} among {', '.join(map(str, splits))}"
        )
    rows = splits[SPLIT] if SPLIT in splits else next(iter(splits.values()))
    try:
        for number, row in enumerate(rows, start=1):
            place = f"{folder}, part {part}, row {number}"
            if missing := [name for name in needed if row.get(name) is None]:
                raise BadInput(f"{place} has no `{missing[0]}`")
            yield place, row
    except (ValueError, OSError, datasets.exceptions.DatasetsError) as error:
        raise BadInput(f"{folder}, part {part}: {error}") from error


def _id(place: str, row: dict[str, Any]) -> str:
    found = row.get("_id", row.get("id"))
    if found is None:
        raise BadInput(f"{place} has no `_id` (or `id`)")
    return str(found)


def _paths(data_files: Any) -> Iterator[str]:
    """A card's data_files: a path, a list of paths, or splits with one or several each."""
    if isinstance(data_files, str):
        yield data_files
    elif isinstance(data_files, dict):
        yield from _paths(data_files.get("path") or list(data_files.values()))
    elif isinstance(data_files, list):
        for each in data_files:
            yield from _paths(each)
