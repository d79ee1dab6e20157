"""Next-word log-probabilities of a local language model (transformers); for jobs, never for the UI.

Prompts run one at a time: in low precision, padding a prompt beside others changes its
numbers, and a long prompt fills the device anyway. Nothing is generated and nothing parsed: an
answer is read from the log-probabilities of the words that would answer. Only safetensors weights
are read, and no code that comes with a model is run.
"""

from collections.abc import Sequence
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from db.errors import BadInput

MAX_TOKENS = 8192  # tokens of a prompt, where the model allows more
SPACES = ("", " ", "▁", "Ġ")  # how vocabularies write the space before a word


class LanguageModel:
    """A causal model, or an encoder-decoder, with its tokenizer."""

    def __init__(self, tokenizer: Any, model: Any) -> None:
        self._tokenizer, self._model = tokenizer, model
        self._reads_and_writes = bool(model.config.is_encoder_decoder)
        positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        known = [positions, tokenizer.model_max_length]
        self.max_tokens = min([MAX_TOKENS, *(int(each) for each in known if each)])
        self._keeps = "logits_to_keep" in signature(model.forward).parameters
        self._marks = [
            token.content for token in tokenizer.added_tokens_decoder.values() if token.special
        ]
        self._first: dict[tuple[tuple[str, ...], ...], list[list[int]]] = {}

    def tokens(self, text: str) -> list[int]:
        """The text's tokens, without those that frame a text."""
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def cut(self, text: str, tokens: int) -> str:
        """The beginning of the text, cut to a maximum number of tokens."""
        return str(self._tokenizer.decode(self.tokens(text)[:tokens], skip_special_tokens=True))

    def prompt_tokens(self, question: str) -> list[int]:
        """The tokens of a question, in the model's chat form where it has one.

        An encoder-decoder's question is framed as its tokenizer does. A model that thinks before
        it answers is set not to, as its template allows. A mark of the model's own that stands in
        the question ("<|im_end|>" in a passage) is broken by a space: it is text there.
        """
        for mark in self._marks:
            question = question.replace(mark, f"{mark[:1]} {mark[1:]}")
        if self._tokenizer.chat_template and not self._reads_and_writes:
            text = self._tokenizer.apply_chat_template(
                [{"role": "user", "content": question}],
                tokenize=False,
                add_generation_prompt=True,
                enable_thinking=False,
            )
            return self.tokens(text)
        return list(self._tokenizer(question)["input_ids"])

    def next_log_probabilities(self, prompt: Sequence[int]) -> np.ndarray:
        """log P(token | prompt) of the first token of an answer: float64, shape (vocabulary,)."""
        import torch

        input_ids = torch.tensor([list(prompt)], device=self._model.device)  # (1, length)
        inputs: dict[str, Any] = {"input_ids": input_ids}
        if self._reads_and_writes:
            start = self._model.config.decoder_start_token_id
            inputs["decoder_input_ids"] = torch.tensor([[start]], device=input_ids.device)
        elif self._keeps:
            inputs["logits_to_keep"] = 1
        with torch.no_grad():
            logits = self._model(**inputs).logits[0, -1].double()  # (vocabulary,)
        return np.asarray(logits.log_softmax(dim=0).cpu().numpy())

    def first_tokens(self, words: Sequence[Sequence[str]]) -> list[list[int]]:
        """Of each set of words: the tokens with which an answer may begin with one of them.

        With and without a space before the word, as a vocabulary has it. What begins two sets (a
        bare space) says nothing and is left out. Raises BadInput where a set has nothing left.
        """
        key = tuple(tuple(synonyms) for synonyms in words)
        if key not in self._first:
            self._first[key] = self._find_first_tokens(key)
        return self._first[key]

    def _find_first_tokens(self, words: tuple[tuple[str, ...], ...]) -> list[list[int]]:
        vocabulary = self._tokenizer.get_vocab()
        found: list[set[int]] = []
        for synonyms in words:
            ids = {
                vocabulary[space + word]
                for word in synonyms
                for space in SPACES
                if space + word in vocabulary
            }
            for word in synonyms:
                ids |= {*self.tokens(word)[:1], *self.tokens(f" {word}")[:1]}
            found.append(ids)
        alone = [ids.difference(*(other for other in found if other is not ids)) for ids in found]
        for synonyms, ids in zip(words, alone, strict=True):
            if not ids:
                raise BadInput(
                    f"the model's tokenizer has no token of its own for {synonyms[0]!r}: it cannot "
                    "give this answer",
                    "use another model",
                    code="answer_token_missing",
                )
        return [sorted(ids) for ids in alone]


@lru_cache(maxsize=1)
def load_language_model(name: str) -> LanguageModel:
    """The model of that folder or name. Raises BadInput with the remedy.

    On an accelerator in the precision of its weights, else in float32. Weights that lack a part
    (an embedding model has no output layer) are refused: the part would be random.
    """
    import torch
    from transformers import (
        AutoConfig,
        AutoModelForCausalLM,
        AutoModelForSeq2SeqLM,
        AutoTokenizer,
    )
    from transformers.utils import logging as transformers_logging

    loud: Any = transformers_logging
    loud.disable_progress_bar()
    if not name.strip() or (name.startswith(("/", ".", "~")) and not Path(name).is_dir()):
        raise BadInput(
            f"no model folder {name!r}",
            "give a folder or the name of a model",
            code="model_folder_missing",
        )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        config: Any = AutoConfig.from_pretrained(name, trust_remote_code=False)
        kind: Any = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        tokenizer: Any = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        model, loading = kind.from_pretrained(
            name,
            trust_remote_code=False,
            use_safetensors=True,
            dtype="auto" if device == "cuda" else torch.float32,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, ImportError, KeyError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise BadInput(
            f"the language model {name!r} cannot be loaded ({lines[0]})",
            "give a folder or name "
            "whose weights are safetensors, that needs no code of its own, and that this machine "
            "has or can download",
            code="language_model_load_failed",
        ) from error
    missing = sorted(loading["missing_keys"])
    if missing:
        raise BadInput(
            f"the model {name!r} has no weights for {missing[0]}: it is no language model that "
            "can answer",
            "give a model for causal language modelling",
            code="model_weights_missing",
        )
    return LanguageModel(tokenizer, model.to(device).eval())
