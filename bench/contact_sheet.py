"""A picture of every page, empty and full, at 1280 and 800 px, light and dark: two sheets in docs.

    .venv/bin/python bench/contact_sheet.py [--home DIR] [--into DIR] [--tiles DIR] [PAGE …]

`make contact-sheet` runs it. A row per page of the menu, a column per window; the full pages are
those of the demo's store. --tiles keeps the pictures in their own size, to look at a defect.
"""

import argparse
import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from demo_app import (
    HOME_HELP,
    ROOT,
    chromium_browser,
    demo_app,
    empty_app,
    new_window,
    settle,
    visit,
)
from PIL import Image, ImageDraw, ImageFont

from app.kit.menu import MENU

WIDTHS, SCHEMES = (1280, 800), ("light", "dark")
HEIGHT = 900
SCALE = 0.3
GAP, TITLE = 10, 22
PAPER, INK = (128, 128, 128), (255, 255, 255)
QUALITY = 55
Tiles = dict[tuple[str, int, str], Image.Image]


def take(url: str, names: Sequence[str]) -> Tiles:
    """{(page, width, scheme): its picture}."""
    found: Tiles = {}
    with chromium_browser() as browser:
        for scheme in SCHEMES:
            page = new_window(browser, WIDTHS[0], HEIGHT, scheme)
            for name in names:
                page.set_viewport_size({"width": WIDTHS[0], "height": HEIGHT})
                visit(page, f"{url}/{'' if name == 'home' else name}")
                for width in WIDTHS:
                    page.set_viewport_size({"width": width, "height": HEIGHT})
                    settle(page)
                    png = page.screenshot(animations="disabled")
                    found[name, width, scheme] = Image.open(io.BytesIO(png)).convert("RGB")
            page.context.close()
    return found


def sheet(tiles: Mapping[tuple[str, int, str], Image.Image], names: Sequence[str]) -> Image.Image:
    """The tiles downscaled, a row per page under its name, a column per width and scheme."""
    columns = [(width, scheme) for width in WIDTHS for scheme in SCHEMES]
    widths = [round(width * SCALE) for width, _ in columns]
    height = round(HEIGHT * SCALE)
    found = Image.new(
        "RGB",
        (sum(widths) + GAP * (len(columns) + 1), len(names) * (height + TITLE + GAP) + GAP),
        PAPER,
    )
    pen, font = ImageDraw.Draw(found), ImageFont.load_default(15)
    for row, name in enumerate(names):
        left, top = GAP, GAP + row * (height + TITLE + GAP)
        for (width, scheme), wide in zip(columns, widths, strict=True):
            pen.text((left, top), f"{name} · {width} · {scheme}", fill=INK, font=font)
            tile = tiles[name, width, scheme].resize((wide, height), Image.Resampling.LANCZOS)
            found.paste(tile, (left, top + TITLE))
            left += wide + GAP
    return found


def main() -> None:
    """Take the pictures, write the sheets, and print their sizes in kB."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = [view.name for view in MENU]
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"of {', '.join(known)}")
    parser.add_argument("--home", type=Path, help=HOME_HELP)
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "pictures")
    parser.add_argument("--tiles", type=Path, help="a folder for the pictures in their own size")
    given = parser.parse_args()
    if unknown := [name for name in given.pages if name not in known]:
        parser.error(f"no page {unknown[0]!r}: choose from {', '.join(known)}")
    names = [name for name in known if name in (given.pages or known)]
    given.into.mkdir(parents=True, exist_ok=True)
    sizes = {}
    for state, app in (("empty", empty_app()), ("full", demo_app(given.home))):
        with app as server:
            tiles = take(server.url, names)
        if given.tiles:
            given.tiles.mkdir(parents=True, exist_ok=True)
            for (name, width, scheme), tile in tiles.items():
                tile.save(given.tiles / f"{state}-{name}-{width}-{scheme}.png")
        path = given.into / f"pages-{state}.webp"
        sheet(tiles, names).save(path, quality=QUALITY, method=6)
        sizes[path.name] = path.stat().st_size // 1000
    sys.stdout.write(json.dumps({"kilobytes": sizes}) + "\n")


if __name__ == "__main__":
    main()
