"""A trained model with its template: `encode_query(queries, instruction=…)`.

A checkpoint loads with plain `SentenceTransformer(path)` too (Interaction II does not); there the
prefix comes by itself, as always with sentence-transformers, and the template does not: a query
with an instruction is the text that the template makes of the two. Here both come by themselves,
and a query without an instruction is the same in both.
"""

from collections.abc import Sequence
from typing import Any

from sentence_transformers import SentenceTransformer

from db.errors import BadInput
from trainer.settings.template import Template


class InstructedModel(SentenceTransformer):
    """A SentenceTransformer that knows how an instruction and a query become one text."""

    template = Template()

    def encode_query(
        self,
        inputs: Any,
        *arguments: Any,
        instruction: str | Sequence[str] | None = None,
        **options: Any,
    ) -> Any:
        """Vectors of queries, each under the instruction or under its own of a list.

        Without `instruction` as sentence-transformers does it. Raises BadInput where the numbers
        of instructions and queries differ.
        """
        if instruction is None:
            return super().encode_query(inputs, *arguments, **options)
        queries = [inputs] if isinstance(inputs, str) else list(inputs)
        given = [instruction] * len(queries) if isinstance(instruction, str) else list(instruction)
        if len(given) != len(queries):
            raise BadInput(
                f"{len(given)} instructions for {len(queries)} queries: give one for all, or one "
                "for each"
            )
        texts = [self.template.apply(i, query) for i, query in zip(given, queries, strict=True)]
        vectors = super().encode_query(texts, *arguments, **options)
        return vectors[0] if isinstance(inputs, str) else vectors
