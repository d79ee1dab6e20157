"""The first texts of an evaluation as the model really read them: its tokens, not its settings.

A prefix that a new version of a library drops silently, or a chat template that it adds, shows
here and nowhere else. The tokens are taken from the model's own forward pass.
"""

from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Any

from analysis.embed.chat_template import applies_chat_template
from analysis.embed.plain_model import PlainModel
from trainer.model.backbone import question_encoder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

FIRST_TEXTS = 2
MAX_TOKENS = 64

Read = dict[str, Any]


def read_by_model(
    model: "SentenceTransformer | PlainModel",
    queries: Sequence[str],
    documents: Sequence[str],
    plain: Container[str] = (),
) -> dict[str, list[Read]]:
    """{query, document: [{text, tokens, count}, …]} of the first texts of each kind.

    plain: the queries without an instruction, which some models encode apart.
    text: what was passed, with the prefix; tokens: the first `MAX_TOKENS` that the forward pass
    received, of `count`; None behind a server, which does not report them.
    """
    kinds = (
        ("query", question_encoder(model, plain), queries),
        ("document", model.encode_document, documents),
    )
    found: dict[str, list[Read]] = {}
    for kind, encode, texts in kinds:
        prefix = str(model.prompts.get(kind) or "")
        if isinstance(model, PlainModel):
            whole = [prefix + text for text in texts[:FIRST_TEXTS]]
            found[kind] = [_read(text, model.tokens(text)) for text in whole]
        else:
            found[kind] = [
                _read(prefix + text, _tokens_seen(model, encode, text))
                for text in texts[:FIRST_TEXTS]
            ]
    return found


def read_without_model(
    queries: Sequence[str],
    documents: Sequence[str],
    split: Callable[[str], list[str] | None] = lambda text: None,
) -> dict[str, list[Read]]:
    """The same for BM25, with the terms that it indexes, and for a reranker: the texts of the pairs
    that it is given, without tokens."""
    return {
        kind: [_read(text, split(text)) for text in texts[:FIRST_TEXTS]]
        for kind, texts in (("query", queries), ("document", documents))
    }


def chat_template_of(model: "SentenceTransformer | PlainModel | None") -> str | None:
    """ "on" or "off": whether texts are wrapped in the chat template; None where it is unknown."""
    if model is None or isinstance(model, PlainModel):
        return model.chat_template if model else None
    return "on" if applies_chat_template(model) else "off"


def _tokens_seen(
    model: "SentenceTransformer", encode: Callable[..., Any], text: str
) -> list[str] | None:
    """The tokens of one text in a forward pass; None for a model that is not given token ids."""
    seen: list[list[int]] = []

    def keep(_: Any, inputs: tuple[Any, ...]) -> None:
        features = inputs[0] if inputs else {}
        ids = features.get("input_ids") if hasattr(features, "get") else None
        if ids is not None and not seen:
            mask = features.get("attention_mask")
            row = ids[0] if mask is None else ids[0][mask[0].bool()]
            seen.append([int(each) for each in row])

    handle = model[0].register_forward_pre_hook(keep)
    try:
        encode([text], show_progress_bar=False)
    finally:
        handle.remove()
    tokenizer: Any = model.tokenizer
    if not seen or not hasattr(tokenizer, "convert_ids_to_tokens"):
        return None
    return [str(token) for token in tokenizer.convert_ids_to_tokens(seen[0])]


def _read(text: str, tokens: list[str] | None) -> Read:
    return {
        "text": text,
        "tokens": None if tokens is None else tokens[:MAX_TOKENS],
        "count": None if tokens is None else len(tokens),
    }
