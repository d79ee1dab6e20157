"""A panel for each language: every point stays, in proportion, inside its own panel."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from analysis.map.coverage import points_frame, to_bytes
from analysis.map.difference import VERDICTS, density_difference
from analysis.map.facets import Panel, faceted, languages_of_topics
from analysis.map.picture import map_payload

TEXTS = {
    "tea": "what is the best way to make a cup of tea when you have no kettle at home",
    "brot": "wie lange muss man das brot backen und was ist wenn es nicht aufgeht bei der hitze",
    "cha": "怎样才能在没有水壶的情况下泡好一杯茶，水温应该是多少度",
    "ocha": "お茶をおいしく淹れるには、お湯の温度を何度にすればよいですか",
    "shay": "كيف يمكن إعداد كوب من الشاي في المنزل عندما لا يكون لديك إبريق",
    "pan": "por qué no se puede hacer el pan sin la harina y cuánto tiempo hay que esperar",
}


def points_of(**counts: int) -> pd.DataFrame:
    """A map on which each topic is a heap of its own, far from the others."""
    generator = np.random.default_rng(0)
    heaps = [
        pd.DataFrame(generator.normal(size=(count, 2)), columns=["x", "y"]).assign(
            x=lambda heap, at=place: heap["x"] + 40 * at,
            cluster=name,
            field="text",
            role="text",
            sign="text",
            shade=0,
            text=TEXTS[name],
        )
        for place, (name, count) in enumerate(counts.items())
    ]
    # written and read, as a stored map's: its arrays are read-only
    return points_frame(to_bytes(pa.Table.from_pandas(pd.concat(heaps, ignore_index=True))))


def test_each_language_fills_a_panel_and_no_point_is_lost_or_leaves_its_proportions() -> None:
    points = points_of(tea=500, brot=60, pan=40)
    languages = languages_of_topics(points)
    assert languages == {"tea": "English", "brot": "German", "pan": "Spanish"}
    moved, panels = faceted(points, languages)
    assert [panel.name for panel in panels] == ["English", "German", "Spanish"]
    assert list(moved["text"]) == list(points["text"])
    for panel in panels:
        here = (points["cluster"].map(languages) == panel.name).to_numpy()
        old, new = (each.loc[here, ["x", "y"]].to_numpy(np.float64) for each in (points, moved))
        corner = np.array([panel.left, panel.bottom])
        room = np.array([panel.width, panel.height])
        assert ((new >= corner) & (new <= corner + room)).all()
        assert (np.ptp(new, axis=0) / room).max() >= 0.9
        scale = np.linalg.norm(new[1] - new[0]) / np.linalg.norm(old[1] - old[0])
        before = np.linalg.norm(old[:, None] - old[None], axis=2)
        after = np.linalg.norm(new[:, None] - new[None], axis=2)
        np.testing.assert_allclose(after, scale * before, atol=1e-5)


def boxes_meet(one: Panel, two: Panel) -> bool:
    across = one.left < two.left + two.width and two.left < one.left + one.width
    up = one.bottom < two.bottom + two.height and two.bottom < one.bottom + one.height
    return across and up


@pytest.mark.parametrize("others", [1, 2, 3, 6, 9])
def test_panels_do_not_meet(others: int) -> None:
    counts = [100, *range(90, 90 - others, -1)]
    points = pd.concat(
        [
            pd.DataFrame({"x": range(count), "y": 0.0, "cluster": str(place), "text": ""})
            for place, count in enumerate(counts)
        ]
    )
    _, panels = faceted(points, {str(place): f"language {place}" for place in range(others + 1)})
    assert len(panels) == others + 1
    for place, one in enumerate(panels):
        assert not any(boxes_meet(one, two) for two in panels[place + 1 :])


def test_scripts_without_spaces_or_latin_letters_have_their_own_named_panels() -> None:
    points = points_of(tea=500, cha=60, ocha=50, shay=40)
    languages = languages_of_topics(points)
    assert languages == {"tea": "English", "cha": "Chinese", "ocha": "Japanese", "shay": "Arabic"}
    moved, panels = faceted(points, languages)
    assert [panel.name for panel in panels] == ["English", "Chinese", "Japanese", "Arabic"]
    length = int.from_bytes((payload := map_payload(moved, panels=panels))[:4], "little")
    labels = json.loads(payload[4 : 4 + length])["labels"]
    assert [each["name"] for each in labels if each.get("panel")] == [
        panel.name for panel in panels
    ]


def test_small_languages_share_a_panel_that_says_how_many_they_are() -> None:
    points = points_of(tea=900, brot=60, cha=3, ocha=2, shay=1)
    _, panels = faceted(points, languages_of_topics(points))
    assert [panel.name for panel in panels] == ["English", "German", "other languages (3)"]
    points = points_of(tea=900, cha=3)
    _, panels = faceted(points, languages_of_topics(points))
    assert [panel.name for panel in panels] == ["English", "Chinese"]


def test_one_language_makes_no_panels() -> None:
    alone = points_of(tea=500)
    for points in (alone, alone.drop(columns="cluster"), alone.iloc[:0]):
        same, panels = faceted(points, languages_of_topics(points))
        assert same is points and panels == []


def test_topics_too_short_to_tell_stay_with_the_largest_language() -> None:
    points = points_of(tea=500, brot=60)
    short = points.iloc[:30].assign(cluster="7 8 9", text="7 8 9", x=0.0)
    both = pd.concat([points, short], ignore_index=True)
    languages = languages_of_topics(both)
    assert languages["7 8 9"] == ""
    moved, panels = faceted(both, languages)
    english = panels[0]
    tail = moved.iloc[-30:]
    assert (tail["y"] >= english.bottom).all() and (tail["x"] >= english.left).all()


def test_the_kept_share_ends_at_the_frames_of_the_panels() -> None:
    points = points_of(tea=900, brot=300)
    numbers = np.arange(len(points))
    points = points.assign(
        verdict=np.where(numbers % 3, "kept", "dropped"), corpus="ours", group_id=1.0 * numbers
    )
    moved, panels = faceted(points, {"tea": "English", "brot": "German"})
    spread = density_difference(moved, *VERDICTS)
    assert spread is not None
    inside = np.any([panel.cells(*spread.grid.centres()) for panel in panels], axis=0)
    assert (~np.isnan(spread.shares[~inside])).any(), "a density spreads"
    payload = map_payload(moved, layers=VERDICTS, panels=panels)
    length = int.from_bytes(payload[:4], "little")
    header = json.loads(payload[4 : 4 + length])
    assert 0 < header["difference"]["places"] <= (~np.isnan(spread.shares) & inside).sum()
