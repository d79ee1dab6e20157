"""What a check measures with: shapes and counts, real ones on a GPU, tiny ones on a CPU."""

from dataclasses import dataclass
from typing import Any

Shape = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """decoders, encoder: {name: (architecture, shape)}; rows: groups per batch of a step;
    texts, groups, base, tokens: of encoding, whose texts are cut after so many tokens."""

    decoders: dict[str, tuple[str, Shape]]
    encoders: dict[str, tuple[str, Shape]]
    rows: tuple[int, ...]
    max_rows: int
    texts: int
    groups: int
    base: str
    tokens: int


QWEN_HALF_BILLION: Shape = {
    **{"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24},
    **{"num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151_936},
}
LLAMA_ONE_BILLION: Shape = {
    **{"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16},
    **{"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128_256},
}
BERT_BASE: Shape = {
    **{"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12},
    **{"num_attention_heads": 12, "vocab_size": 30_522},
}
ON_A_GPU = Sizes(
    decoders={
        "Qwen2 0.5 B": ("qwen2", QWEN_HALF_BILLION),
        "Llama 1 B": ("llama", LLAMA_ONE_BILLION),
    },
    encoders={"BERT base": ("bert", BERT_BASE)},
    rows=(8, 32),
    max_rows=512,
    texts=2048,
    groups=600,
    base="sentence-transformers/all-MiniLM-L6-v2",
    tokens=256,
)
ON_A_CPU = Sizes(
    decoders={"Qwen2 tiny": ("qwen2", {}), "Llama tiny": ("llama", {})},
    encoders={"BERT tiny": ("bert", {})},
    rows=(2, 4),
    max_rows=0,
    texts=32,
    groups=12,
    base="tiny-random-bert",
    tokens=64,
)
