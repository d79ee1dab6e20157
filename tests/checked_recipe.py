"""A recipe with a check of every kind, and its prompts, for the test server and offline."""

from pathlib import Path

from curation.recipe.recipe import FOLDER

PROMPT = """You judge a passage.
---
Query: {query}

Instruction: {instruction}

<passage>
{passage}
</passage>

%s: <your answer>
"""
CHECKS = """
[checks.fits]
question = "yes_no"
prompt = "fits.md"
model = "small"
over = ["P+", "P1-"]
with = ["I+", "Q+"]
expected = {"P+" = "yes", "P1-" = "no"}

[checks.relevance]
question = "grade"
labels = {0 = "does not answer", 1 = "answers, violates", 2 = "answers, satisfies"}
prompt = "relevance.md"
model = "judge"
over = ["P+", "P1-", "P2-"]
with = ["I+", "Q+"]
votes = 3
expected = {"P+" = ">= 2", "P1-" = "< 2"}

[checks.answers]
question = "score"
prompt = "answers.md"
model = "small"
output = "json"
over = ["P+"]
with = ["I+", "Q+"]
votes = 2
expected = {"P+" = ">= 0.5"}
"""


def write_recipe(
    folder: Path, checks: str = CHECKS, of: str = "msmarco", *, picks: bool = True
) -> str:
    """A built-in recipe with checks, and their prompts, in a folder; the path of its file."""
    text = (FOLDER / f"{of}.toml").read_text()
    if not picks:
        head, _, rest = text.partition("[stages.validation]")
        text = head + rest[rest.index("[", 1) :] if "\n[" in rest else head
    (folder / "mine.toml").write_text(text + checks)
    for name, label in (("fits", "Answer"), ("relevance", "Grade"), ("answers", "Score")):
        (folder / f"{name}.md").write_text(PROMPT % label)
    return str(folder / "mine.toml")
