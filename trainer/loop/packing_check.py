"""Choose packed rows only where their embeddings equal those of flat rows on the first batch."""

import logging
import math
from typing import TYPE_CHECKING, Any

import torch

from trainer.data.batches import NOWHERE, QUERIES, Collator, TeacherScores
from trainer.data.claims import given_negatives, right_texts
from trainer.data.groups import Group, group_key
from trainer.data.passage_pool import PassagePool
from trainer.loop.mining import MinedNegatives
from trainer.model.packing import can_pack, enable_packing
from trainer.parallel.processes import ALONE, Processes
from trainer.settings.settings import TrainSettings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

log = logging.getLogger("inf.train")
MAX_DIFFERENCE = 1e-4


def make_collator(
    model: "SentenceTransformer",
    groups: list[Group],
    settings: TrainSettings,
    processes: Processes = ALONE,
    teacher: TeacherScores | None = None,
    mined: MinedNegatives | None = None,
    pool: PassagePool | None = None,
) -> Collator:
    """The collator, packing where the model can and the packed path was seen to be exact."""
    objective = settings.parsed_objective
    right = None
    if given := given_negatives(groups):
        right = right_texts(groups, settings.parsed_template)
        mined = {
            key: [*given.get(key, ()), *(mined or {}).get(key, ())]
            for key in map(group_key, groups)
        }

    def collator(*, packing: bool, of: Processes = ALONE) -> Collator:
        return Collator(
            model,
            settings.parsed_template,
            objective,
            settings.instructions_sampled,
            standard_share=settings.standard_share,
            teacher=teacher,
            mined=mined,
            packing=packing,
            pool=pool,
            processes=of,
            shape=groups[0].shape,
            right=right,
        )

    plain = collator(packing=False, of=processes)
    if (
        settings.packing == "off"
        or "I" not in objective.terms
        or not settings.parsed_template.instruction_first
        or not can_pack(model)
    ):
        return plain
    if settings.attention == "flash":
        log.warning("flash attention takes no mask of packed rows: packing is off")
        return plain
    enable_packing(model)
    rows = [group.row() for group in groups[: settings.rows_per_batch]]
    difference, why = math.inf, ""
    try:
        flat, packed = collator(packing=False)(rows), collator(packing=True)(rows)
        difference = packing_difference(model, flat, packed)
    except (RuntimeError, ValueError, NotImplementedError) as error:  # an attention without masks
        why = str(error)
    difference, why = processes.agree((difference, why))
    if why:
        log.warning("packed rows cannot be computed (%s): packing is off", why)
        return plain
    if difference > (MAX_DIFFERENCE if model.dtype == torch.float32 else MAX_DIFFERENCE * 100):
        log.warning("packed embeddings differ from flat ones by %.2g: packing is off", difference)
        return plain
    log.info("packing is on: packed embeddings equal flat ones (%.2g)", difference)
    return collator(packing=True, of=processes)


def packing_difference(
    model: "SentenceTransformer", flat: dict[str, Any], packed: dict[str, Any]
) -> float:
    """The largest difference of an embedding's component between the two ways, on one batch."""
    was_training = model.training
    model.eval()

    def embed(batch: dict[str, Any]) -> torch.Tensor:
        features = {
            key.removeprefix(f"{QUERIES}_"): value.to(model.device)
            if isinstance(value, torch.Tensor)
            else value
            for key, value in batch.items()
            if key.startswith(f"{QUERIES}_")
        }
        embedded: torch.Tensor = model(features)["sentence_embedding"]
        return embedded.float()

    with torch.no_grad():
        one, other = embed(flat), embed(packed)
    model.train(was_training)
    differences = [0.0]
    for table in ("matched_of", "crossed_of"):
        if table in flat["label"]:
            here, there = flat["label"][table].flatten(), packed["label"][table].flatten()
            there, here = there[here != NOWHERE], here[here != NOWHERE]
            differences.append(float((one[here] - other[there]).abs().max()))
    return max(differences)
