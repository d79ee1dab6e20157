"""The embedding server of `analysis.embed.server`, by the name that training knows it by."""

from analysis.embed.server import PREFIX, EmbeddingServer

__all__ = ["PREFIX", "EmbeddingServer"]
