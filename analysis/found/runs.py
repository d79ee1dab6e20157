"""What is measured of the texts of a run or release, as rows: leakage, and what its texts share.

A report of an earlier version may hold more, which is not read, and less.
"""

from collections.abc import Mapping

from analysis.found.texts import Part


class Separated(Part):
    """How well a classifier separates negatives from positives; without an AUC the reason.

    `features`: what is typical of each side.
    """

    pairs: int = 0
    negatives: int = 0
    positives: int = 0
    auc: float | None
    interval: tuple[float, float] | None = None
    length_auc: float | None = None
    features: Mapping[str, tuple[str, ...]] = {}
    reason: str = ""


class LeakageReport(Part):
    """Comparisons by name ("P1- / P+"); `leaks`: those whose AUC is above `warn_above`.

    `groups`: kept or released; `version`: of the definitions.
    """

    groups: str = ""
    texts_sha256: str = ""
    version: int = 0
    seed: int = 0
    warn_above: float = 0.0
    comparisons: Mapping[str, Separated] = {}
    leaks: tuple[str, ...] = ()


class PartExample(Part):
    """Where a shared part stands, with what is around it."""

    group_id: int
    sign: str
    text: str


class SharedPart(Part):
    """What generated texts share: where, in how many of each sign, and in how many sources."""

    text: str
    where: str
    counts: dict[str, int]
    sources: int = 0
    examples: tuple[PartExample, ...] = ()


class SharedParts(Part):
    """What the texts of `groups` share, most frequent first; without enough pairs the reason."""

    groups: int
    version: int = 0
    pairs: int = 0
    parts: tuple[SharedPart, ...]
    reason: str = ""
