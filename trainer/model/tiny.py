"""Tiny models with random weights, by the name `tiny-random-<architecture>`: no weights needed.

They learn next to nothing and exist so that every recipe can be run, and tested, where no weights
can be had. Weights depend on the name only. The tokenizer is one token per byte of UTF-8.
"""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from db.errors import BadInput

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedTokenizerFast

PREFIX = "tiny-random-"
ENCODERS = ("bert", "modernbert", "xlm-roberta")
DECODERS = ("qwen2", "llama", "mistral")
SIZE = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 1024,
}
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "<mask>")


def build_tiny_model(name: str) -> "SentenceTransformer":
    """The model of that name. Raises BadInput naming the architectures there are."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers.utils import logging as transformers_logging

    architecture = name.removeprefix(PREFIX)
    transformers_logging.disable_progress_bar()
    with tempfile.TemporaryDirectory(prefix="inf-tiny-") as folder:
        _write(architecture, Path(folder))
        transformer = Transformer(folder)
    pooling = Pooling(
        transformer.get_embedding_dimension(),
        pooling_mode="lasttoken" if architecture in DECODERS else "mean",
    )
    return SentenceTransformer(modules=[transformer, pooling, Normalize()])


def _write(architecture: str, folder: Path) -> None:
    import torch
    from safetensors.torch import save_file
    from transformers import AutoConfig, AutoModel

    if architecture not in (*ENCODERS, *DECODERS):
        raise BadInput(
            f"no model {PREFIX}{architecture}: there are "
            + ", ".join(PREFIX + known for known in (*ENCODERS, *DECODERS)),
            "name one of these",
            code="tiny_model_unknown",
        )
    tokenizer = _byte_tokenizer(framed=architecture in ENCODERS)
    sizes: dict[str, Any] = dict(SIZE)
    if architecture in DECODERS:
        sizes["num_key_value_heads"] = 2
    else:
        sizes |= {"cls_token_id": tokenizer.cls_token_id, "sep_token_id": tokenizer.sep_token_id}
    config = AutoConfig.for_model(
        architecture,
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        **sizes,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModel.from_config(config)
    # Not `save_pretrained`: among several processes it writes in the first alone.
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    save_file(model.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save_pretrained(folder)


def _byte_tokenizer(*, framed: bool) -> "PreTrainedTokenizerFast":
    """One token per byte; encoders see <s> … </s>, decoders the bytes alone."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    symbols = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    vocabulary = {symbol: number for number, symbol in enumerate(symbols)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    if framed:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
        cls_token="<s>",
        sep_token="</s>",
        model_max_length=SIZE["max_position_embeddings"],
    )
