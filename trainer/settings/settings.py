"""The settings of a training, parsed from key=value and checked before a model is loaded.

Each setting's type, default and range stand in `trainer.settings.table`; here are the conflicts
between settings. This module loads no torch: the app and the command line check a form with it.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from db.errors import BadInput
from trainer.objectives.names import Objective, parse_objective
from trainer.settings.suggestions import suggested_setting
from trainer.settings.table import GUARD_MEASURE, OFF_HELD_OUT, SETTINGS, SettingFields
from trainer.settings.template import APART, DEFAULT_TEMPLATE, Template


@dataclass(frozen=True)
class TrainSettings(SettingFields):
    """The settings of one training; `parse_settings` makes them from text and checks them."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def parsed_objective(self) -> Objective:
        return parse_objective(self.objective)

    @property
    def matryoshka_sizes(self) -> tuple[int, ...]:
        """The lengths of the truncated vectors that are trained too, longest first."""
        return _sizes(self.matryoshka)

    @property
    def frozen_patterns(self) -> tuple[str, ...]:
        return split_list(self.freeze)

    @property
    def extra_releases(self) -> tuple[tuple[str, float], ...]:
        """(folder or number, weight) of each further release."""
        return tuple(_weighted(part) for part in split_list(self.more_releases))

    @property
    def writes_tensorboard(self) -> bool:
        return self.tensorboard == "on" or self.report_to == "tensorboard"

    @property
    def judging_teacher(self) -> str:
        """The judge of the release that teaches; empty without a teacher and for a reranker."""
        kind, _, judge = self.teacher.partition(":")
        return judge if kind == JUDGE else ""

    @property
    def lora_layers(self) -> tuple[str, ...]:
        return split_list(self.lora_targets)

    @property
    def parsed_template(self) -> Template:
        return Template(APART if self.interaction == "II" else self.template)

    def as_dict(self) -> dict[str, Any]:
        """All settings by name, as JSON."""
        return dataclasses.asdict(self)


MAX_WEIGHT = 100
RERANKERS = ("cross-encoder", "monot5", "flan-t5")
JUDGE = "judge"  # the kind of a teacher that is a judge of the release
ALIASES = {"backbone": "base_model"}


def parse_settings(given: Mapping[str, Any]) -> TrainSettings:
    """Settings from texts or values by name. Raises BadInput naming the key and the remedy."""
    known = {ALIASES.get(key, key): value for key, value in given.items()}
    return TrainSettings(**{key: _convert(key, value) for key, value in known.items()})


def stored_settings(given: Mapping[str, Any]) -> TrainSettings:
    """The settings that a checkpoint stores, also one that an older version wrote.

    `best_by=p-mrr` is no longer offered and does not affect how the model is loaded.
    """
    return parse_settings(
        {**given, **({"best_by": "last"} if given.get("best_by") == "p-mrr" else {})}
    )


def split_pairs(arguments: tuple[str, ...] | list[str]) -> dict[str, str]:
    """`("epochs=3", "seed=1")` as a dictionary. Raises BadInput for one without `=`."""
    pairs: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals:
            raise BadInput(
                f"{argument!r} is not key=value",
                "write it as epochs=3",
                code="setting_not_key_value",
            )
        key = ALIASES.get(key, key)
        if key in pairs:
            raise BadInput(
                f"{key} is given twice: {pairs[key]!r} and {value!r}",
                "Give it once",
                code="setting_given_twice",
            )
        pairs[key] = value
    return pairs


def _convert(key: str, value: Any) -> Any:
    if key not in SETTINGS:
        near = suggested_setting(key)
        question = f"did you mean {near!r}? " if near else ""
        raise BadInput(
            f"no setting {key!r}",
            f"{question}Settings are {', '.join(SETTINGS)}",
            code="setting_unknown",
        )
    return SETTINGS[key].parse(value)


def _check(settings: TrainSettings) -> None:
    for name, setting in SETTINGS.items():
        setting.check(getattr(settings, name))
    if not settings.base_model.strip():
        raise BadInput(
            "base_model is empty", "give the name or the folder of a model", code="base_model_empty"
        )
    if settings.epochs <= 0 and settings.max_steps == 0:
        raise BadInput(
            f"epochs={settings.epochs}: it must be more than 0",
            "give more, or max_steps",
            code="epochs_invalid",
        )
    if settings.best_by != "last" and not settings.evaluate_steps:
        raise BadInput(
            f"best_by={settings.best_by} needs evaluations while training",
            "give evaluate_steps=50, for example",
            code="best_by_needs_evaluations",
        )
    if settings.patience and settings.best_by == "last":
        raise BadInput(
            "patience needs a measure",
            "give best_by=strict, for example",
            code="patience_needs_measure",
        )
    if settings.best_by == GUARD_MEASURE and not settings.guard:
        raise BadInput(
            f"best_by={GUARD_MEASURE} needs a benchmark",
            "give guard=FOLDER",
            code="best_by_needs_benchmark",
        )
    if settings.best_by.startswith("natural") and settings.natural_probe == "off":
        raise BadInput(
            f"best_by={settings.best_by} needs natural_probe=on",
            "give that, too",
            code="best_by_needs_probe",
        )
    if settings.evaluate_steps and not settings.held_out and settings.best_by not in OFF_HELD_OUT:
        raise BadInput(
            "evaluate_steps needs held-out groups",
            "give held_out=0.1, for example",
            code="evaluate_steps_needs_held_out",
        )
    _check_lora(settings)
    if settings.attention == "flash" and settings.precision == "fp32":
        raise BadInput(
            "attention=flash computes in bfloat16 alone",
            "give precision=bf16, or attention=sdpa",
            code="flash_needs_bfloat16",
        )
    _check_trained_side(settings)
    if settings.matryoshka_sizes and settings.parsed_objective.baseline:
        raise BadInput(
            f"matryoshka={settings.matryoshka!r} is for our objectives, and "
            f"objective={settings.objective} is a baseline",
            "leave out matryoshka",
            code="matryoshka_excludes_baseline",
        )
    kind, _, teacher = settings.teacher.partition(":")
    if settings.teacher and (kind not in (*RERANKERS, JUDGE) or not teacher):
        raise BadInput(
            f"teacher={settings.teacher!r}",
            f"give a reranker as {', '.join(RERANKERS)} and its "
            "name, for example cross-encoder:NAME, or a judge of the release as judge:NAME",
            code="teacher_invalid",
        )
    if settings.dropout < 0 and settings.dropout != -1:
        raise BadInput(
            f"dropout={settings.dropout:g}",
            "give -1 or a probability from 0 up",
            code="dropout_invalid",
        )
    if settings.standard_share and settings.interaction == "II":
        raise BadInput(
            "standard_share needs interaction=I: plain queries have no instruction",
            "Give interaction=I",
            code="standard_share_needs_interaction_i",
        )
    if settings.base_share and (settings.quantize != "off" or settings.fsdp == "on"):
        raise BadInput(
            "base_share needs whole weights in float32",
            "give quantize=off and fsdp=off",
            code="base_share_needs_float32",
        )
    if settings.fsdp == "on":
        _check_fsdp(settings)
    if settings.interaction == "II" and settings.encoders == "two":
        raise BadInput(
            "interaction=II has one shared encoder",
            "give encoders=shared",
            code="interaction_ii_needs_shared_encoder",
        )
    if settings.interaction == "II" and settings.template not in (DEFAULT_TEMPLATE, APART):
        raise BadInput(
            "interaction=II encodes instruction and query apart: a template has no effect there",
            "leave out template, or give interaction=I",
            code="template_excludes_interaction_ii",
        )
    objective, _ = settings.parsed_objective, settings.parsed_template
    if len({name for name, _ in settings.extra_releases}) < len(settings.extra_releases):
        raise BadInput(
            f"more_releases={settings.more_releases!r} names a release twice",
            "name it once",
            code="release_named_twice",
        )
    if settings.mined_negatives and not objective.reads_negatives:
        raise BadInput(
            f"mined_negatives={settings.mined_negatives} applies only where our loss has the term "
            f"P, and objective={settings.objective} does not",
            "leave out mined_negatives",
            code="mined_negatives_need_term",
        )
    if settings.mined_corpus and not settings.mined_negatives:
        raise BadInput(
            f"mined_corpus={settings.mined_corpus} is read only where negatives are mined",
            "give mined_negatives, how many for each group",
            code="mined_corpus_needs_number",
        )
    if settings.positive_counted == "as-printed" and objective.mode != "multi":
        raise BadInput(
            f"positive_counted=as-printed applies only for multi objectives, "
            f"and objective={settings.objective} is not one",
            "leave out positive_counted",
            code="positive_counted_needs_multi",
        )
    if settings.instructions_sampled and "I" not in objective.terms:
        raise BadInput(
            f"instructions_sampled={settings.instructions_sampled} applies only where the "
            f"objective has the term I, and objective={settings.objective} does not",
            "leave out instructions_sampled",
            code="sampled_instructions_need_term",
        )


# What trained_side=query cannot do, and why.
BOTH_ONLY = {
    "encoders": "it has two already",
    "interaction": "its checkpoint must load with sentence-transformers alone",
    "standard_share": "plain queries are the base model's, and not trained",
    "passage_prefix": "passages are read as the base model reads them",
    "chat_template": "the base model's reading would change too",
    "fsdp": "its gradients are not tested against one process",
    "quantize": "the base model must stay as it is stored",
}


def _check_trained_side(settings: TrainSettings) -> None:
    if settings.trained_side == "both":
        if settings.pool_passages:
            raise BadInput(
                f"pool_passages={settings.pool_passages} needs passages that are not trained",
                "give trained_side=query, or mined_negatives",
                code="pool_needs_fixed_passages",
            )
        return
    for name, why in BOTH_ONLY.items():
        if getattr(settings, name) != SETTINGS[name].default:
            raise BadInput(
                f"{name}={getattr(settings, name)} needs trained_side=both: with query, {why}",
                "change one of the two",
                code="setting_needs_both_sides",
            )


def _check_lora(settings: TrainSettings) -> None:
    if settings.lora_rank == 0:
        for name in ("lora_targets", "lora_dropout", "dora", "keep_adapters", "quantize"):
            if getattr(settings, name) != SETTINGS[name].default:
                raise BadInput(
                    f"{name}={getattr(settings, name)} applies only to LoRA",
                    "give lora_rank=16, for example",
                    code="setting_needs_lora",
                )
    elif settings.freeze:
        raise BadInput(
            f"freeze={settings.freeze!r} has no effect with lora_rank: only adapters are trained",
            "Leave out freeze or lora_rank",
            code="freeze_excludes_lora",
        )
    if settings.dora == "on" and settings.quantize != "off":
        raise BadInput(
            "dora=on needs the lengths of whole weights",
            "give quantize=off or dora=off",
            code="dora_needs_weight_lengths",
        )
    if settings.keep_adapters == "on" and settings.encoders == "two":
        raise BadInput(
            "keep_adapters=on keeps the adapters of one encoder",
            "give encoders=shared or keep_adapters=off",
            code="keep_adapters_needs_one_encoder",
        )


def split_list(text: str) -> tuple[str, ...]:
    """The entries of a list with commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _weighted(part: str) -> tuple[str, float]:
    name, star, weight = part.rpartition("*")
    if not star:
        return part, 1.0
    try:
        value = float(weight)
    except ValueError:
        value = 0.0
    if not name.strip() or not 0 < value <= MAX_WEIGHT:
        raise BadInput(
            f"more_releases: {part!r} is not RELEASE*WEIGHT with a weight above 0 and at most "
            f"{MAX_WEIGHT}",
            "write it as 12*0.5",
            code="more_releases_invalid",
        )
    return name.strip(), value


def _sizes(text: str) -> tuple[int, ...]:
    parts = split_list(text)
    if wrong := [part for part in parts if not part.isdecimal() or int(part) < 1]:
        raise BadInput(
            f"matryoshka={text!r}: {wrong[0]!r} is not a number of dimensions",
            "write them as 256,128,64",
            code="matryoshka_invalid",
        )
    return tuple(sorted({int(part) for part in parts}, reverse=True))


def _check_fsdp(settings: TrainSettings) -> None:
    """Refuse what is not tested with sharded weights."""
    if settings.texts_at_once:
        raise BadInput(
            f"fsdp=on cannot do texts_at_once={settings.texts_at_once} (processes with different "
            "numbers of parts would wait for one another)",
            "give texts_at_once=0",
            code="fsdp_excludes_texts_at_once",
        )
    for name, wanted in (
        ("encoders", "shared"),
        ("interaction", "I"),
        ("compile", "off"),
        ("quantize", "off"),
        ("dora", "off"),
        ("optimizer", "adamw"),
        ("freeze", ""),
    ):
        if getattr(settings, name) != wanted:
            raise BadInput(
                f"fsdp=on needs {name}={wanted or 'empty'}: with {getattr(settings, name)} its "
                "gradients are not tested against one process",
                "Give that, or leave out fsdp",
                code="fsdp_setting_unsupported",
            )


def check_processes(settings: TrainSettings, count: int) -> None:
    """Refuse what this number of processes cannot train. Raises BadInput with the remedy."""
    if settings.fsdp == "on" and count == 1:
        raise BadInput(
            "fsdp=on shards weights over several processes",
            "give `nproc=2` or more",
            code="fsdp_needs_several_processes",
        )
    if count > 1 and settings.encoders == "two" and settings.texts_at_once:
        raise BadInput(
            "encoders=two with texts_at_once trains in one process only (DDP would wait for the "
            "other encoder)",
            "give texts_at_once=0, or one process",
            code="two_encoders_need_one_process",
        )
