"""A cross-encoder that learnt from the training groups, as the teacher of bench/results.py.

No published reranker is at hand without a network, so MiniLM itself becomes one: instruction,
query and passage in one text, a cross-entropy over the group's three passages for each scenario. It
reads the groups that train and no held-out one.
"""

import random
from collections.abc import Sequence
from pathlib import Path

import torch
from sentence_transformers import CrossEncoder

from analysis.embed.model_source import model_source
from trainer.data.groups import Group
from trainer.launch.plan import groups_of
from trainer.loop.teacher import scenario_pairs
from trainer.settings.settings import TrainSettings
from trainer.settings.table import DEFAULT_BASE_MODEL

EPOCHS, GROUPS_PER_STEP, LEARNING_RATE, SEED, TOKENS = 2, 4, 5e-5, 1, 256


def make_teacher(release: Path, settings: TrainSettings, folder: Path) -> Path:
    """The folder of the cross-encoder, made where it is not there; prints how good it is."""
    if folder.is_dir():
        return folder
    groups = groups_of(release, settings)
    torch.manual_seed(SEED)
    model = CrossEncoder(model_source(DEFAULT_BASE_MODEL), num_labels=1, max_length=TOKENS)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    order = random.Random(SEED)
    for _ in range(EPOCHS):
        training = order.sample(groups.training, len(groups.training))
        for start in range(0, len(training), GROUPS_PER_STEP):
            model.train()
            found = scores(model, training[start : start + GROUPS_PER_STEP], settings)
            right = torch.arange(3).repeat(len(found) // 3)
            loss = torch.nn.functional.cross_entropy(found.float(), right)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        share = sum(is_right(model, group, settings) for group in groups.held_out)
    print(
        f"teacher: all three scenarios right in {share} of {len(groups.held_out)} held-out groups"
    )
    partial = folder.with_name(f"{folder.name}.partial")  # of a run that was killed: no teacher
    model.save_pretrained(str(partial))
    return partial.rename(folder)


def scores(model: CrossEncoder, groups: Sequence[Group], settings: TrainSettings) -> torch.Tensor:
    """(3 scenarios of each group, its 3 passages)."""
    template = settings.parsed_template
    pairs = [pair for group in groups for pair in scenario_pairs(group, template)]
    read = model.tokenizer(
        [query for query, _ in pairs],
        [passage for _, passage in pairs],
        padding=True,
        truncation="longest_first",
        max_length=TOKENS,
        return_tensors="pt",
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model.model(**read).logits.reshape(-1, 3)


def is_right(model: CrossEncoder, group: Group, settings: TrainSettings) -> bool:
    """Whether each scenario's own passage is first among the three."""
    return bool((scores(model, [group], settings).argmax(1) == torch.arange(3)).all())
