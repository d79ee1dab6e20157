"""A collated batch as the loss takes it, for steps outside the trainer's loop."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def columns_of(
    batch: Mapping[str, Any], device: torch.device
) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    """(the columns queries and passages, the tables), tensors on the device."""
    tables = {name: table.to(device) for name, table in batch["label"].items()}
    columns: dict[str, dict[str, Any]] = {}
    for key, value in batch.items():
        if key == "label":
            continue
        column, _, name = key.partition("_")
        is_tensor = isinstance(value, Tensor)
        columns.setdefault(column, {})[name] = value.to(device) if is_tensor else value
    return list(columns.values()), tables
