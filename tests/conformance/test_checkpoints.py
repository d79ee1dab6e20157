"""A checkpoint in other programs: the vectors of sentence-transformers, the ranking of its own."""

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

TOLERANCE = 1e-5
COUNT = 60


@pytest.fixture(scope="module")
def texts(material: Path) -> list[str]:
    table = polars.read_parquet(str(material / "releases/parquet/triplets/*"))
    found: list[str] = table["passage"].unique(maintain_order=True).to_list()
    return found[:COUNT]


@pytest.fixture(scope="module")
def checkpoint(material: Path) -> str:
    return str(material / "checkpoint")


@pytest.fixture(scope="module")
def vectors(checkpoint: str, texts: list[str]) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(checkpoint, device="cpu").encode(texts, normalize_embeddings=True)


def test_the_checkpoint_is_trained(base: str, vectors: Any, texts: list[str]) -> None:
    from sentence_transformers import SentenceTransformer

    before = SentenceTransformer(base, device="cpu").encode(texts, normalize_embeddings=True)
    assert np.abs(before - vectors).max() > TOLERANCE


def test_transformers_alone(checkpoint: str, texts: list[str], vectors: Any) -> None:
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer

    longest = SentenceTransformer(checkpoint, device="cpu").max_seq_length
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModel.from_pretrained(checkpoint).eval()
    batch = tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")
    with torch.no_grad():
        states = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1)
    mean = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)
    assert np.abs(mean.numpy() - vectors).max() < TOLERANCE


def test_langchain(checkpoint: str, texts: list[str], vectors: Any) -> None:
    from langchain_huggingface import HuggingFaceEmbeddings

    made = HuggingFaceEmbeddings(
        model_name=checkpoint,
        model_kwargs={"device": "cpu"},
        encode_kwargs={"normalize_embeddings": True},
    )
    assert np.abs(np.array(made.embed_documents(texts)) - vectors).max() < TOLERANCE


def test_llama_index(checkpoint: str, texts: list[str], vectors: Any) -> None:
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

    made = HuggingFaceEmbedding(model_name=checkpoint, device="cpu", normalize=True)
    assert np.abs(np.array(made.get_text_embedding_batch(texts)) - vectors).max() < TOLERANCE


def test_faiss_and_qdrant_rank_alike(vectors: Any) -> None:
    import faiss
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, PointStruct, VectorParams

    exact = np.argsort(-(vectors @ vectors.T), axis=1, kind="stable")[:, :5]
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    client = QdrantClient(":memory:")
    client.create_collection(
        "c", vectors_config=VectorParams(size=vectors.shape[1], distance=Distance.COSINE)
    )
    client.upsert("c", [PointStruct(id=i, vector=v.tolist()) for i, v in enumerate(vectors)])
    for number, vector in enumerate(vectors):
        by_faiss = index.search(vector[None], 5)[1][0].tolist()
        found = client.query_points("c", query=vector.tolist(), limit=5).points
        assert by_faiss == [point.id for point in found] == exact[number].tolist()
