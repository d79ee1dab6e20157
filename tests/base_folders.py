"""Base models as a user has them: folders of three architectures with limits and prefixes."""

from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer

from trainer.model.backbone import load_model

PASSAGE = "The Aldern bridge is 80 metres long."
BASES = {
    "bert": {"learning_rate": "1e-3"},
    "mpnet": {"learning_rate": "1e-3"},
    "qwen2": {"learning_rate": "1e-2", "lora_rank": "4", "keep_adapters": "on"},
}


def save_base(architecture: str, folder: Path) -> Path:
    """A folder as a user has one: an ordinary model with a short limit and prefixes of its own."""
    if architecture == "mpnet":
        tiny: Any = load_model("tiny-random-bert")
        tiny[0].model = _tiny_mpnet(len(tiny.tokenizer))
    else:
        tiny = load_model(f"tiny-random-{architecture}")
    model = SentenceTransformer(
        modules=list(tiny), prompts={"query": "query: ", "document": "passage: "}
    )
    if architecture == "qwen2":
        model.to(torch.bfloat16)  # as decoders are stored: the base must stay so
    model.max_seq_length = 24  # shorter than PASSAGE: a changed limit would show
    model.save(str(folder), create_model_card=False)
    return folder


def _tiny_mpnet(words: int) -> torch.nn.Module:
    from transformers import MPNetConfig, MPNetModel

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    return MPNetModel(
        MPNetConfig(vocab_size=words, num_attention_heads=4, max_position_embeddings=514, **sizes)
    ).eval()


def trained(folder: Path, base: str = "tiny-random-bert", **given: str) -> str:
    """A checkpoint whose trained weights differ from those of the base."""
    import torch

    from trainer.model.backbone import load_backbone
    from trainer.model.doors import trained_part
    from trainer.settings.settings import parse_settings

    model = load_backbone(parse_settings({"base_model": base, **given}))
    with torch.no_grad():
        for weights in trained_part(model).parameters():
            weights.add_(0.1 * torch.ones_like(weights))
    model.save(str(folder), create_model_card=False)
    return str(folder)
