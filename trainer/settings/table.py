"""The table of training settings: one line of facts per setting, read by everything that names one.

Types and defaults of `TrainSettings`, the checks of `parse_settings`, the form of the Train page,
`inf train --help` and docs/training-settings.md follow from it. To add a setting, add a field. This
module loads no torch: the app and the command line import it.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from trainer.objectives.names import ALL_OBJECTIVES
from trainer.settings.setting import Setting
from trainer.settings.template import DEFAULT_TEMPLATE

DEFAULT_BASE_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
ON_OFF = ("off", "on")
GUARD_MEASURE = "guard-ndcg@10"
OFF_HELD_OUT = ("natural-flip", "natural-first", GUARD_MEASURE)  # need no held-out groups
MODEL = "Model"
OBJECTIVE = "Objective"
SCHEDULE = "Schedule and optimizer"
HELD_OUT = "Held-out groups"
RESOURCES = "Memory and saving"
GROUPS: Final = (MODEL, OBJECTIVE, SCHEDULE, HELD_OUT, RESOURCES)
T = TypeVar("T", int, float, str)


def _setting(
    default: T,
    group: str,
    label: str,
    help: str,
    *,
    choices: Sequence[str] = (),
    minimum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    advanced: bool = False,
) -> T:
    """A dataclass field with the facts of a setting; typed as its default, as mypy wants it."""
    facts: dict[str, Any] = {
        "group": group,
        "label": label,
        "help": help,
        "choices": tuple(choices),
        "minimum": minimum,
        "above": above,
        "below": below,
        "advanced": advanced,
    }
    field: T = dataclasses.field(default=default, metadata=facts)
    return field


@dataclass(frozen=True)
class SettingFields:
    """Every setting in the order of the form. Defaults: the paper's (section 6.1, definitions 2),
    but for the batch, which is 4 groups on each of 8 GPUs there and 8 groups on one device here.
    """

    base_model: str = _setting(
        DEFAULT_BASE_MODEL,
        MODEL,
        "Base model",
        "Name or folder of a SentenceTransformer or of a plain transformer.",
    )
    pooling: str = _setting(
        "auto",
        MODEL,
        "Pooling",
        "How token vectors become one; auto: the model's own, else last for a decoder and mean "
        "for an encoder.",
        choices=("auto", "mean", "cls", "last"),
    )
    trained_side: str = _setting(
        "both",
        MODEL,
        "Trained side",
        "Both queries and passages, as in the paper; or queries with an instruction alone (query): "
        "passages and plain queries keep the base model's vectors, so that its index stays valid.",
        choices=("both", "query"),
    )
    encoders: str = _setting(
        "shared",
        MODEL,
        "Encoders",
        "One encoder for queries and passages (shared), or two with equal initial weights (two).",
        choices=("shared", "two"),
        advanced=True,
    )
    interaction: str = _setting(
        "I",
        MODEL,
        "Interaction",
        "I: the template joins instruction and query into one text. II: they are encoded "
        "separately and joined by cross-attention.",
        choices=("I", "II"),
        advanced=True,
    )
    template: str = _setting(
        DEFAULT_TEMPLATE,
        MODEL,
        "Template",
        "How instruction and query become one text; saved with the model.",
        advanced=True,
    )
    chat_template: str = _setting(
        "off",
        MODEL,
        "Chat template",
        "Wrap that text in the tokenizer's chat template too; saved with the model.",
        choices=ON_OFF,
        advanced=True,
    )
    remote_code: str = _setting(
        "refuse",
        MODEL,
        "Remote code",
        "Code that comes with the base model: refuse it, or run it if you trust its author "
        "(admins only on the page).",
        choices=("refuse", "run"),
        advanced=True,
    )
    query_prefix: str = _setting(
        "",
        MODEL,
        "Query prefix",
        "Text the model expects before a query, e.g. `query: `.",
        advanced=True,
    )
    passage_prefix: str = _setting(
        "",
        MODEL,
        "Passage prefix",
        "Text the model expects before a passage, e.g. `passage: `.",
        advanced=True,
    )
    objective: str = _setting(
        "P",
        OBJECTIVE,
        "Objective",
        "What is contrasted: passages (P), instructions (I), encoded instruction-query pairs (IQ), "
        "or a baseline.",
        choices=tuple(ALL_OBJECTIVES),
    )
    temperature: float = _setting(
        0.05,
        OBJECTIVE,
        "Temperature τ",
        "Divides similarities; a smaller value puts more weight on the hardest negatives.",
        above=0,
    )
    standard_share: float = _setting(
        0.0,
        OBJECTIVE,
        "Share of plain rows",
        "Share of groups that a step reads without their instructions, so that ordinary retrieval "
        "is kept.",
        minimum=0,
        below=1,
        advanced=True,
    )
    matryoshka: str = _setting(
        "",
        OBJECTIVE,
        "Matryoshka dimensions",
        "Also train these numbers of leading dimensions by themselves, e.g. `64, 128`: vectors may "
        "then be cut there.",
        advanced=True,
    )
    teacher: str = _setting(
        "",
        OBJECTIVE,
        "Teacher",
        "Whose scores over each group's passages are taught too: a reranker, `cross-encoder:NAME`, "
        "`monot5:NAME` or `flan-t5:NAME`, or a judge of the release, `judge:NAME` (the validator, "
        "for example).",
        advanced=True,
    )
    teacher_loss: str = _setting(
        "kl",
        OBJECTIVE,
        "Teacher loss",
        "Match the teacher's distribution (kl) or its margins (margin-mse).",
        choices=("kl", "margin-mse"),
        advanced=True,
    )
    teacher_weight: float = _setting(
        1.0,
        OBJECTIVE,
        "Teacher weight",
        "Weight of the teacher's loss, added to the objective's.",
        above=0,
        advanced=True,
    )
    teacher_temperature: float = _setting(
        1.0,
        OBJECTIVE,
        "Teacher temperature",
        "Divides the teacher's scores.",
        above=0,
        advanced=True,
    )
    mined_negatives: int = _setting(
        0,
        OBJECTIVE,
        "Mined negatives",
        "How many passages of other groups each group gets as negatives of the term P besides the "
        "batch's: those that the base model ranks highest for (I+,Q+).",
        minimum=0,
        advanced=True,
    )
    mined_corpus: str = _setting(
        "",
        OBJECTIVE,
        "Corpus of mined negatives",
        "A file of passages (JSONL, CSV or Parquet with the column text) from which negatives are "
        "mined, besides the training's own passages. Empty: none.",
        advanced=True,
    )
    mined_limit: float = _setting(
        0.95,
        OBJECTIVE,
        "Limit of mined negatives",
        "Passages whose score is above this share of P+'s are not mined: they may be right.",
        above=0,
        advanced=True,
    )
    positive_counted: str = _setting(
        "once",
        OBJECTIVE,
        "Positive in the denominator",
        "Multi objectives only: counted once, or once per term as Eq. 7 is printed (as-printed).",
        choices=("once", "as-printed"),
        advanced=True,
    )
    pool_passages: int = _setting(
        0,
        OBJECTIVE,
        "Passages as negatives",
        "With trained_side=query: how many passages of the training, besides the batch's, the term "
        "P contrasts at every step; -1: all.",
        minimum=-1,
        advanced=True,
    )
    group_weight: float = _setting(
        0.0,
        OBJECTIVE,
        "Weight of the group's own passages",
        "Weight of an added cross-entropy over the group's own passages alone. 0: none.",
        minimum=0,
        advanced=True,
    )
    instructions_sampled: int = _setting(
        0,
        OBJECTIVE,
        "Instructions per anchor",
        "How many instructions of the batch the term I contrasts besides the group's own I-; "
        "0: all.",
        minimum=0,
        advanced=True,
    )
    more_releases: str = _setting(
        "",
        SCHEDULE,
        "More releases",
        "Releases that train too, by id or folder, each with a weight: `12*0.5, releases/2*2`. "
        "Weight 2 reads each of its groups twice an epoch, 0.5 half of them; none is held out.",
        advanced=True,
    )
    curriculum: str = _setting(
        "off",
        SCHEDULE,
        "Curriculum",
        "Order of the first epoch: random (off), or from the groups that the validator was most "
        "confident of to the least. Later epochs are random.",
        choices=("off", "confident-first"),
        advanced=True,
    )
    max_groups: int = _setting(
        0,
        SCHEDULE,
        "Maximum groups",
        "Train on at most this many groups, chosen by the seed; 0: all. More groups with the same "
        "seed include these.",
        minimum=0,
        advanced=True,
    )
    epochs: float = _setting(2.0, SCHEDULE, "Epochs", "How many times each group is seen.")
    max_steps: int = _setting(
        0,
        SCHEDULE,
        "Maximum steps",
        "Stop after this many steps; 0: as many as the epochs need.",
        minimum=0,
    )
    max_seconds: float = _setting(
        0.0,
        SCHEDULE,
        "Maximum seconds",
        "Stop after the step that exceeds this training time; 0: no limit.",
        minimum=0,
    )
    rows_per_batch: int = _setting(
        8,
        SCHEDULE,
        "Groups per batch",
        "Each group adds three triplets; all triplets of a batch are negatives of one another.",
        minimum=1,
    )
    learning_rate: float = _setting(
        5e-5,
        SCHEDULE,
        "Learning rate",
        "Highest rate of AdamW.",
        above=0,
    )
    schedule: str = _setting(
        "linear",
        SCHEDULE,
        "Learning rate schedule",
        "How the rate falls to 0 over the training (linear, cosine), or stays (constant).",
        choices=("linear", "cosine", "constant"),
        advanced=True,
    )
    warmup: float = _setting(
        0.0,
        SCHEDULE,
        "Warm-up",
        "Steps over which the rate rises from 0; less than 1: a share of all steps.",
        minimum=0,
        advanced=True,
    )
    weight_decay: float = _setting(
        0.0,
        SCHEDULE,
        "Weight decay",
        "Decoupled decay of AdamW; biases and norms are left out.",
        minimum=0,
        advanced=True,
    )
    clip_norm: float = _setting(
        1.0,
        SCHEDULE,
        "Gradient clipping",
        "Gradients are scaled down to this norm; 0: no clipping.",
        minimum=0,
        advanced=True,
    )
    accumulation_steps: int = _setting(
        1,
        SCHEDULE,
        "Accumulation steps",
        "Batches whose gradients are averaged for one step; negatives come from each batch alone "
        "(texts_at_once gives large batches instead).",
        minimum=1,
        advanced=True,
    )
    optimizer: str = _setting(
        "adamw",
        SCHEDULE,
        "Optimizer",
        "AdamW (fused on a GPU), or with 8-bit moments (needs bitsandbytes).",
        choices=("adamw", "adamw-8bit"),
        advanced=True,
    )
    dropout: float = _setting(
        -1.0,
        SCHEDULE,
        "Dropout",
        "Probability in every dropout of the model; -1: the model's own.",
        minimum=-1,
        below=1,
        advanced=True,
    )
    base_share: float = _setting(
        0.0,
        SCHEDULE,
        "Share of the base model",
        "After training, this share of the base model's weights is mixed into the trained ones "
        "(WiSE-FT), so that ordinary retrieval is kept. 0: none.",
        minimum=0,
        below=1,
        advanced=True,
    )
    freeze: str = _setting(
        "",
        SCHEDULE,
        "Frozen weights",
        "Patterns of weight names that are not trained, separated by commas, e.g. "
        "`*embeddings*, *layer.0.*`.",
        advanced=True,
    )
    query_tokens: int = _setting(
        256,
        SCHEDULE,
        "Query tokens",
        "Instruction and query together are truncated to this length.",
        minimum=1,
    )
    passage_tokens: int = _setting(
        512, SCHEDULE, "Passage tokens", "Passages are truncated to this length.", minimum=1
    )
    seed: int = _setting(42, SCHEDULE, "Seed", "Seed of the group order and of dropout.", minimum=0)
    held_out: float = _setting(
        0.1,
        HELD_OUT,
        "Held-out share",
        "Share of groups kept out of training; no text is on both sides. 0: none.",
        minimum=0,
        below=1,
        advanced=True,
    )
    held_out_seed: int = _setting(
        42,
        HELD_OUT,
        "Held-out seed",
        "The same seed holds out the same groups.",
        minimum=0,
        advanced=True,
    )
    held_out_groups: str = _setting(
        "kept",
        HELD_OUT,
        "Held-out groups",
        "Score the held-out groups that validation kept, all of them, or those that people "
        "approved.",
        choices=("kept", "all", "approved"),
        advanced=True,
    )
    held_out_judge: str = _setting(
        "",
        HELD_OUT,
        "Judge of held-out groups",
        "Score only the held-out groups that this judge of the release's studies confirmed in "
        "every scenario, e.g. `recorded:B`; with all held-out groups, it alone decides. Empty: no "
        "judge.",
        advanced=True,
    )
    natural_probe: str = _setting(
        "on",
        HELD_OUT,
        "Natural probe",
        "Score the natural probe, items in plain language from no training set, before and after "
        "training.",
        choices=ON_OFF,
        advanced=True,
    )
    dropped: str = _setting(
        "exclude",
        HELD_OUT,
        "Dropped groups",
        "Exclude the groups that validation dropped, or include them as in Figure 6.",
        choices=("exclude", "include"),
        advanced=True,
    )
    evaluate_steps: int = _setting(
        0,
        HELD_OUT,
        "Steps between evaluations",
        "How often the held-out groups are scored; 0: before and after training only.",
        minimum=0,
        advanced=True,
    )
    best_by: str = _setting(
        "last",
        HELD_OUT,
        "Weights to keep",
        "The last weights, or the best by a measure on the held-out groups, on the natural probe, "
        "or by nDCG@10 on the guard.",
        choices=(
            *("last", "strict", "instruction-flip", "query-flip", "ndcg@10", "map", "mrr"),
            *("natural-flip", "natural-first", GUARD_MEASURE),
        ),
        advanced=True,
    )
    guard: str = _setting(
        "",
        HELD_OUT,
        "Guard",
        "Folder of an ordinary retrieval benchmark (BEIR) that is scored with every evaluation.",
        advanced=True,
    )
    guard_drop: float = _setting(
        1.0,
        HELD_OUT,
        "Allowed drop of the guard",
        "Weights whose nDCG@10 on the guard is more than this below the base model's are kept "
        "only if there are no others.",
        minimum=0,
        advanced=True,
    )
    patience: int = _setting(
        0,
        HELD_OUT,
        "Patience",
        "Stop after this many evaluations without an improvement; 0: never.",
        minimum=0,
        advanced=True,
    )
    texts_at_once: int = _setting(
        0,
        RESOURCES,
        "Texts at once",
        "Embed this many texts per pass with cached gradients, for large batches; 0: the whole "
        "batch, without caching.",
        minimum=0,
        advanced=True,
    )
    gradient_checkpointing: str = _setting(
        "off",
        RESOURCES,
        "Gradient checkpointing",
        "Recompute activations instead of keeping them: slower, less memory.",
        choices=ON_OFF,
        advanced=True,
    )
    precision: str = _setting(
        "auto",
        RESOURCES,
        "Precision",
        "Type of activations; weights stay in fp32. auto: bf16 on a GPU that supports it, and on "
        "a CPU with AMX or AVX512-BF16 where on the first batch it is measured to be equal and "
        "faster.",
        choices=("auto", "bf16", "fp32"),
        advanced=True,
    )
    packing: str = _setting(
        "auto",
        RESOURCES,
        "Packing",
        "Encode an instruction's prefix once for several queries, on causal models where this is "
        "faster.",
        choices=("auto", "off"),
        advanced=True,
    )
    attention: str = _setting(
        "auto",
        RESOURCES,
        "Attention",
        "How attention is computed; auto: as transformers chooses (sdpa). flash needs a GPU with "
        "bfloat16 and the package flash-attn, and turns packing off.",
        choices=("auto", "sdpa", "eager", "flash"),
        advanced=True,
    )
    compile: str = _setting(
        "off",
        RESOURCES,
        "Compile",
        "Compile the transformer (torch.compile): slow first steps, then faster ones.",
        choices=ON_OFF,
        advanced=True,
    )
    prefetch: str = _setting(
        "auto",
        RESOURCES,
        "Prepare batches ahead",
        "Tokenise the next batches in a process of its own; auto: on a GPU.",
        choices=("auto", "off", "on"),
        advanced=True,
    )
    save_steps: int = _setting(
        0,
        RESOURCES,
        "Steps between saves",
        "How often a state to resume from is saved; 0: every two minutes.",
        minimum=0,
        advanced=True,
    )
    lora_rank: int = _setting(
        0,
        RESOURCES,
        "LoRA rank",
        "Train adapters of this rank on the linear layers and merge them at the end; 0: train all "
        "weights.",
        minimum=0,
        advanced=True,
    )
    lora_alpha: float = _setting(
        16.0,
        RESOURCES,
        "LoRA alpha",
        "The adapters are scaled by alpha / rank.",
        above=0,
        advanced=True,
    )
    lora_targets: str = _setting(
        "",
        RESOURCES,
        "LoRA layers",
        "Names of the linear layers that get adapters, separated by commas, e.g. `q_proj, v_proj`; "
        "empty: all.",
        advanced=True,
    )
    lora_dropout: float = _setting(
        0.0,
        RESOURCES,
        "LoRA dropout",
        "Dropout of the adapters' input.",
        minimum=0,
        below=1,
        advanced=True,
    )
    dora: str = _setting(
        "off",
        RESOURCES,
        "DoRA",
        "Train the lengths of the weights' rows apart from their directions, which LoRA changes "
        "(DoRA); slower.",
        choices=ON_OFF,
        advanced=True,
    )
    keep_adapters: str = _setting(
        "off",
        RESOURCES,
        "Keep adapters",
        "Also save the LoRA adapters by themselves, in PEFT's layout, in the checkpoint's folder "
        "`adapters`.",
        choices=ON_OFF,
        advanced=True,
    )
    quantize: str = _setting(
        "off",
        RESOURCES,
        "Quantize frozen weights",
        "LoRA on weights in 4 bits (4bit, QLoRA); needs bitsandbytes, and is slow without a GPU.",
        choices=("off", "4bit"),
        advanced=True,
    )
    fsdp: str = _setting(
        "off",
        RESOURCES,
        "Shard weights (FSDP)",
        "Shard weights over the processes instead of copying them; needs several processes "
        "(`--nproc`, or a cluster).",
        choices=ON_OFF,
        advanced=True,
    )
    report_to: str = _setting(
        "store",
        RESOURCES,
        "Send curves to",
        "Besides the store, send settings and curves to Weights & Biases or trackio (packages "
        "wandb, trackio), or write them for TensorBoard.",
        choices=("store", "wandb", "trackio", "tensorboard"),
        advanced=True,
    )
    tensorboard: str = _setting(
        "off",
        RESOURCES,
        "TensorBoard",
        "Also write the curves for TensorBoard, next to another tracker.",
        choices=ON_OFF,
        advanced=True,
    )


SETTINGS: Final = {
    field.name: Setting(
        field.name, cast(Any, field.type), cast(Any, field.default), **field.metadata
    )
    for field in dataclasses.fields(SettingFields)
}


def settings_of(group: str) -> list[Setting]:
    """The settings of a group in the order of the table."""
    return [setting for setting in SETTINGS.values() if setting.group == group]
