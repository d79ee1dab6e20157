"""The embedding server of `analysis.embedding_server`, by the name that training knows it by."""

from analysis.embedding_server import PREFIX, EmbeddingServer

__all__ = ["PREFIX", "EmbeddingServer"]
