"""A release as tables, as a dataset, by its Croissant, and in other trainers."""

from pathlib import Path
from typing import Any

import duckdb
import mlcroissant
import polars
import pytest
from datasets import load_dataset

FORMS = ("parquet", "jsonl", "csv")
READERS = {"parquet": polars.read_parquet, "jsonl": polars.read_ndjson, "csv": polars.read_csv}
TABLES = {"parquet": "read_parquet", "jsonl": "read_json_auto", "csv": "read_csv_auto"}
CONFIGURATIONS = ("default", "provenance", "triplets", "judgments", "sentence-transformers")
TEXTS = ["query", "instruction", "passage"]


def files_of(release: Path, configuration: str) -> str:
    """The files of a configuration, as a pattern."""
    folder = {"default": "data"}.get(configuration, configuration)
    return str(release / folder / "*")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_polars_duckdb_and_datasets_read_the_same_rows(
    material: Path, form: str, configuration: str
) -> None:
    release = material / "releases" / form
    by_datasets = load_dataset(str(release), configuration, cache_dir=material / "cache")
    rows = [row for split in by_datasets.values() for row in split]
    by_polars = READERS[form](files_of(release, configuration))
    names = sorted(by_polars.columns)
    assert names == sorted(rows[0]) and len(rows) > 80
    by_duckdb = duckdb.sql(f"select * from {TABLES[form]}('{files_of(release, configuration)}')")
    assert sorted(by_duckdb.columns) == names
    texts = [name for name in names if isinstance(rows[0][name], str)]
    assert texts

    def of(found: Any) -> list[tuple[Any, ...]]:
        return sorted(tuple(str(row[name] or "") for name in texts) for row in found)

    expected = of(rows)
    assert of(by_polars.iter_rows(named=True)) == expected
    named = [dict(zip(by_duckdb.columns, row, strict=True)) for row in by_duckdb.fetchall()]
    assert of(named) == expected


def test_all_formats_hold_the_same_groups(material: Path, printed: Any) -> None:
    tables = [
        READERS[form](files_of(material / "releases" / form, "triplets")).select(TEXTS).rows()
        for form in FORMS
    ]
    assert tables[0] == tables[1] == tables[2]
    assert len(tables[0]) > 3 * printed("parquet")["groups"]  # crossed ones, too


@pytest.mark.parametrize("form", FORMS)
def test_croissant_yields_the_files_records(material: Path, form: str) -> None:
    release = material / "releases" / form
    dataset = mlcroissant.Dataset(jsonld=str(release / "croissant.json"))
    assert not dataset.metadata.issues.errors
    for records in dataset.metadata.record_sets:
        found = list(dataset.records(records.name))
        table = READERS[form](release / f"{records.name}.{form}")
        assert len(found) == len(table), records.name
        fields = {field.name for field in records.fields}
        assert fields <= set(table.columns), records.name


def test_stock_sentence_transformers_trains_on_its_view(
    material: Path, base: str, tmp_path: Path
) -> None:
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    rows = load_dataset(
        str(material / "releases" / "parquet"),
        "sentence-transformers",
        split="train",
        cache_dir=material / "cache",
    )
    model = SentenceTransformer(base, device="cpu")
    given = SentenceTransformerTrainingArguments(
        str(tmp_path),
        max_steps=3,
        per_device_train_batch_size=8,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        logging_steps=1,
    )
    loss = MultipleNegativesRankingLoss(model)
    trainer = SentenceTransformerTrainer(model, given, train_dataset=rows, loss=loss)
    trainer.train()
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    assert len(losses) == 3 and all(0 < value < 10 for value in losses)


@pytest.mark.parametrize("view", ["tevatron", "promptriever"])
def test_tevatrons_preprocessor_takes_every_row(material: Path, base: str, view: str) -> None:
    from tevatron.datasets.preprocessor import TrainPreProcessor
    from transformers import AutoTokenizer

    rows = load_dataset(
        str(material / "releases" / "parquet"), view, split="train", cache_dir=material / "cache"
    )
    tokenizer = AutoTokenizer.from_pretrained(base)
    prepare = TrainPreProcessor(tokenizer, query_max_length=64, text_max_length=192)
    for row in rows:
        made = prepare(row)
        assert made["query"]
        assert len(made["positives"]) == len(row["positive_passages"]) > 0
        assert len(made["negatives"]) == len(row["negative_passages"])
