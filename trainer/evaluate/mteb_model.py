"""The model as mteb takes one: the stored template and prefixes applied as at our own evaluation.

mteb joins query and instruction itself ("query instruction"); a model that was trained with another
order would be scored on texts it never saw. `mteb` is needed only here (extra `dev`).
"""

from typing import Any

import numpy as np

from db.errors import BadInput
from trainer.evaluate.scoring import encode_unique
from trainer.model.backbone import load_model, question_encoder, template_of


class MtebModel:
    """Wraps a checkpoint folder or a model name for `mteb.evaluate(MtebModel(path), tasks=…)`."""

    def __init__(self, name: str) -> None:
        from mteb.models.model_meta import ModelMeta

        self.model, self.template = load_model(name), template_of(name)
        self.mteb_model_meta = ModelMeta.create_empty(
            {"name": f"inf-embed/{name.rstrip('/').split('/')[-1]}", "revision": "local"}
        )

    def encode(
        self,
        inputs: Any,
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **kwargs: Any,
    ) -> np.ndarray:
        """Vectors of mteb's batches: queries by the template, anything else as documents.

        mteb names the role `prompt_type`, earlier versions `prompt_name`; whichever is given
        counts, or prefixes would be left out silently. Raises BadInput where a retrieval task gives
        neither; tasks without roles (similarity, classification) have documents only.
        """
        role = prompt_type if prompt_type is not None else kwargs.get("prompt_name")
        kind = str(getattr(task_metadata, "type", ""))
        if role is None and ("Retrieval" in kind or "Reranking" in kind):
            raise BadInput(
                "mteb gave neither prompt_type nor prompt_name: which prefix is unknown",
                code="mteb_prompt_missing",
            )
        if str(getattr(role, "value", role)) == "query":
            texts = [text for batch in inputs for text in self._questions(batch)]
            plain = {text for batch in inputs for text in batch.get("query", batch["text"])}
            return encode_unique(question_encoder(self.model, plain), texts, lambda _: None)
        texts = [text for batch in inputs for text in batch["text"]]
        return encode_unique(self.model.encode_document, texts, lambda _: None)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Every pair's score."""
        return self.model.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The scores of corresponding pairs."""
        return self.model.similarity_pairwise(embeddings1, embeddings2)

    def _questions(self, batch: Any) -> list[str]:
        queries = batch.get("query", batch["text"])
        instructions = batch.get("instruction") or [""] * len(queries)
        return [
            self.template.apply(instruction or "", query)
            for instruction, query in zip(instructions, queries, strict=True)
        ]
