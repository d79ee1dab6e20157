"""What stands at a point of the map on hover: its sign, its corpus, its triplet. Pure."""

from typing import TYPE_CHECKING, Any, Final

from analysis.figures.figures import sign
from db.shape import INF_IR

if TYPE_CHECKING:
    import pandas as pd

MAX_CHARACTERS: Final = 110  # characters of each text of a triplet
TRIPLETS: Final = {str(role): scenario.signs for role, scenario in INF_IR.scenarios.items()}


def point_hover(points: "pd.DataFrame", row: int) -> dict[str, Any]:
    """`sign`, `corpus` and `group` (or none) of the point in this row, and the lines beneath: sign
    and text of each part of the triplet it belongs to, of a text without a group itself."""
    point = points.iloc[row]
    mine = sign(str(point["field"]), str(point["role"]))
    group = None if point["group_id"] != point["group_id"] else point["group_id"]
    hover: dict[str, Any] = {"sign": mine, "corpus": str(point["corpus"]), "group": None}
    if group is None or point["role"] not in TRIPLETS:
        return {**hover, "lines": [["", str(point["text"])]]}
    mates = points[(points["group_id"] == group) & (points["corpus"] == point["corpus"])]
    texts = {
        sign(str(field), str(role)): str(text)
        for field, role, text in zip(mates["field"], mates["role"], mates["text"], strict=True)
    }
    texts[mine] = str(point["text"])
    lines = [[each, _start(texts[each])] for each in TRIPLETS[point["role"]] if each in texts]
    return {**hover, "group": int(group), "lines": lines}


def _start(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"
