"""The values of columns in the store: origins, choices and states (roles: `db.shape`).

One name per thing: the same in a table, a function, a widget key, a config, a figure and the docs.
"""

from typing import Final, Literal, get_args

# The answers of a judge besides the label of a candidate.
NONE: Final = "none"
AMBIGUOUS: Final = "ambiguous"
SEVERAL: Final = "several"  # of a pick: more than one candidate answers


def distractor(number: int) -> str:
    """The label of the number-th random candidate of an item, counted from 1."""
    return f"distractor_{number}"


def is_storable(text: str) -> bool:
    """Whether a database can store the text: no NUL, no half of a surrogate pair."""
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


# Why a judge skips or flags an item; "" before these codes existed, or without one.
REMARK_REASONS: Final = ("unclear", "no_right_passage", "several_right", "bad_text", "other")
Verdict = Literal["kept", "dropped"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
STUDY_STATUSES: Final = ("open", "paused", "closed")
JOB_KINDS: Final = (
    "curate",
    "judge",
    "embed",
    "project",
    "train",
    "evaluate",
    "export",
    "push",
    "backup",
    "import",
    "pull",
    "mine",
    "restore",
    "study",
)
DATASET_BENCHMARK: Final = "dataset:"  # how a benchmark that is a dataset of the store is named
HELD_OUT_FILE: Final = "held_out.jsonl"  # of a checkpoint: the groups that its card was measured on
LOCAL_ADMIN: Final = "local admin"  # the session user of a store without accounts
AccountRole = Literal["annotator", "curator", "admin"]
ACCOUNT_ROLES: Final[tuple[str, ...]] = get_args(AccountRole)
# Of a person, on a dataset, a study or everywhere; those that a single study can give.
RIGHTS: Final = ("judge", "review", "adjudicate", "curate", "train", "release")
STUDY_RIGHTS: Final = ("judge", "adjudicate")
# Of a token of an admin alone: what of administration it reads; `watch`: /metrics.
TOKEN_RIGHTS: Final = ("audit", "watch")
