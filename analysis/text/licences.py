"""Licences: from a dataset's wording to the Hub's identifier, and incompatible ones. Pure."""

import re
from collections.abc import Sequence

# Identifiers that the Hub knows and that data are published under.
_HUB = """
apache-2.0 mit cc cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0
cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0
cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0 cdla-permissive-1.0
cdla-permissive-2.0 odc-by odbl pddl gpl-2.0 gpl-3.0 gfdl bsd-2-clause bsd-3-clause
unlicense openrail etalab-2.0 other unknown
"""
HUB = frozenset(_HUB.split())
ALIASES = {
    "cc0": "cc0-1.0",
    "publicdomain": "cc0-1.0",
    "apache": "apache-2.0",
    "apache2": "apache-2.0",
    "apache-license-2.0": "apache-2.0",
    "mit-license": "mit",
    "the-mit-license": "mit",
    "odc-by-1.0": "odc-by",
    "odbl-1.0": "odbl",
}


def hub_identifier(licence: str) -> str:
    """The Hub's identifier: "unknown" for no licence, "other" for one that the Hub does not know.

    "CC BY-SA 3.0", "cc-by-sa-3.0" and "CC_BY_SA 3.0" are the same.
    """
    name = slug(licence)
    if not name:
        return "unknown"
    name = ALIASES.get(name, name)
    return name if name in HUB else "other"


def slug(licence: str) -> str:
    """Lower case, words joined by hyphens: what the Hub takes as the name of another licence."""
    return re.sub(r"[^a-z0-9.]+", "-", licence.lower()).strip("-.")


def conflicts(licences: Sequence[str]) -> list[str]:
    """Why texts under these licences cannot be published together, a sentence per reason.

    From the names alone: share-alike with non-commercial, two kinds of share-alike, and texts that
    must not be altered at all (negatives are alterations).
    """
    names = sorted({slug(licence) for licence in licences if slug(licence)})
    alike = {_family(name): name for name in names if _family(name)}
    commercial_not = [name for name in names if re.search(r"(^|-)nc(-|$)|non-?commercial", name)]
    unalterable = [name for name in names if re.search(r"(^|-)nd(-|$)", name)]
    reasons = [f"{name} forbids altered texts, and negatives are altered" for name in unalterable]
    free_alike = [name for name in alike.values() if name not in commercial_not]
    if free_alike and commercial_not:
        reasons.append(
            f"{free_alike[0]} must be passed on under the same terms, and {commercial_not[0]} "
            "forbids commercial use"
        )
    if len(alike) > 1:
        reasons.append(
            f"{' and '.join(sorted(alike.values()))} each require the whole under their own"
        )
    return reasons


def _family(name: str) -> str:
    """The kind of a share-alike licence, "" for others: CC BY-SA 3.0 may become 4.0."""
    if re.search(r"(^|-)sa(-|$)", name):
        return re.sub(r"-?[0-9.]+$", "", name)
    return next((kind for kind in ("gpl", "gfdl", "odbl", "cdla-sharing") if kind in name), "")


def licence_metadata(licences: Sequence[str]) -> dict[str, str]:
    """The `license` fields of a card for texts under these licences, as the Hub accepts them."""
    identifiers = sorted({hub_identifier(licence) for licence in licences}) or ["unknown"]
    if len(identifiers) == 1 and identifiers[0] != "other":
        return {"license": identifiers[0]}
    name = "-and-".join(sorted({slug(licence) or "unknown" for licence in licences}))
    return {"license": "other", "license_name": name, "license_link": "README.md"}
