"""Whether texts are wrapped in the tokenizer's chat template: only where a setting requests it.

sentence-transformers 6 wraps every text of a plain transformer whose tokenizer has a chat template
(system prompt, role markers, a newline at the end that last-token pooling then reads). The paper's
input is the plain text. The choice is stored with the model by sentence-transformers itself
(`modality_config` of sentence_bert_config.json), so that a checkpoint reads its texts everywhere as
it did in training.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from db.errors import BadInput

if TYPE_CHECKING:
    from sentence_transformers.base.model import BaseModel

MESSAGE = "message"  # sentence-transformers' modality of chat messages


def applies_chat_template(model: "BaseModel") -> bool:
    """Whether texts are wrapped in a chat template before they are tokenised."""
    return any(MESSAGE in each.modality_config for each in _transformers(model))


def reading_of(model: "BaseModel") -> str:
    """What a vector cache adds to the model's identity; empty where there is no chat template."""
    if not any(getattr(each.tokenizer, "chat_template", None) for each in _transformers(model)):
        return ""
    return " in its chat template" if applies_chat_template(model) else " on plain texts"


def set_chat_template(model: "BaseModel", *, applied: bool) -> None:
    """Wrap texts in the tokenizer's chat template, or leave them as they are.

    Raises BadInput where it is requested and the tokenizer has none. A model that reads no plain
    texts at all is left as it is.
    """
    for transformer in _transformers(model):
        modalities = transformer.modality_config
        if applied and not getattr(transformer.tokenizer, "chat_template", None):
            raise BadInput(
                "chat_template=on: the model's tokenizer has no chat template",
                "Give chat_template=off",
                code="chat_template_missing",
            )
        if "text" not in modalities:
            continue
        if applied:
            format_ = transformer.input_formatter.message_format
            modalities = {**modalities, MESSAGE: {**modalities["text"], "format": format_}}
        else:
            modalities = {name: how for name, how in modalities.items() if name != MESSAGE}
        transformer.modality_config = modalities
        transformer.input_formatter.supported_modalities = list(modalities)


def _transformers(model: "BaseModel") -> Iterator[Any]:
    """The modules that read texts, of embedding models and of cross-encoders."""
    from sentence_transformers.base.modules.transformer import Transformer

    return (module for module in model.modules() if isinstance(module, Transformer))


def stores_its_reading(source: str) -> bool:
    """Whether the model is sentence-transformers' own, which says how its texts are read."""
    from sentence_transformers.util import is_sentence_transformer_model

    return bool(is_sentence_transformer_model(source))


def plain_folder_with_template(source: str) -> bool:
    """Whether a folder holds a plain transformer whose tokenizer has a chat template."""
    folder = Path(source)
    if not folder.is_dir() or (folder / "modules.json").is_file():
        return False
    config = folder / "tokenizer_config.json"
    return (folder / "chat_template.jinja").is_file() or (
        config.is_file() and '"chat_template"' in config.read_text(encoding="utf-8")
    )
