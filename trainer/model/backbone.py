"""Loading the model that is trained, and what a checkpoint of ours remembers of its training.

Only safetensors weights are read (no pickles) and no code that comes with a model is run; of
modules outside sentence-transformers our own Interaction II alone is on the list of what may be
loaded.
"""

import json
import logging
from collections.abc import Callable, Container, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.embed.chat_template import applies_chat_template, set_chat_template
from analysis.embed.model_source import model_source
from analysis.embed.plain_model import PlainModel
from db.errors import BadInput
from trainer.model.serving_layout import INTERACTION, PUBLIC
from trainer.model.tiny import PREFIX, build_tiny_model
from trainer.settings.settings import TrainSettings
from trainer.settings.template import Template

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

log = logging.getLogger("inf.train")
MEMORY = "inf_embed.json"
SAFE = {"use_safetensors": True}
ATTENTIONS = {"sdpa": "sdpa", "eager": "eager", "flash": "flash_attention_2"}


def load_model(
    name: str,
    *,
    remote_code: bool = False,
    fp32: bool = False,
    attention: str = "auto",
    quantize: str = "off",
) -> "SentenceTransformer":
    """A SentenceTransformer by name or folder, a checkpoint with its template.

    Code that comes with the model runs only with `remote_code`. fp32: weights in float32, whatever
    they are stored in. attention and quantize: as the settings of these names. A model that stores
    no choice about its chat template reads plain texts.
    Raises BadInput with the remedy.
    """
    import torch
    from transformers.utils import logging as transformers_logging

    from trainer.model.inference import InstructedModel, has_instructed_door

    require_packages(attention=attention, quantize=quantize)
    if name.startswith(PREFIX):
        tiny = build_tiny_model(name)
        if attention != "auto":
            backbone: Any = tiny[0]
            backbone.model.set_attn_implementation(ATTENTIONS[attention])
        return tiny
    transformers_logging.disable_progress_bar()
    source = model_source(name)
    options: dict[str, Any] = dict(SAFE) | ({"dtype": torch.float32} if fp32 else {})
    if attention != "auto":
        options["attn_implementation"] = ATTENTIONS[attention]
    if quantize == "4bit":
        options["quantization_config"] = _four_bits()
    if not source.strip() or (source.startswith(("/", ".", "~")) and not Path(source).is_dir()):
        raise BadInput(
            f"no model folder {source!r}",
            "give a folder or the name of a model",
            code="model_folder_missing",
        )
    try:
        model = InstructedModel._load_with_module_classes(
            source, _own_modules(source), trust_remote_code=remote_code, model_kwargs=options
        )
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise BadInput(
            f"the model {name!r} cannot be loaded ({lines[0]})",
            "give a folder or name whose weights are safetensors, that needs no code of its own "
            "(or allow it to run: remote_code=run in a training, `remote_code=` in an evaluation), "
            "and that this machine has or can download",
            code="model_load_failed",
        ) from error
    layers: list[Any] = list(model.modules()) if quantize == "4bit" else []
    for layer in layers:
        # On a CPU bitsandbytes (0.50.2) would pack the weights at the first evaluation, and no
        # gradient would go through them then.
        layer.support_avx512bf16_for_cpu = False
    model.template = template_of(source)
    side = (read_memory(source).get("settings") or {}).get("trained_side")
    model.is_trained_copy = side == "query" and not has_instructed_door(model)
    if not _has_modules(name):
        set_chat_template(model, applied=False)
    elif applies_chat_template(model):
        log.warning("%s wraps its texts in its chat template: it was saved so", name)
    return model


def require_packages(*, attention: str = "auto", quantize: str = "off") -> None:
    """Raise BadInput with the reason where this machine lacks what a setting needs."""
    import torch

    if attention == "flash" and not torch.cuda.is_available():
        raise BadInput(
            "attention=flash needs an NVIDIA GPU, and PyTorch sees none here",
            "give attention=sdpa",
            code="flash_needs_nvidia",
        )
    if attention == "flash" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise BadInput(
            "attention=flash needs a GPU with bfloat16 units, and this one has none",
            "give attention=sdpa",
            code="flash_needs_bfloat16",
        )
    for wanted, setting, package in (
        (attention == "flash", "attention=flash", "flash_attn"),
        (quantize == "4bit", "quantize=4bit", "bitsandbytes"),
    ):
        if wanted and find_spec(package) is None:
            raise BadInput(
                f"{setting} needs the package {package}",
                f"pip install {package}",
                code="package_missing",
            )


def _four_bits() -> Any:
    """QLoRA's weights: NF4 with double quantization, products in bfloat16."""
    import torch
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )


def _own_modules(source: str) -> dict[str, type[Any]]:
    """Our classes that a saved model may name."""
    modules = Path(source) / "modules.json"
    if modules.is_file() and INTERACTION not in modules.read_text(encoding="utf-8"):
        return {}
    from trainer.model.interaction import CrossAttentionTransformer

    names = (INTERACTION, f"{PUBLIC}.{INTERACTION}")
    return dict.fromkeys(names, CrossAttentionTransformer)


def load_backbone(settings: TrainSettings) -> "SentenceTransformer":
    """The base model as it will be trained: lengths, prefixes and unit length set.

    Raises BadInput where it cannot be used.
    """
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

    plain = not settings.base_model.startswith(PREFIX) and not _has_modules(settings.base_model)
    keeps_base = settings.trained_side == "query"
    model = load_model(
        settings.base_model,
        remote_code=settings.remote_code == "run",
        # With LoRA the frozen weights stay as they are stored; FSDP needs one type for all.
        fp32=not (settings.lora_rank or keeps_base) or settings.fsdp == "on",
        attention=settings.attention,
        quantize=settings.quantize,
    )
    if keeps_base and not plain:
        return _with_its_base(model, settings)
    set_chat_template(model, applied=settings.chat_template == "on")
    transformer: Any = model[0]
    if settings.attention == "flash":
        # sentence-transformers would write all texts as one row, without a mask: batches are cut,
        # shared among processes and counted by rows.
        transformer.unpad_inputs = False
    _set_lengths(model, settings)
    model.prompts = {"query": settings.query_prefix, "document": settings.passage_prefix}
    model.default_prompt_name = None
    pooling = next((module for module in model if isinstance(module, Pooling)), None)
    if pooling is None:
        raise BadInput(
            f"{settings.base_model} has no pooling over tokens: it cannot be trained here",
            "Choose another base model",
            code="pooling_missing",
        )
    mode = _pooling_mode(settings.pooling, plain, transformer.config.model_type)
    if mode:
        pooling.pooling_mode = mode
    if transformer.tokenizer.pad_token_id is None:
        if transformer.tokenizer.eos_token is None:
            raise BadInput(
                f"the tokenizer of {settings.base_model} has no token to pad with",
                "choose another base model",
                code="pad_token_missing",
            )
        transformer.tokenizer.pad_token = transformer.tokenizer.eos_token
    if not any(isinstance(module, Normalize) for module in model):
        model.append(Normalize())
    pooler = getattr(transformer.model, "pooler", None)
    if pooler is not None:  # never read; DDP would leave step-1 gradients unsynchronised
        pooler.requires_grad_(False)
    _join(model, settings)
    if keeps_base:
        return _with_its_base(model, settings)
    return _two_encoders(model) if settings.encoders == "two" else model


def _with_its_base(model: "SentenceTransformer", settings: TrainSettings) -> "SentenceTransformer":
    """The model as it is, and the copy of it that will be trained.

    Raises BadInput where a setting would change the base, or it has such a copy already.
    """
    from trainer.model.doors import with_instructed_door
    from trainer.model.inference import has_instructed_door

    if has_instructed_door(model):
        raise BadInput(
            f"{settings.base_model} has an instructed door",
            "train its base model, which it names, or this one with trained_side=both",
            code="model_already_instructed",
        )
    if settings.pooling != "auto" and _has_modules(settings.base_model):
        raise BadInput(
            f"pooling={settings.pooling} would change the passages of {settings.base_model}",
            "leave it out with trained_side=query",
            code="pooling_changes_passages",
        )
    _require_lengths(model, settings, ("query_tokens",))
    prefix = settings.query_prefix or model.prompts.get("query") or ""
    kept = with_instructed_door(
        model, prefix, settings.query_tokens, as_stored=bool(settings.lora_rank)
    )
    kept.template = settings.parsed_template
    return kept


def _join(model: "SentenceTransformer", settings: TrainSettings) -> None:
    """Give the model the interaction of the settings."""
    from trainer.model.interaction import CrossAttentionTransformer, attach_interaction

    if settings.interaction == "II":
        attach_interaction(model)
    elif isinstance(model[0], CrossAttentionTransformer):
        raise BadInput(
            f"{settings.base_model} has Interaction II",
            "give interaction=II to train it further",
            code="model_has_interaction_ii",
        )


def _has_modules(name: str) -> bool:
    """Whether the model's folder defines its pooling (a sentence-transformers model)."""
    from sentence_transformers.util import is_sentence_transformer_model

    return bool(is_sentence_transformer_model(model_source(name)))


def _set_lengths(model: "SentenceTransformer", settings: TrainSettings) -> None:
    _require_lengths(model, settings, ("query_tokens", "passage_tokens"))
    transformer: Any = model[0]
    transformer.query_length = settings.query_tokens
    transformer.document_length = settings.passage_tokens
    model.max_seq_length = max(settings.query_tokens, settings.passage_tokens)


def _require_lengths(
    model: "SentenceTransformer", settings: TrainSettings, names: Sequence[str]
) -> None:
    """Raise BadInput where a text would be longer than the model can read."""
    transformer: Any = model[0]
    longest = getattr(transformer.config, "max_position_embeddings", None)
    for name in names:
        if isinstance(longest, int) and 0 < longest < getattr(settings, name):
            raise BadInput(
                f"{name}={getattr(settings, name)} is more than the {longest} tokens that "
                f"{settings.base_model} can read",
                f"give {name}={longest} or less",
                code="tokens_above_model_limit",
            )


def _pooling_mode(pooling: str, plain: bool, model_type: str) -> str | None:
    """The pooling to set; None leaves the model's own."""
    if pooling == "auto":
        if not plain:
            return None
        from trainer.model.packing import is_causal

        pooling = "last" if is_causal(model_type) else "mean"
    return {"mean": "mean", "cls": "cls", "last": "lasttoken"}[pooling]


def _two_encoders(model: "SentenceTransformer") -> "SentenceTransformer":
    """One encoder for queries and one for passages, equal at the start."""
    import copy

    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router

    modules: list[Any] = list(model)
    router = Router.for_query_document(
        query_modules=modules, document_modules=copy.deepcopy(modules)
    )
    return SentenceTransformer(
        modules=[router], prompts={name: prompt or "" for name, prompt in model.prompts.items()}
    )


def read_memory(name: str) -> dict[str, Any]:
    """What the checkpoint in that folder remembers; empty for any other model."""
    file = Path(name) / MEMORY
    if not file.is_file():
        return {}
    try:
        memory = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(
            f"{file} is not JSON ({error}): the checkpoint is damaged",
            "Copy it again, or train it again",
            code="checkpoint_damaged",
        ) from error
    if not isinstance(memory, dict):
        raise BadInput(
            f"{file} is not a JSON object: the checkpoint is damaged",
            "Copy it again, or train it again",
            code="checkpoint_damaged",
        )
    return memory


def template_of(name: str) -> Template:
    """The template stored with a model of ours, in a folder or on the Hub; the default for others.

    name: of a model that was loaded: what the Hub has of it is in the Hub's cache now.
    """
    folder = model_source(name)  # the packaged model's: the Hub need not be asked
    if not Path(folder).is_dir() and not name.startswith(PREFIX):
        from transformers.utils.hub import cached_file

        found = cached_file(name, MEMORY, _raise_exceptions_for_missing_entries=False)
        folder = str(Path(found).parent) if found else name
    memory = read_memory(folder)
    return Template(memory["template"]) if "template" in memory else Template()


def question_encoder(
    model: "SentenceTransformer | PlainModel", plain: Container[str]
) -> Callable[..., np.ndarray]:
    """The function that encodes texts made by the template, each through its door.

    plain: the texts among them that have no instruction. It takes texts and the options of
    `encode`, and returns their vectors (n, d).
    """
    if isinstance(model, PlainModel):
        return model.encode_query
    from trainer.model.inference import encode_instructed, has_instructed_door

    if not has_instructed_door(model):
        return model.encode_query

    def encode(texts: Sequence[str], **options: Any) -> np.ndarray:
        found: dict[int, Any] = {}
        for is_plain in (True, False):
            places = [place for place, text in enumerate(texts) if (text in plain) == is_plain]
            some = [texts[place] for place in places]
            if some and is_plain:
                found |= zip(places, model.encode_query(some, **options), strict=True)
            elif some:
                found |= zip(places, encode_instructed(model, some, **options), strict=True)
        return np.stack([np.asarray(found[place]) for place in range(len(texts))])

    return encode
