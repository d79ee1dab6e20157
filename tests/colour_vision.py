"""How far apart colours are for people who see red, green or blue differently.

Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB; distances are CIE 1976.
"""

from itertools import combinations

import numpy as np

SEEN_BY = {
    "everybody": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = TO_XYZ.sum(axis=1)


def linear(colour: str) -> np.ndarray:
    """`#rrggbb` as linear RGB, 0 to 1."""
    coded = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """Linear RGB as CIE Lab."""
    share = TO_XYZ @ np.clip(rgb, 0, 1) / WHITE
    root = np.where(share > 216 / 24389, np.cbrt(share), (24389 / 27 * share + 16) / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def nearest(colours: dict[str, str], by: str) -> tuple[float, tuple[str, str]]:
    """The distance of the two colours that are nearest to each other, and their names."""
    seen = {name: lab(SEEN_BY[by] @ linear(colour)) for name, colour in colours.items()}
    return min(
        (float(np.linalg.norm(seen[one] - seen[other])), (one, other))
        for one, other in combinations(seen, 2)
    )
