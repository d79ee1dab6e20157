"""What a training can be told, as key=value, and every conflict refused before anything loads.

The defaults are the paper's (section 6.1, definitions 2) but for the batch: the paper has 4 rows on
each of 8 GPUs, here 8 rows on one device. This module loads nothing heavy: the app and the command
line check a form with it.
"""

import dataclasses
import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from db.errors import BadInput
from trainer.objectives.names import Objective, parse_objective
from trainer.settings.template import APART, DEFAULT_TEMPLATE, Template

DEFAULT_BASE_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


@dataclass(frozen=True)
class TrainSettings:
    """Settings of one training; `parse_settings` makes them from text and checks them."""

    base_model: str = DEFAULT_BASE_MODEL
    """A SentenceTransformer or a plain transformer, by name or folder."""
    remote_code: str = "refuse"
    """Code that comes with the base model: refuse it, or run it (who wrote it can do anything)."""
    objective: str = "P"
    """One of Table 3 (P, I, IQ, P,I:uni … P,I,IQ:multi), or to compare: mnrl, promptriever."""
    temperature: float = 0.05
    template: str = DEFAULT_TEMPLATE
    query_prefix: str = ""
    passage_prefix: str = ""
    query_tokens: int = 256
    passage_tokens: int = 512
    epochs: float = 2.0
    max_steps: int = 0
    """Stop after so many steps; 0: the epochs say when."""
    max_seconds: float = 0.0
    """Stop cleanly after so much training time; 0: no limit."""
    rows_per_batch: int = 8
    """Groups in a batch; each gives three triplets, the negatives of one another."""
    texts_at_once: int = 0
    """Texts embedded at once with cached gradients, whatever the batch; 0: all, without caching."""
    packing: str = "auto"
    """Share the instruction's prefix where a causal model reads it often: auto or off."""
    gradient_checkpointing: str = "off"
    """Recompute activations instead of keeping them: on or off."""
    fsdp: str = "off"
    """Share the weights out over several processes (FSDP 2) instead of copying them: on or off."""
    precision: str = "auto"
    """Activations in bf16 or fp32; auto: bf16 on a GPU that has it. Weights stay in fp32."""
    pooling: str = "auto"
    """mean, cls or last; auto: the model's own, last for a plain decoder, mean for an encoder."""
    interaction: str = "I"
    """I: instruction and query are one text (the template); II: encoded apart, cross-attention."""
    encoders: str = "shared"
    """One encoder for queries and passages (shared), or two that start equal (two)."""
    lora_rank: int = 0
    """Train additions of this rank to the linear layers, merged at the end; 0: all weights."""
    lora_alpha: float = 16.0
    """The additions are scaled by lora_alpha / lora_rank."""
    learning_rate: float = 5e-5
    seed: int = 42
    held_out: float = 0.1
    """Share of the groups held out; no query or passage is on both sides. 0: none."""
    held_out_seed: int = 42
    dropped: str = "exclude"
    """Groups that validation dropped, where the release has them: exclude, or include."""
    evaluate_steps: int = 0
    """Score the held-out groups every so many steps; 0: before and after only."""
    best_by: str = "last"
    """Which weights are kept: the last, or the best on the held-out groups by a measure."""
    patience: int = 0
    """Stop after so many evaluations that were no better than the best; 0: never."""
    save_steps: int = 0
    """Keep a state to resume from every so many steps; 0: every two minutes."""
    tensorboard: str = "off"
    """Write the curves for TensorBoard too (beside the store): on or off."""
    positive_counted: str = "once"
    """In the union of negatives (multi): once, or as-printed in Eq. 7 (once for each term)."""
    instructions_sampled: int = 0
    """Marginal instructions per anchor, always with the row's own I-; 0: all of the batch."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def parsed_objective(self) -> Objective:
        return parse_objective(self.objective)

    @property
    def parsed_template(self) -> Template:
        return Template(APART if self.interaction == "II" else self.template)

    def as_dict(self) -> dict[str, Any]:
        """All settings by name, as JSON."""
        return dataclasses.asdict(self)


ALIASES = {"backbone": "base_model"}
CHOICES = {
    "dropped": ("exclude", "include"),
    "positive_counted": ("once", "as-printed"),
    "packing": ("auto", "off"),
    "gradient_checkpointing": ("off", "on"),
    "fsdp": ("off", "on"),
    "precision": ("auto", "bf16", "fp32"),
    "pooling": ("auto", "mean", "cls", "last"),
    "interaction": ("I", "II"),
    "remote_code": ("refuse", "run"),
    "tensorboard": ("off", "on"),
    "encoders": ("shared", "two"),
    "best_by": ("last", "ndcg@10", "map", "mrr", "p-mrr"),
}
FIELDS = {field.name: field for field in dataclasses.fields(TrainSettings)}


def parse_settings(given: Mapping[str, Any]) -> TrainSettings:
    """Settings from texts or values by name. Raises BadInput naming the key and the remedy."""
    known = {ALIASES.get(key, key): value for key, value in given.items()}
    return TrainSettings(**{key: _convert(key, value) for key, value in known.items()})


def split_pairs(words: tuple[str, ...] | list[str]) -> dict[str, str]:
    """`("epochs=3", "seed=1")` as a dictionary. Raises BadInput for a word without `=`."""
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise BadInput(f"{word!r} is not key=value, for example epochs=3")
        key = ALIASES.get(key, key)
        if key in pairs:
            raise BadInput(f"{key} is given twice: {pairs[key]!r} and {value!r}")
        pairs[key] = value
    return pairs


def _convert(key: str, value: Any) -> Any:
    if key not in FIELDS:
        near = difflib.get_close_matches(key, FIELDS, n=1, cutoff=0.0)
        raise BadInput(
            f"no setting {key!r}: did you mean {near[0]!r}? Settings are {', '.join(FIELDS)}"
        )
    kind = FIELDS[key].type
    if not isinstance(value, str):
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise BadInput(f"{key}={value!r}: {_wanted(kind)} is needed")
        return value
    try:
        return kind(value)
    except ValueError as error:
        raise BadInput(f"{key}={value!r}: {_wanted(kind)} is needed") from error


def _wanted(kind: Any) -> str:
    return {int: "a whole number", float: "a number", str: "a text"}[kind]


def _check(settings: TrainSettings) -> None:
    for field in FIELDS.values():
        value = getattr(settings, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise BadInput(f"{field.name}={value}: a finite number is needed")
    for name in ("temperature", "learning_rate", "lora_alpha"):
        if getattr(settings, name) <= 0:
            raise BadInput(f"{name}={getattr(settings, name)}: it must be more than 0")
    for name in ("rows_per_batch", "query_tokens", "passage_tokens"):
        if getattr(settings, name) < 1:
            raise BadInput(f"{name}={getattr(settings, name)}: it must be at least 1")
    for name in (
        *("max_steps", "max_seconds", "seed", "held_out_seed", "evaluate_steps", "save_steps"),
        *("instructions_sampled", "texts_at_once", "patience", "lora_rank"),
    ):
        if getattr(settings, name) < 0:
            raise BadInput(f"{name}={getattr(settings, name)}: it must not be negative")
    if not settings.base_model.strip():
        raise BadInput("base_model is empty: give the name or the folder of a model")
    if settings.epochs <= 0 and settings.max_steps == 0:
        raise BadInput(f"epochs={settings.epochs}: it must be more than 0, or give max_steps")
    if not 0 <= settings.held_out < 1:
        raise BadInput(f"held_out={settings.held_out}: a share from 0 to less than 1 is needed")
    if settings.best_by != "last" and not settings.evaluate_steps:
        raise BadInput(
            f"best_by={settings.best_by} needs evaluations while training: give evaluate_steps=50, "
            "for example"
        )
    if settings.patience and settings.best_by == "last":
        raise BadInput("patience needs a measure: give best_by=ndcg@10, for example")
    if settings.evaluate_steps and settings.held_out == 0:
        raise BadInput("evaluate_steps needs held-out groups: give held_out=0.1, for example")
    for name, choices in CHOICES.items():
        if getattr(settings, name) not in choices:
            raise BadInput(f"{name}={getattr(settings, name)!r}: it is one of {', '.join(choices)}")
    if settings.fsdp == "on":
        _check_fsdp(settings)
    if settings.interaction == "II" and settings.encoders == "two":
        raise BadInput("interaction=II has one shared encoder: give encoders=shared")
    if settings.interaction == "II" and settings.template not in (DEFAULT_TEMPLATE, APART):
        raise BadInput(
            "interaction=II encodes instruction and query apart, so a template says nothing there: "
            "leave template out, or give interaction=I"
        )
    objective, _ = settings.parsed_objective, settings.parsed_template
    if settings.positive_counted == "as-printed" and objective.mode != "multi":
        raise BadInput(
            f"positive_counted=as-printed says something only for multi objectives, "
            f"and objective={settings.objective} is not one"
        )
    if settings.instructions_sampled and "I" not in objective.terms:
        raise BadInput(
            f"instructions_sampled={settings.instructions_sampled} says something only where the "
            f"objective has the term I, and objective={settings.objective} has not"
        )


def _check_fsdp(settings: TrainSettings) -> None:
    """Refuse what was not seen to work with shared-out weights."""
    if settings.texts_at_once:
        raise BadInput(
            f"fsdp=on cannot do texts_at_once={settings.texts_at_once} (processes with different "
            "numbers of parts would wait for one another): give texts_at_once=0"
        )
    for name, wanted in (("encoders", "shared"), ("interaction", "I")):
        if getattr(settings, name) != wanted:
            raise BadInput(
                f"fsdp=on needs {name}={wanted}: with {getattr(settings, name)} it was never seen "
                "to give the gradients of one process"
            )


def check_processes(settings: TrainSettings, count: int) -> None:
    """Refuse what so many processes cannot train. Raises BadInput with the remedy."""
    if settings.fsdp == "on" and count == 1:
        raise BadInput("fsdp=on shares weights out over several processes: give --nproc 2 or more")
    if count > 1 and settings.encoders == "two" and settings.texts_at_once:
        raise BadInput(
            "encoders=two with texts_at_once trains in one process only (DDP would wait for the "
            "other encoder): give texts_at_once=0, or one process"
        )
