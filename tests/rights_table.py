"""The table of rights: every permission by role and membership, as the documentation shows it.

It is computed from what enforces it (`NEEDS`, `PRESETS`); `tests/app/test_rights.py` compares it
with what sessions and functions of the store really allow.
"""

from collections.abc import Iterator, Mapping

from app.access.identity import Actor
from app.access.permissions import NEEDS
from db.people.rights import ALL_RIGHTS, PRESETS, Rights
from db.values import RIGHTS, STUDY_RIGHTS

DATASET, STUDY = 1, 1  # any one: what a person sees of another is what "nothing" says
EVERYTHING, THE_DATASET, THE_STUDY, NOTHING = "everything", "the dataset", "the study", "–"
MEMBERSHIPS = ("everywhere", "on a dataset", "on a study", "nowhere")
ROLES: Mapping[str, tuple[str, ...]] = {
    "annotator": PRESETS["annotator"],
    "curator": PRESETS["curator"],
    **{f"only {right}": (right,) for right in RIGHTS},
}


def rights_by(role: str, membership: str) -> Rights:
    """The rights of someone with this role's rights there."""
    if role == "admin":
        return ALL_RIGHTS
    held = frozenset(ROLES[role])
    if membership == "everywhere":
        return Rights(everywhere=held)
    if membership == "on a dataset":
        return Rights(on_datasets={DATASET: held})
    if membership == "on a study" and held & set(STUDY_RIGHTS):
        return Rights(on_studies={STUDY: held & set(STUDY_RIGHTS)}, dataset_of={STUDY: DATASET})
    return Rights()


def reach(permission: str, rights: Rights) -> str:
    """What someone with these rights may do this with."""
    user = Actor("someone", rights=rights)
    if not NEEDS[permission].is_met(user):
        return NOTHING
    scope = NEEDS[permission].scope(user)
    if scope is None:
        return EVERYTHING
    return THE_DATASET if scope.datasets else THE_STUDY


def cells() -> Iterator[tuple[str, str, str, str]]:
    """(permission, role, membership, what it reaches); an admin needs no membership."""
    for permission in NEEDS:
        yield permission, "admin", "nowhere", reach(permission, ALL_RIGHTS)
        for role in ROLES:
            for membership in MEMBERSHIPS:
                yield permission, role, membership, reach(permission, rights_by(role, membership))


def as_markdown() -> str:
    """The page `reference/rights.md`."""
    lines = [
        "# Table of rights\n",
        "After this page you know which role may do what on a dataset, on a study and anywhere.\n",
        "Generated from the code that enforces it; "
        "[Rights of members](../concepts/rights.md) explains it.\n",
        "| permission | for | requires |",
        "|---|---|---|",
    ]
    for name, need in NEEDS.items():
        lines.append(f"| `{name}` | {need.what} | {need.required} |")
    for membership in MEMBERSHIPS[:-1]:
        lines += [
            f"\n## Rights held {membership}\n",
            "What each permission reaches. An admin reaches everything.\n",
            "| permission | " + " | ".join(ROLES) + " |",
            "|---" * (len(ROLES) + 1) + "|",
        ]
        for name in NEEDS:
            reached = [reach(name, rights_by(role, membership)) for role in ROLES]
            lines.append(f"| `{name}` | " + " | ".join(reached) + " |")
    return "\n".join(lines) + "\n"
