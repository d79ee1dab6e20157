"""Does a model learn here what it should? Short trainings on the demo set, with controls."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from analysis.embed.model_source import model_source
from trainer.check.material import demo_groups, split
from trainer.evaluate.benchmarks import held_out_benchmark
from trainer.evaluate.following import INSTRUCTION_CONTROL, QUERY_CONTROL
from trainer.evaluate.scoring import score_model, scoring_precision
from trainer.loop.fitting import fit
from trainer.loop.precision import uses_bf16
from trainer.model.backbone import load_backbone
from trainer.probe.natural import read_natural_probe, score_natural_probe
from trainer.settings.settings import parse_settings

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MEASURES = ("strict", "instruction-flip", "query-flip", "ndcg@10")
CONTROLS = (INSTRUCTION_CONTROL, QUERY_CONTROL)
HAS_GPU = torch.cuda.is_available()
GROUPS, STEPS, TOKENS = (600, 80, 256) if HAS_GPU else (12, 2, 64)
OBJECTIVES = ("P", "P,I:multi", "mnrl", "promptriever") if HAS_GPU else ("P", "promptriever")


@pytest.mark.long
@pytest.mark.gpu
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", (1, 2, 3) if HAS_GPU else (1,))
def test_a_short_training_has_finite_losses_and_is_measured_before_and_after(
    tmp_path: Path, objective: str, seed: int
) -> None:
    training, held_out = split(demo_groups(GROUPS))
    has_minilm = HAS_GPU and model_source(MINILM) != MINILM
    settings = parse_settings(
        {
            "base_model": MINILM if has_minilm else "tiny-random-bert",
            **{"objective": objective, "seed": seed},
            **{"max_steps": STEPS, "rows_per_batch": 8, "held_out": 0},
            **{"query_tokens": TOKENS, "passage_tokens": TOKENS, "save_steps": 10 * STEPS},
            **({"instructions_sampled": 3} if objective == "P,I:multi" else {}),
        }
    )
    model = load_backbone(settings)
    before = measured(model, settings, held_out)
    done = fit(
        model,
        training,
        settings,
        tmp_path / "work",
        report=lambda *_: None,
        stream=lambda *_: None,
    )
    after = measured(model, settings, held_out)
    sys.stdout.writelines(f"{name}: {before[name]:.3f} → {after[name]:.3f}\n" for name in after)
    assert torch.isfinite(torch.tensor(done["losses"])).all()
    assert {"strict", "ndcg@10", *CONTROLS} <= after.keys() == before.keys()


def measured(model: Any, settings: Any, held_out: Any) -> Mapping[str, float]:
    items = read_natural_probe()
    with scoring_precision(model.device, bf16=uses_bf16(settings.precision)):
        benchmark = held_out_benchmark("demo", held_out)
        scores = score_model(model, settings.parsed_template, benchmark, controls=True)
        probe = score_natural_probe(
            model, settings.parsed_template, items if HAS_GPU else items[:8]
        )
    found = {name: scores.metrics.get(name) for name in (*MEASURES, *CONTROLS)}
    return {name: value for name, value in found.items() if value is not None} | probe.metrics
