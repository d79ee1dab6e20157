"""The judges by name: `FAMILY` or `FAMILY:REST`, as `openai:MODEL`.

Another package adds a family by an entry point in the group `inf_studio.judges` that names a
`JudgeKind`; see `curation.registry`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from curation.judges.judge import ItemJudge
from curation.registry import Registry
from db.errors import BadInput
from db.store.store import Store


@dataclass(frozen=True)
class JudgeKind:
    """A family of judges.

    `form`: the form of its names. `help`: what it is, in one sentence. `make`: the judge, given
    the store and the text after the colon; it raises BadInput for an unknown one. `paid`: its
    answers may cost money.
    """

    form: str
    help: str
    make: Callable[[Store, str], ItemJudge]
    paid: bool = True


def _embedding(store: Store, _: str) -> ItemJudge:
    from curation.judges.embedding import EmbeddingJudge

    return EmbeddingJudge(store)


def _openai(store: Store, rest: str) -> ItemJudge:
    from curation.judges.openai_compatible import OpenAIJudge  # the SDK takes a second to import

    return OpenAIJudge(store, rest)


def _of_connection(store: Store, rest: str) -> ItemJudge:
    from curation.judges.openai_compatible import OpenAIJudge

    connection, _, name = rest.partition(":")
    return OpenAIJudge(store, name, connection)


def _local(store: Store, rest: str) -> ItemJudge:
    from curation.judges.local_model import LocalJudge

    return LocalJudge(rest)


def _recorded(store: Store, rest: str) -> ItemJudge:
    from curation.recorded.judge import RecordedJudge
    from curation.recorded.recording import load_recording

    return RecordedJudge(load_recording(), rest)


def _simulated(store: Store, rest: str) -> ItemJudge:
    from curation.judges.simulated import SimulatedJudge

    if not rest.isdecimal() or int(rest) < 1:
        raise _no_judge(f"simulated:{rest}")
    return SimulatedJudge(int(rest))


JUDGES = Registry(
    "judge",
    "inf_studio.judges",
    JudgeKind,
    {
        "offline": JudgeKind(
            "offline:embedding",
            "the passage closest to instruction and query by an embedding model",
            _embedding,
            paid=False,
        ),
        "openai": JudgeKind(
            "openai:MODEL",
            "a model on the OpenAI-compatible server that is configured; append :pointwise to show "
            "it only the passage that a question is about, :guidelines to give it a study's "
            "guidelines and examples",
            _openai,
        ),
        "connection": JudgeKind(
            "connection:NAME:MODEL",
            "a model of a connection; append :pointwise as above",
            _of_connection,
        ),
        "transformers": JudgeKind(
            "transformers:MODEL",
            "a language model on this machine, by folder or name; append :listwise or :pointwise",
            _local,
            paid=False,
        ),
        "recorded": JudgeKind(
            "recorded:NAME",
            "a language model's choices for the demo set, replayed from a file",
            _recorded,
            paid=False,
        ),
        "simulated": JudgeKind(
            "simulated:N",
            "stands in for a person in a demo (N ≥ 1), and is labelled so",
            _simulated,
            paid=False,
        ),
    },
)


def judge_named(name: str, store: Store) -> ItemJudge:
    """The judge of that name. Raises BadInput, which lists the forms, for an unknown one."""
    require_judge(name)
    family, _, rest = name.partition(":")
    return JUDGES.find(family).make(store, rest)


def require_judge(name: str) -> None:
    """Raise BadInput for a name of no family, or not of its family's form. Loads no model."""
    family, _, rest = name.partition(":")
    if family not in JUDGES.names():
        raise _no_judge(name)
    kind = JUDGES.find(family)
    has_rest = ":" in kind.form
    if has_rest and (name != kind.form if kind.form.islower() else not rest):  # capitals: any text
        raise _no_judge(name)


def describe_judges() -> str:
    """The forms of names with a description of each, for help texts."""
    return "; ".join(f"{kind.form}: {kind.help}" for kind in JUDGES.all().values())


def _no_judge(name: str) -> BadInput:
    forms = ", ".join(kind.form for kind in JUDGES.all().values())
    return BadInput(f"no judge {name!r}", f"use one of {forms}", code="judge_unknown")
