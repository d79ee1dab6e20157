"""A trained model with its template: `encode_query(queries, instruction=…)`.

A checkpoint loads with plain `SentenceTransformer(path)` too (Interaction II does not); there the
prefix comes by itself, as always with sentence-transformers, and the template does not: a query
with an instruction is the text that the template makes of the two. Here both come by themselves,
and a query without an instruction is the same in both.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router

from db.errors import BadInput
from trainer.settings.template import INSTRUCTED, Template


def has_instructed_door(model: object) -> bool:
    """Whether texts with an instruction are encoded apart (`trainer.model.doors`)."""
    first = model[0] if isinstance(model, SentenceTransformer) and len(model) else None
    return isinstance(first, Router) and INSTRUCTED in first.sub_modules


def encode_instructed(
    model: SentenceTransformer, texts: Sequence[str], *arguments: Any, **options: Any
) -> Any:
    """Vectors of texts that the template made of an instruction and a query, by the copy that was
    trained for them."""
    encode: Any = model.encode  # its overloads do not know our task
    return encode(list(texts), *arguments, task=INSTRUCTED, prompt_name=INSTRUCTED, **options)


class InstructedModel(SentenceTransformer):
    """A SentenceTransformer that knows how an instruction and a query become one text."""

    template = Template()
    # Whether it is the trained copy alone of a model whose index stays (`inf models export`).
    is_trained_copy = False

    def encode_document(self, inputs: Any, *arguments: Any, **options: Any) -> Any:
        """Vectors of passages, as sentence-transformers does it.

        Raises BadInput for a trained copy alone: passages are the base model's.
        """
        self._require_whole()
        return super().encode_document(inputs, *arguments, **options)

    def _require_whole(self) -> None:
        if self.is_trained_copy:
            raise BadInput(
                "this is the trained copy alone, for queries with an instruction: its vectors of "
                "other texts would not fit the index",
                "encode passages and plain queries with the base model, or load the checkpoint "
                "that it was exported from",
                code="trained_copy_alone",
            )

    def encode_query(
        self,
        inputs: Any,
        *arguments: Any,
        instruction: str | Sequence[str] | None = None,
        **options: Any,
    ) -> Any:
        """Vectors of queries, each under the instruction or under its own of a list.

        Without `instruction` as sentence-transformers does it. Raises BadInput where the numbers
        of instructions and queries differ, and where some of a list are empty and the model
        encodes queries without an instruction apart.
        """
        if instruction is None or instruction == "":
            self._require_whole()
            return super().encode_query(inputs, *arguments, **options)
        queries = [inputs] if isinstance(inputs, str) else list(inputs)
        given = [instruction] * len(queries) if isinstance(instruction, str) else list(instruction)
        if len(given) != len(queries):
            raise BadInput(
                f"{len(given)} instructions for {len(queries)} queries",
                "give one for all, or one for each",
                code="instruction_count_differs",
            )
        texts = [self.template.apply(i, query) for i, query in zip(given, queries, strict=True)]
        encodes_apart = has_instructed_door(self)
        if not all(given):
            self._require_whole()
            if encodes_apart:
                raise BadInput(
                    f"instruction {given.index('') + 1} of {len(given)} is empty",
                    "encode queries without an instruction in a call of their own, this model "
                    "encodes them apart",
                    code="instruction_empty",
                )
        encode = partial(encode_instructed, self) if encodes_apart else super().encode_query
        vectors = encode(texts, *arguments, **options)
        return vectors[0] if isinstance(inputs, str) else vectors
