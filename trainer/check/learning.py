"""Does a model learn here what it should? Short trainings on the demo set, with controls."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from trainer.check.material import demo_groups, split
from trainer.check.report import Clock, Part
from trainer.check.sizes import Sizes
from trainer.evaluate.benchmarks import held_out_benchmark
from trainer.evaluate.following import INSTRUCTION_CONTROL, QUERY_CONTROL
from trainer.evaluate.precision import scoring_precision
from trainer.evaluate.scoring import score_model
from trainer.loop.fitting import fit
from trainer.loop.precision import uses_bf16
from trainer.model.backbone import load_backbone
from trainer.probe.natural import read_natural_probe, score_natural_probe
from trainer.settings.settings import parse_settings

MEASURES = ("strict", "instruction-flip", "query-flip", "ndcg@10")
CONTROLS = (INSTRUCTION_CONTROL, QUERY_CONTROL)
PROBE_ITEMS_ON_A_CPU = 8


def measure_learning(part: Part, sizes: Sizes, models: list[str], clock: Clock) -> None:
    """Every base model × seed × objective: measures before and after, until the time is used."""
    training, held_out = split(demo_groups(sizes.groups))
    benchmark = held_out_benchmark("demo", held_out)
    items = read_natural_probe()
    items = items if torch.cuda.is_available() else items[:PROBE_ITEMS_ON_A_CPU]
    longest = 0.0
    for base in models:
        before: Mapping[str, float] = {}
        for seed in sizes.seeds:
            for objective in sizes.objectives:
                what = f"{Path(base).name}, {objective}, seed {seed}"
                if clock.left() < longest:
                    part.skip(what, "the time is used up")
                    continue
                began = clock.left()
                settings = parse_settings(
                    {
                        **{"base_model": base, "objective": objective, "seed": seed},
                        **{"max_steps": sizes.steps, "rows_per_batch": 8, "held_out": 0},
                        **{"query_tokens": sizes.tokens, "passage_tokens": sizes.tokens},
                        **{"save_steps": 10 * sizes.steps},
                        **({"instructions_sampled": 3} if objective == "P,I:multi" else {}),
                    }
                )
                model = load_backbone(settings)
                before = before or _measured(model, settings, benchmark, items)
                with tempfile.TemporaryDirectory(prefix="inf-check-") as folder:
                    done = fit(
                        model,
                        training,
                        settings,
                        Path(folder) / "work",
                        report=lambda *_: None,
                        stream=lambda *_: None,
                    )
                after = _measured(model, settings, benchmark, items)
                part.add(
                    base=Path(base).name,
                    objective=objective,
                    seed=seed,
                    steps=done["steps"],
                    seconds=done["seconds"],
                    loss_first=done["losses"][0],
                    loss_last=done["losses"][-1],
                    **{name: f"{before[name]:.3f} → {after[name]:.3f}" for name in after},
                )
                part.require(
                    all(map(_is_finite, done["losses"])), f"{what}: a loss is NaN or infinite"
                )
                longest = max(longest, began - clock.left())
    part.notes.append(
        f"{len(training)} groups train, {len(held_out)} are held out; natural probe over "
        f"{len(items)} items; controls read one half of the text"
    )


def _is_finite(value: float) -> bool:
    return value == value and abs(value) != float("inf")


def _measured(model: Any, settings: Any, benchmark: Any, items: Any) -> Mapping[str, float]:
    with scoring_precision(model.device, bf16=uses_bf16(settings.precision)):
        scores = score_model(model, settings.parsed_template, benchmark, controls=True)
        probe = score_natural_probe(model, settings.parsed_template, items)
    found = {name: scores.metrics.get(name) for name in (*MEASURES, *CONTROLS)}
    return {name: value for name, value in found.items() if value is not None} | probe.metrics
