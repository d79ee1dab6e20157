"""How an instruction and a query become one text; stored with a model and applied at inference.

By default the paper's "{instruction} {query}" (the released code has the query first; only with the
instruction first can a causal model share the instruction's prefix). A query without an instruction
is the query alone: no stray separator. Prefixes ("query: ", "passage: ") are not part of the
template: they are the model's own sentence-transformers prompts.
"""

import string
from dataclasses import dataclass

from db.errors import BadInput

DEFAULT_TEMPLATE = "{instruction} {query}"
SEPARATOR = "\x1f"
APART = "{instruction}" + SEPARATOR + "{query}"
"""The template of Interaction II, whose model reads the two apart (`trainer.model.interaction`)."""
FIELDS = ("instruction", "query")


INSTRUCTED = "instructed"
"""The task of `encode` whose texts a trained copy reads, where the base model is kept."""


@dataclass(frozen=True)
class Template:
    """A text with {instruction} and {query}, each once. Raises BadInput for any other."""

    text: str = DEFAULT_TEMPLATE

    def __post_init__(self) -> None:
        try:
            fields = [
                name for _, name, _, _ in string.Formatter().parse(self.text) if name is not None
            ]
        except ValueError as error:
            raise BadInput(
                f"template {self.text!r}: {error}",
                "write braces only as fields",
                code="template_invalid",
            ) from error
        for name in FIELDS:
            if fields.count(name) != 1:
                found = "no" if name not in fields else "more than one"
                raise BadInput(
                    f"template {self.text!r} has {found} {{{name}}}",
                    f"it needs {{instruction}} and {{query}}, each once, for example "
                    f"{DEFAULT_TEMPLATE!r}",
                    code="template_placeholder_missing",
                )
        if unknown := [name for name in fields if name not in FIELDS]:
            raise BadInput(
                f"template {self.text!r} has {{{unknown[0]}}}: only {{instruction}} and {{query}} "
                "are known",
                "leave it out",
                code="template_placeholder_unknown",
            )

    def apply(self, instruction: str, query: str) -> str:
        """The text that is encoded; the query alone where there is no instruction."""
        if not instruction:
            return query.replace(SEPARATOR, " ")
        if SEPARATOR in self.text:
            instruction, query = instruction.replace(SEPARATOR, " "), query.replace(SEPARATOR, " ")
        return self.text.format(instruction=instruction, query=query)

    @property
    def instruction_first(self) -> bool:
        """Whether all crossed texts of one instruction share its prefix."""
        return self.text.index("{instruction}") < self.text.index("{query}")
