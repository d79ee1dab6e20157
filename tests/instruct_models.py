"""Folders of tiny decoders as instruct models are published: a chat template, bfloat16 weights."""

from pathlib import Path
from typing import Any

from trainer.model.tiny import build_tiny_model

CHAT = (
    "{% for message in messages %}<s>{{ message['role'] }}:{{ message['content'] }}</s>\n"
    "{% endfor %}"
)


def write_instruct(folder: Path, *, dtype: str = "float32", chat: bool = True) -> Path:
    """A plain transformer folder (no modules.json) with tiny random weights."""
    import torch

    model: Any = build_tiny_model("tiny-random-qwen2")
    if chat:
        model.tokenizer.chat_template = CHAT
    model[0].model.to(getattr(torch, dtype)).save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder
