"""The README's moving picture: from imported pairs to a trained model, in the real app.

    .venv/bin/python bench/moving_picture.py [--home DIR] [--into docs/pictures/path.webp]

`make moving-picture` runs it. Every scene is a page of the app on the demo's store, photographed at
one or more scroll positions or after a key; a strip above it names the step. Prints the size in kB.
"""

import argparse
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from demo_app import HOME_HELP, ROOT, chromium_browser, demo_app, new_window, settle, visit
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Page

WIDTH, HEIGHT = 1200, 720
SHOWN = (900, 540)
STRIP = 34
STRIP_COLOUR, INK = (38, 39, 48), (255, 255, 255)
FIRST_MS, NEXT_MS = 2200, 1300
QUALITY = 60
STUDY, OWN_STUDY = 1, 4  # the demo's study, and the items that it reserves for its user


def stay(page: Page) -> None:
    """The page as it opened."""


def scrolled(share: float) -> Callable[[Page], None]:
    """Scroll the page's main part by that share of the window."""

    def scroll(page: Page) -> None:
        main = page.get_by_test_id("stMain")
        main.evaluate("(node, by) => node.scrollBy(0, by)", share * HEIGHT)
        page.wait_for_timeout(400)

    return scroll


def show_pairs(page: Page) -> None:
    """Scroll to the table of kappas; above it stand figures of people, and the demo has none."""
    heading = page.get_by_role("heading", name="Pairs of judges")
    heading.evaluate("node => node.scrollIntoView()")
    page.wait_for_timeout(600)


def pick(page: Page) -> None:
    """Choose the first passage of the judging card, which stores no judgment yet."""
    page.locator(".card .pick").first.hover()
    page.wait_for_timeout(300)


class Scene(NamedTuple):
    """A step: its name, the page's address, and what happens before each picture."""

    name: str
    address: str
    moves: tuple[Callable[[Page], None], ...] = (stay,)


SCENES = (
    Scene("1 · Import pairs of a query and a passage", "datasets"),
    Scene("2 · Run: language models write groups, a validator checks them", "curate"),
    Scene("3 · Workbench: read and review each group", "groups", (stay, scrolled(0.5))),
    Scene("4 · Judge the same items blind", f"judge?study={OWN_STUDY}", (stay, pick)),
    Scene(
        "5 · Agreement: Cohen's kappa, here of two models",
        f"agreement?study={STUDY}",
        (show_pairs,),
    ),
    Scene("6 · Train on the release", "train", (stay, scrolled(0.6), scrolled(0.6))),
    Scene("7 · Try it: what the instruction changes now", "try_it", (stay, scrolled(0.45))),
)


def framed(png: bytes, name: str) -> Image.Image:
    """The screenshot, downscaled, under a strip with the step's name."""
    picture = Image.open(io.BytesIO(png)).convert("RGB").resize(SHOWN, Image.Resampling.LANCZOS)
    found = Image.new("RGB", (SHOWN[0], SHOWN[1] + STRIP), STRIP_COLOUR)
    found.paste(picture, (0, STRIP))
    pen = ImageDraw.Draw(found)
    pen.text((12, STRIP // 2), name, fill=INK, font=ImageFont.load_default(17), anchor="lm")
    return found


def take(url: str) -> tuple[list[Image.Image], list[int]]:
    """(the frames, how many milliseconds each is shown)."""
    frames, durations = [], []
    with chromium_browser() as browser:
        for scene in SCENES:
            page = new_window(browser, WIDTH, HEIGHT)
            visit(page, f"{url}/{scene.address}")
            for number, move in enumerate(scene.moves):
                move(page)
                if number:
                    settle(page)
                frames.append(framed(page.screenshot(animations="disabled"), scene.name))
                durations.append(NEXT_MS if number else FIRST_MS)
            page.context.close()
    return frames, durations


def main() -> None:
    """Take the frames and write the animated WebP."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, help=HOME_HELP)
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "pictures" / "path.webp")
    parser.add_argument("--frames", type=Path, help="a folder for the frames as PNG")
    given = parser.parse_args()
    with demo_app(given.home) as server:
        frames, durations = take(server.url)
    if given.frames:
        given.frames.mkdir(parents=True, exist_ok=True)
        for number, frame in enumerate(frames):
            frame.save(given.frames / f"{number:02}.png")
    frames[0].save(
        given.into,
        save_all=True,
        append_images=frames[1:],
        duration=durations,
        loop=0,
        quality=QUALITY,
        method=6,
    )
    found = {"frames": len(frames), "kilobytes": given.into.stat().st_size // 1000}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
