"""Whether activations are bfloat16: by the setting; `auto`: by what the GPU supports natively."""

import torch


def uses_bf16(precision: str) -> bool:
    """auto: on a GPU with bfloat16 units. T4 and V100 emulate it, slower than float32."""
    if precision == "auto":
        return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
    return precision == "bf16"
