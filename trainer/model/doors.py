"""A model whose index stays: the base model untouched, and a trained copy for instructed queries.

Three doors of one checkpoint, an ordinary `Router` of sentence-transformers:

    encode_document(passage)                 the base model
    encode_query(query)                      the base model
    encode(template(I, Q), task=INSTRUCTED)  the trained copy

So an index that the base model made stays valid, and ordinary retrieval is that of the base model
to the bit. The need is that of index-preserving query adaptation (arXiv 2601.04646) and of ERA
(arXiv 2604.03403); both adapt every query, here a query without an instruction is left alone.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from torch import nn

from trainer.model.inference import InstructedModel, has_instructed_door
from trainer.settings.template import INSTRUCTED

BASE = "base"


def with_instructed_door(
    base: SentenceTransformer, prefix: str, query_tokens: int, *, as_stored: bool
) -> InstructedModel:
    """The base model, frozen, and a copy of it that reads instructed queries of `query_tokens`.

    prefix: stands before the template's text, kept as the prompt named INSTRUCTED.
    as_stored: the copy keeps the type of the base's weights (LoRA); else it is float32.
    """
    kept: list[Any] = list(base)
    trained: list[Any] = copy.deepcopy(kept)
    for module in kept:
        module.requires_grad_(False)
    for module in trained:
        module.requires_grad_(True)
        if not as_stored:
            module.to(torch.float32)
    backbone = trained[0]
    backbone.max_seq_length = query_tokens
    pooler = getattr(getattr(backbone, "model", None), "pooler", None)
    if pooler is not None:  # never read
        pooler.requires_grad_(False)
    router = Router(
        {BASE: kept, INSTRUCTED: trained},
        default_route=BASE,
        route_mappings={("query", None): BASE, ("document", None): BASE},
    )
    return InstructedModel(
        modules=[router],
        prompts={name: prompt or "" for name, prompt in base.prompts.items()}
        | {INSTRUCTED: prefix},
        default_prompt_name=base.default_prompt_name,
        similarity_fn_name=base.similarity_fn_name,
        truncate_dim=base.truncate_dim,
        device=str(base.device),
    )


def trained_part(model: SentenceTransformer) -> nn.Module:
    """What a training changes: the copy behind the instructed door, or the whole model."""
    if has_instructed_door(model):
        router: Any = model[0]
        part: nn.Module = router.sub_modules[INSTRUCTED]
        return part
    return model


def passage_modules(model: SentenceTransformer) -> Sequence[nn.Module]:
    """The modules that read passages: the base's where the index stays, or all of the model's."""
    if has_instructed_door(model):
        router: Any = model[0]
        return list(router.sub_modules[BASE])
    return list(model)


def exported_part(model: SentenceTransformer) -> SentenceTransformer:
    """The copy behind the instructed door as an ordinary model, its prefix that of queries; any
    other model as it is."""
    if not has_instructed_door(model):
        return model
    part: Any = trained_part(model)
    prefix = model.prompts.get(INSTRUCTED) or ""
    return SentenceTransformer(
        modules=list(part), prompts={"query": prefix}, similarity_fn_name=model.similarity_fn_name
    )
