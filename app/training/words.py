"""The settings of a training in the words of the Train page: a name and a sentence for each."""

from trainer.objectives.names import Objective

SECTIONS = {
    "Model": (
        *("base_model", "pooling", "encoders", "interaction", "template", "remote_code"),
        *("query_prefix", "passage_prefix"),
    ),
    "Objective": ("objective", "temperature", "positive_counted", "instructions_sampled"),
    "Length of the training": (
        *("epochs", "max_steps", "max_seconds", "rows_per_batch", "learning_rate"),
        *("query_tokens", "passage_tokens", "seed"),
    ),
    "Held-out groups": (
        *("held_out", "held_out_seed", "dropped", "evaluate_steps", "best_by", "patience"),
    ),
    "Memory and saving": (
        *("texts_at_once", "gradient_checkpointing", "precision", "packing", "save_steps"),
        *("lora_rank", "lora_alpha", "fsdp", "tensorboard"),
    ),
}
WORDS = {
    "base_model": ("Base model", "A SentenceTransformer or a plain transformer, name or folder."),
    "pooling": ("Pooling", "How token vectors become one: last token for decoders, else the mean."),
    "encoders": ("Encoders", "One encoder for queries and passages, or two that start equal."),
    "interaction": ("Interaction", "I: one text by the template. II: apart, cross-attention."),
    "remote_code": ("Code of the model", "Run it only if you trust who wrote it (admins)."),
    "template": ("Template", "How instruction and query become one text; kept with the model."),
    "query_prefix": ("Query prefix", "What the model expects before queries, e.g. `query: `."),
    "passage_prefix": ("Passage prefix", "What it expects before passages."),
    "objective": ("Objective", "What is contrasted: passages P, instructions I, encoded (I,Q)."),
    "temperature": ("Temperature τ", "Divides similarities; smaller separates harder."),
    "positive_counted": ("Positive in the union", "Once, or for each term as Eq. 7 is printed."),
    "instructions_sampled": ("Instructions per anchor", "0: all of the batch; own I- always."),
    "epochs": ("Epochs", "How often every group is seen."),
    "max_steps": ("At most steps", "0: as the epochs say."),
    "max_seconds": ("At most seconds", "0: no limit; it stops cleanly between steps."),
    "rows_per_batch": ("Groups per batch", "Three triplets each, one another's negatives."),
    "learning_rate": ("Learning rate", "AdamW, linear decay, no warm-up, no weight decay."),
    "query_tokens": ("Query tokens", "Instruction and query are cut to this."),
    "passage_tokens": ("Passage tokens", "Passages are cut to this."),
    "seed": ("Seed", "Of the order of groups and of dropout."),
    "held_out": ("Held-out share", "Groups never trained on; no text on both sides. 0: none."),
    "held_out_seed": ("Held-out seed", "The same seed holds out the same groups."),
    "dropped": ("Dropped groups", "Train on groups that validation dropped too (Figure 6)."),
    "evaluate_steps": ("Score every … steps", "0: before and after only."),
    "best_by": ("Keep", "The last weights, or the best on the held-out groups by a measure."),
    "patience": ("Patience", "Stop after so many scorings without a better one; 0: never."),
    "texts_at_once": ("Texts at once", "Cached gradients for large batches; 0: without."),
    "gradient_checkpointing": ("Recompute activations", "Slower, with less memory."),
    "precision": ("Precision", "Activations in bf16 or fp32; auto: bf16 on a GPU that has it."),
    "lora_rank": ("LoRA rank", "Train additions of this rank, merged at the end; 0: all weights."),
    "lora_alpha": ("LoRA alpha", "The additions are scaled by alpha / rank."),
    "packing": ("Packing", "Share an instruction's prefix where a causal model reads it often."),
    "fsdp": ("Share weights out", "FSDP; needs several processes (`--nproc`, a cluster)."),
    "tensorboard": ("TensorBoard", "Write the curves for it too, beside the store."),
    "save_steps": ("Save every … steps", "What a resume goes on from; 0: every two minutes."),
}


def equation(objective: Objective) -> str:
    """The objective in LaTeX, with its terms (Eq. 6 for uni, Eq. 7 for multi); a baseline's own."""
    terms = r"\{" + ",".join(objective.terms) + r"\}"
    up = r"e^{s^+/\tau}"
    if objective.baseline:
        name = {"mnrl": "MNRL", "promptriever": "Promptriever"}[objective.baseline]
        among = {"mnrl": r"m\neq i", "promptriever": r"P_1^-,P_2^-,\,P\text{ of the batch}"}
        negatives = rf"\sum_{{{among[objective.baseline]}}} e^{{s_{{P}}/\tau}}"
        return rf"\ell_{{\text{{{name}}}}}=-\log\frac{{{up}}}{{{up}+{negatives}}}"
    if len(objective.terms) == 1:
        term = objective.terms[0]
        negatives = rf"\sum_{{n\in\mathcal N_{{{term}}}}} e^{{s_n/\tau}}"
        return rf"\ell_{{{term}}}=-\log\frac{{{up}}}{{{up}+{negatives}}}"
    negatives = r"\sum_{n\in\mathcal N_y} e^{s_n/\tau}"
    name = rf"\ell_{{{','.join(objective.terms)}}}"
    if objective.mode == "uni":
        return rf"{name}^{{uni}}=-\sum_{{y\in{terms}}}\log\frac{{{up}}}{{{up}+{negatives}}}"
    return rf"{name}^{{multi}}=-\log\frac{{{up}}}{{{up}+\sum_{{y\in{terms}}}{negatives}}}"
