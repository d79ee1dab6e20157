"""Folders with tiny language models: random weights, or weights whose answer is known by hand."""

from pathlib import Path
from typing import Any

from trainer.model.tiny import _byte_tokenizer

HIDDEN = 16
SIZES = {
    "hidden_size": HIDDEN,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
CHAT = (
    "{% for message in messages %}<s>{{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}!{% endif %}"
)


def write_decoder(
    folder: Path,
    architecture: str = "qwen2",
    *,
    tied: bool = False,
    chat: bool = False,
    logits: dict[str, float] | None = None,
    positions: int = 4096,
) -> Path:
    """A causal model. With `logits`, its next word does not depend on the question: these tokens
    have these logits, all others 0.

    How: every block adds nothing, so the last token's embedding, (1, 0, …), comes out as it went
    in; RMSNorm makes it (sqrt(HIDDEN), 0, …) = (4, 0, …), and the output layer's rows are x / 4.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer: Any = _byte_tokenizer(framed=False)
    tokenizer.model_max_length = positions
    if chat:
        tokenizer.chat_template = CHAT
    config = AutoConfig.for_model(
        architecture,
        vocab_size=len(tokenizer),
        tie_word_embeddings=tied,
        max_position_embeddings=positions,
        rms_norm_eps=1e-12,
        **SIZES,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: Any = AutoModelForCausalLM.from_config(config)
    if logits is not None:
        with torch.no_grad():
            for layer in model.model.layers:
                layer.self_attn.o_proj.weight.zero_()
                layer.mlp.down_proj.weight.zero_()
            model.model.embed_tokens.weight.zero_()
            model.model.embed_tokens.weight[:, 0] = 1.0
            model.lm_head.weight.zero_()
            for token, logit in logits.items():
                model.lm_head.weight[tokenizer.get_vocab()[token], 0] = logit / HIDDEN**0.5
    else:
        with torch.no_grad():
            model.get_output_embeddings().weight.mul_(20)  # so that answers differ visibly
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_t5(folder: Path, *, framed: bool = True) -> Path:
    """An encoder-decoder with random weights; `framed` texts stand between <s> and </s>."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer: Any = _byte_tokenizer(framed=framed)
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=1,
        num_heads=2,
        pad_token_id=0,
        decoder_start_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.model_max_length = 4096
    tokenizer.save_pretrained(folder)
    return folder


def write_cross_encoder(folder: Path, labels: int = 1) -> Path:
    """A one-layer BERT that scores pairs, with random weights."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    tokenizer = _byte_tokenizer(framed=True)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_labels=labels,
    )
    torch.manual_seed(0)
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


OTHERS: dict[str, dict[str, Any]] = {
    "opt": {"ffn_dim": 32, "word_embed_proj_dim": HIDDEN},
    "gpt2": {"n_embd": HIDDEN, "n_layer": 2, "n_head": 4, "n_positions": 512},
    "mpnet": {},
    "mamba": {},
    "biogpt": {},
    "t5": {"d_model": HIDDEN, "d_ff": 32, "num_layers": 2, "num_heads": 4, "d_kv": 4},
    "xlm": {"emb_dim": HIDDEN, "n_layers": 2, "n_heads": 4},
}


def other_transformer(architecture: str, vocabulary: int = 300) -> Any:
    """A transformer of an architecture that `tiny-random-` does not have, weights random."""
    import torch
    from transformers import AutoConfig, AutoModel

    sizes = SIZES | {"max_position_embeddings": 512} | OTHERS[architecture]
    tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = AutoConfig.for_model(architecture, vocab_size=vocabulary, **sizes, **tokens)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: Any = AutoModel.from_config(config)
    return model.encoder if architecture == "t5" else model


def write_other(folder: Path, architecture: str) -> Path:
    """Its folder, as plain transformers are published, with the tokenizer of a token per byte."""
    tokenizer: Any = _byte_tokenizer(framed=architecture == "mpnet")
    tokenizer.model_max_length = 512
    other_transformer(architecture, len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
